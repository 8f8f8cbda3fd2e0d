-- How long a session's lease is, so that a clock that was set back makes none longer. Sessions that were leased before
-- are taken to have the default length of the runtime, 30 seconds.
ALTER TABLE session ADD COLUMN lease INTEGER NOT NULL DEFAULT 30000000;
