-- Every write of an instance or an activity gives the row a new revision, and a write of what belongs to an instance (its
-- executions, events, messages and values) gives the instance one. So a node that wrote a row knows by the revision whether
-- anybody has changed the row since, or anything that belongs to it.
ALTER TABLE {s}.instance ADD COLUMN revision bigint NOT NULL DEFAULT 0;
ALTER TABLE {s}.activity ADD COLUMN revision bigint NOT NULL DEFAULT 0;
-- Nodes of older versions write rows without a revision. They must not go on beside newer nodes, and without numbers they
-- cannot.
ALTER SEQUENCE {s}.number_block RENAME TO number_blocks;
-- The type of a lock has the same cases. PostgreSQL parses a check again for every statement that writes its table.
ALTER TABLE {s}.instance DROP CONSTRAINT instance_extent;
