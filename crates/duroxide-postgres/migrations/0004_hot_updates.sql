-- An update that changes no indexed column writes no index, and the version that it replaces is removed without a vacuum. So what
-- changes with every turn of an instance is not indexed: an index has in its place what changes seldom.

-- Not after `wait_until`, and in most cases the end of the first lease: a lease that follows, or a wait without an end, leaves it as it
-- is. Who finds an instance by it too early writes the exact time.
ALTER TABLE {s}.instance ADD COLUMN look_at bigint;
UPDATE {s}.instance SET look_at = wait_until WHERE wait_until IS NOT NULL;
DROP INDEX {s}.instance_wait;
CREATE INDEX instance_look ON {s}.instance (look_at, number) WHERE look_at IS NOT NULL;

-- The status, once it is final.
ALTER TABLE {s}.instance ADD COLUMN ended text COLLATE "C"
    GENERATED ALWAYS AS (CASE WHEN status NOT IN ('Running', 'ContinuedAsNew') THEN status END) STORED;
DROP INDEX {s}.instance_status;
CREATE INDEX instance_ended ON {s}.instance (ended, number);

-- Nodes of older versions do not write `look_at`. Without numbers they cannot go on beside newer ones.
ALTER SEQUENCE {s}.number_blocks RENAME TO numbers;
-- Room for the versions of a turn that is being committed.
ALTER TABLE {s}.instance SET (fillfactor = 50);

-- Instances that can be claimed, in their order: a row is inserted when one becomes ready and deleted when it is claimed, while
-- `instance.ready_number` says the same without an index. Whoever changes one changes the other in the same transaction.
CREATE TABLE {s}.ready_instance (
    route    bigint NOT NULL,
    place    bigint NOT NULL,
    instance bigint NOT NULL,
    PRIMARY KEY (route, place)
);
INSERT INTO {s}.ready_instance SELECT route, ready_number, number FROM {s}.instance
    WHERE ready_number IS NOT NULL AND NOT is_stray AND route IS NOT NULL;
DROP INDEX {s}.instance_ready;
ALTER TABLE {s}.ready_instance SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
