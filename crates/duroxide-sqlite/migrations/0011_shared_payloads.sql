-- A large text is stored once, whichever rows of its instance have it: the message that brings it, the event that records
-- it, the activity that is given it. A row with a large text has the number of its payload, and in `data` a character
-- U+0001 in its place. JSON has no such character; it would be escaped.
ALTER TABLE message ADD COLUMN payload INTEGER;
ALTER TABLE activity ADD COLUMN payload INTEGER;
ALTER TABLE history ADD COLUMN payload INTEGER;
ALTER TABLE execution ADD COLUMN output_event INTEGER;
DROP TRIGGER message_payload;
DROP TRIGGER activity_payload;
-- A queued row's whole text was kept apart, under the number of the row.
UPDATE message SET data = char(1), payload = seq WHERE data = '';
UPDATE activity SET data = char(1), payload = id WHERE data = '';
CREATE INDEX history_payload ON history (payload) WHERE payload IS NOT NULL;

-- Payloads that a row of this transaction let go. Before the commit those that no other row has are deleted. Without
-- constraints: SQLite would keep a journal for each statement whose trigger can fail.
CREATE TABLE released_payload (
    payload  INTEGER,
    instance INTEGER
);
CREATE TRIGGER message_deleted AFTER DELETE ON message WHEN old.payload IS NOT NULL BEGIN
    INSERT INTO released_payload (payload, instance) VALUES (old.payload, old.instance);
END;
CREATE TRIGGER activity_deleted AFTER DELETE ON activity WHEN old.payload IS NOT NULL BEGIN
    INSERT INTO released_payload (payload, instance) VALUES (old.payload, old.instance);
END;
CREATE TRIGGER history_deleted AFTER DELETE ON history WHEN old.payload IS NOT NULL BEGIN
    INSERT INTO released_payload (payload, instance) VALUES (old.payload, old.instance);
END;
