-- Ways to the instances of a page. Name and creation never change after the start, so each is written once.
-- Instances of one name, or of one time, follow each other by their row, which is the order of pages.
CREATE INDEX instance_name ON instance (name) WHERE known = 1;
CREATE INDEX instance_created ON instance (created_at) WHERE known = 1;
