-- The tables of a new store: what the numbered migrations make of an older one (a test compares them).
--
-- Times are microseconds since the epoch, except the millisecond values that users see in key-value entries.
-- Numbers drawn from `sequence` order messages, activities, ready instances and incarnations; none is used twice.

CREATE TABLE sequence (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    next       INTEGER NOT NULL,
    written_at INTEGER NOT NULL
);
INSERT INTO sequence (id, next, written_at) VALUES (1, 1, 0);

-- What an orchestration fetch can filter by: handler name and version, pinned version. Few rows.
CREATE TABLE route (
    id      INTEGER PRIMARY KEY,
    name    TEXT,
    version TEXT,
    major   INTEGER,
    minor   INTEGER,
    patch   INTEGER
);
-- Absent parts take part as a value of another type, which no present part can equal.
CREATE UNIQUE INDEX route_once
    ON route (coalesce(name, 0), coalesce(version, 0), coalesce(major, ''), coalesce(minor, ''), coalesce(patch, ''));

-- What a worker fetch can filter by: tag and activity name. Few rows.
CREATE TABLE lane (
    id            INTEGER PRIMARY KEY,
    tag           TEXT,
    activity_name TEXT NOT NULL
);
CREATE UNIQUE INDEX lane_once ON lane (coalesce(tag, 0), activity_name);

-- An instance, or the mailbox of one that was never started (`known` = 0), which no read shows.
-- It is ready to be claimed (`ready`), or waits for a time (`wake_at`), or for a message. A stray mailbox (route 0) does
-- both: the next claim makes dead letters of its messages, and if none comes, their age does.
CREATE TABLE instance (
    id           INTEGER PRIMARY KEY,
    instance_id  TEXT NOT NULL,
    known        INTEGER NOT NULL DEFAULT 0,
    name         TEXT,
    version      TEXT,
    parent       TEXT,
    status       TEXT,
    execution_id INTEGER NOT NULL DEFAULT 1,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    route        INTEGER,
    ready        INTEGER,
    wake_at      INTEGER,
    lock_token   TEXT,
    lock_until   INTEGER,
    lease        INTEGER,
    -- The node that made the claim. It means something only beside a live lock.
    node         INTEGER,
    -- Which messages the lock holds: those with this mark, or all that were visible at this time, up to this number.
    extent_mark  INTEGER,
    extent_at    INTEGER,
    extent_up_to INTEGER,
    -- A lease ended, or a batch was abandoned with its attempt counted: not to be claimed ahead of a free slot.
    suspect      INTEGER NOT NULL DEFAULT 0,
    -- Claims that were lost (their lease or node ended without an answer), and how many of them ended their node.
    lost         INTEGER NOT NULL DEFAULT 0,
    blamed       INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX instance_id_once ON instance (instance_id);
CREATE INDEX instance_ready ON instance (route, ready) WHERE ready IS NOT NULL;
CREATE INDEX instance_wake ON instance (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX instance_parent ON instance (parent) WHERE parent IS NOT NULL;
CREATE INDEX instance_status ON instance (status, id) WHERE known = 1;
-- Name and creation never change after the start, so each index is written once. Instances of one name, or of one time,
-- follow each other by their row, which is the order of pages.
CREATE INDEX instance_name ON instance (name) WHERE known = 1;
CREATE INDEX instance_created ON instance (created_at) WHERE known = 1;

CREATE TABLE execution (
    instance      INTEGER NOT NULL,
    execution_id  INTEGER NOT NULL,
    status        TEXT NOT NULL,
    output        TEXT,
    major         INTEGER,
    minor         INTEGER,
    patch         INTEGER,
    last_event_id INTEGER NOT NULL DEFAULT 0,
    turns         INTEGER NOT NULL DEFAULT 0,
    started_at    INTEGER NOT NULL,
    completed_at  INTEGER,
    -- The event whose payload is the output, which is not stored a second time then.
    output_event  INTEGER,
    PRIMARY KEY (instance, execution_id)
) WITHOUT ROWID;

CREATE TABLE history (
    instance     INTEGER NOT NULL,
    execution_id INTEGER NOT NULL,
    event_id     INTEGER NOT NULL,
    data         TEXT NOT NULL,
    payload      INTEGER,
    CONSTRAINT history_event_once PRIMARY KEY (instance, execution_id, event_id)
) WITHOUT ROWID;
CREATE INDEX history_payload ON history (payload) WHERE payload IS NOT NULL;

-- `due_at` is 0 for what is visible at once: a clock that is set back must not hide work.
CREATE TABLE message (
    instance      INTEGER NOT NULL,
    due_at        INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    kind          INTEGER NOT NULL,
    key           TEXT,
    enqueued_at   INTEGER NOT NULL,
    hidden_until  INTEGER NOT NULL DEFAULT 0,
    attempt_count INTEGER NOT NULL DEFAULT 0,
    mark          INTEGER,
    data          TEXT NOT NULL,
    payload       INTEGER,
    PRIMARY KEY (instance, due_at, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX message_key_once ON message (instance, key) WHERE key IS NOT NULL;
CREATE INDEX message_start ON message (instance, kind, due_at, seq) WHERE kind <= 1;
CREATE INDEX message_held_back ON message (instance, seq) WHERE hidden_until > 0;
CREATE INDEX message_marked ON message (instance, mark) WHERE mark IS NOT NULL;
-- Calls that were not carried out yet, by their parent: they are deleted with it. Keys begin with `ST/{parent}/`.
CREATE INDEX message_child_start ON message (key) WHERE key >= 'ST/' AND key < 'ST0';

CREATE TABLE activity (
    id             INTEGER PRIMARY KEY,
    instance       INTEGER NOT NULL,
    execution_id   INTEGER NOT NULL,
    activity_id    INTEGER NOT NULL,
    lane           INTEGER NOT NULL,
    session_id     TEXT,
    ready          INTEGER,
    wake_at        INTEGER,
    hidden_until   INTEGER NOT NULL DEFAULT 0,
    lock_token     TEXT,
    lock_until     INTEGER,
    lease          INTEGER,
    node           INTEGER,
    attempt_count  INTEGER NOT NULL DEFAULT 0,
    -- Whether anybody may have begun it. An attempt count that is taken back says nothing of that.
    claimed        INTEGER NOT NULL DEFAULT 0,
    -- Its holder is told when it renews the lock, and whoever claims the row after the lock ended does not run it again.
    stop_requested INTEGER NOT NULL DEFAULT 0,
    lost           INTEGER NOT NULL DEFAULT 0,
    blamed         INTEGER NOT NULL DEFAULT 0,
    data           TEXT NOT NULL,
    payload        INTEGER
);
CREATE UNIQUE INDEX activity_once ON activity (instance, execution_id, activity_id);
CREATE INDEX activity_ready ON activity (lane, id) WHERE ready IS NOT NULL AND session_id IS NULL;
CREATE INDEX activity_session_ready ON activity (session_id, lane, id)
    WHERE ready IS NOT NULL AND session_id IS NOT NULL;
CREATE INDEX activity_session ON activity (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX activity_wake ON activity (wake_at) WHERE wake_at IS NOT NULL;

-- Large texts. Each is stored once, whichever rows of its instance have it: the message that brings it, the event that
-- records it, the activity that is given it. Such a row has the number of the payload, and in `data` a character U+0001 in its
-- place. JSON has no such character; it would be escaped.
CREATE TABLE payload (
    id   INTEGER PRIMARY KEY,
    data TEXT NOT NULL
);
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

CREATE TABLE session (
    session_id       TEXT NOT NULL PRIMARY KEY,
    owner            TEXT NOT NULL,
    lock_until       INTEGER NOT NULL,
    lease            INTEGER NOT NULL DEFAULT 30000000,
    last_activity_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX session_owner ON session (owner);
CREATE INDEX session_end ON session (lock_until);

-- What earlier executions left, and apart from it what the current one changed (value NULL: removed).
CREATE TABLE kv (
    instance           INTEGER NOT NULL,
    key                TEXT NOT NULL,
    value              TEXT NOT NULL,
    last_updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (instance, key)
) WITHOUT ROWID;
CREATE TABLE kv_change (
    instance           INTEGER NOT NULL,
    key                TEXT NOT NULL,
    value              TEXT,
    last_updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (instance, key)
) WITHOUT ROWID;

-- Apart from the instance row: 256 KiB must not be rewritten with every lock.
CREATE TABLE custom_status (
    instance INTEGER PRIMARY KEY,
    status   TEXT,
    version  INTEGER NOT NULL
);

CREATE TABLE dead_letter (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    queue            INTEGER NOT NULL,
    instance_id      TEXT,
    payload          TEXT NOT NULL,
    reason           TEXT NOT NULL,
    attempt_count    INTEGER NOT NULL,
    dead_lettered_at INTEGER NOT NULL,
    -- Where it goes back to if its payload still cannot be decoded.
    kind             INTEGER,
    key              TEXT,
    execution_id     INTEGER,
    activity_id      INTEGER,
    lane             INTEGER,
    session_id       TEXT
);
CREATE INDEX dead_letter_instance ON dead_letter (instance_id);

-- Who takes work from the store. Claims carry the number of their node, so that what it holds can be given to others
-- when it is gone.
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

-- Rows of deleted instances and pruned executions that are still to be removed. Nothing leads to them any more: the row of
-- the instance or execution is gone. A call removes them in steps (`task`); if it stops, anyone may from `remove_at` on.
CREATE TABLE removal_task (
    id        INTEGER PRIMARY KEY,
    remove_at INTEGER NOT NULL
);
CREATE INDEX removal_task_due ON removal_task (remove_at);
CREATE TABLE removal (
    id           INTEGER PRIMARY KEY,
    task         INTEGER NOT NULL,
    instance     INTEGER NOT NULL,
    -- NULL: everything of the instance.
    execution_id INTEGER
);
CREATE INDEX removal_of_task ON removal (task, id);
CREATE INDEX removal_of_execution ON removal (instance, execution_id);

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
