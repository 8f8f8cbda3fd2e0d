-- What callers write in transactions of their own: starts, events and queue messages. The store takes committed rows over
-- in the order of their numbers and deletes them.
CREATE TABLE intake (
    number      INTEGER PRIMARY KEY,
    kind        TEXT NOT NULL CHECK (kind IN ('start', 'raise', 'enqueue')),
    instance_id TEXT NOT NULL CHECK (length(CAST(instance_id AS BLOB)) BETWEEN 1 AND 4096),
    -- Of the orchestration, the event or the queue.
    name        TEXT NOT NULL,
    -- Of the orchestration.
    version     TEXT,
    -- The input, or the data of the event or message.
    data        TEXT NOT NULL
);
