-- When the row was inserted, for operators. Callers do not write it. Rows that wait already count from the upgrade.
ALTER TABLE {s}.intake ADD COLUMN inserted_at bigint NOT NULL
    DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- `look_at` of a locked instance is at most a minute after the beginning of its lease: the locks of a dead node are looked for within a
-- minute. Migration 0004 and the first builds of its schema wrote the end of the lease, however long it was.
UPDATE {s}.instance SET look_at = least(look_at, lock_until - lock_length + 60000000)
    WHERE look_at IS NOT NULL AND lock_token IS NOT NULL;

-- The first schemas of versions 1 and 2 have none of these settings. The reasons are in migration 0001.
ALTER TABLE {s}.execution SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
ALTER TABLE {s}.message SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {s}.activity SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {s}.instance SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
ALTER TABLE {s}.custom_status SET (fillfactor = 70);
ALTER TABLE {s}.node SET (fillfactor = 50);
ALTER TABLE {s}.node_lock SET (fillfactor = 50);
