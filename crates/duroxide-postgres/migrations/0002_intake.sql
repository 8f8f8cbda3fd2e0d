-- What callers write in transactions of their own: starts, events and queue messages. The store takes committed rows over
-- in the order of their numbers and deletes them. An id must fit into an index.
CREATE TABLE {s}.intake (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        text NOT NULL CONSTRAINT intake_kind CHECK (kind IN ('start', 'raise', 'enqueue')),
    instance_id text NOT NULL CONSTRAINT intake_instance_id CHECK (octet_length(instance_id) BETWEEN 1 AND 2048),
    -- Of the orchestration, the event or the queue.
    name        text NOT NULL,
    -- Of the orchestration.
    version     text,
    -- The input, or the data of the event or message.
    data        text NOT NULL
);
