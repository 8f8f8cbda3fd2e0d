-- When the row was inserted, for operators. Callers do not write it. Rows that wait already count from the upgrade.
ALTER TABLE {s}.intake ADD COLUMN inserted_at bigint NOT NULL
    DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
