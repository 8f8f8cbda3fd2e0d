-- Who takes work from the store. Claims carry the number of their node, so that what it holds can be given to others
-- when it is gone. It stays on a row after the lock ended; only beside a live lock does it mean something.
CREATE TABLE node (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    name           TEXT NOT NULL,
    started_at     INTEGER NOT NULL,
    seen_at        INTEGER NOT NULL,
    -- The owners of sessions that end with the node, as a JSON list.
    session_owners TEXT NOT NULL,
    -- What the node can do, as JSON.
    capability     TEXT NOT NULL
);
CREATE UNIQUE INDEX node_name_once ON node (name);
ALTER TABLE instance ADD COLUMN node INTEGER;
ALTER TABLE activity ADD COLUMN node INTEGER;
