-- All times are microseconds since the epoch, except the millisecond values that users see in key-value entries.
-- Numbers handed out by `sequence` order messages, activities, ready instances and incarnations; none is used twice.

CREATE TABLE sequence (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    next       INTEGER NOT NULL,
    written_at INTEGER NOT NULL
);
INSERT INTO sequence (id, next, written_at) VALUES (1, 1, 0);

-- What an orchestration fetch can filter by: handler name and version, pinned version. Few rows, kept in memory.
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

-- What a worker fetch can filter by: tag and activity name. Few rows, kept in memory.
CREATE TABLE lane (
    id            INTEGER PRIMARY KEY,
    tag           TEXT,
    activity_name TEXT NOT NULL
);
CREATE UNIQUE INDEX lane_once ON lane (coalesce(tag, 0), activity_name);

-- An instance, or the mailbox of one that was never started (`known` = 0), which no read shows.
-- It can be claimed (`ready`), or waits for a time (`wake_at`), or for a message. Only a mailbox of queue messages
-- does both: the next claim drops it, and if none comes its messages become dead letters.
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
    -- The rows a claim took, and the last of them: nothing behind it needs to be looked at by the commit.
    batch        INTEGER,
    batch_due_at INTEGER,
    batch_seq    INTEGER,
    -- A lease ended, or a batch was given back with its attempt counted: not to be claimed ahead of a free slot.
    suspect      INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX instance_id_once ON instance (instance_id);
CREATE INDEX instance_ready ON instance (route, ready) WHERE ready IS NOT NULL;
CREATE INDEX instance_wake ON instance (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX instance_parent ON instance (parent) WHERE parent IS NOT NULL;
CREATE INDEX instance_status ON instance (status, id) WHERE known = 1;

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
    PRIMARY KEY (instance, execution_id)
) WITHOUT ROWID;

CREATE TABLE history (
    instance     INTEGER NOT NULL,
    execution_id INTEGER NOT NULL,
    event_id     INTEGER NOT NULL,
    data         TEXT NOT NULL,
    CONSTRAINT history_event_once PRIMARY KEY (instance, execution_id, event_id)
) WITHOUT ROWID;

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
    batch         INTEGER,
    data          TEXT NOT NULL,
    PRIMARY KEY (instance, due_at, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX message_key_once ON message (instance, key) WHERE key IS NOT NULL;
CREATE INDEX message_start ON message (instance, kind, due_at, seq) WHERE kind <= 1;
CREATE INDEX message_held_back ON message (instance, seq) WHERE hidden_until > 0;

CREATE TABLE activity (
    id            INTEGER PRIMARY KEY,
    instance      INTEGER NOT NULL,
    execution_id  INTEGER NOT NULL,
    activity_id   INTEGER NOT NULL,
    lane          INTEGER NOT NULL,
    session_id    TEXT,
    ready         INTEGER,
    wake_at       INTEGER,
    hidden_until  INTEGER NOT NULL DEFAULT 0,
    lock_token    TEXT,
    lock_until    INTEGER,
    lease         INTEGER,
    attempt_count INTEGER NOT NULL DEFAULT 0,
    data          TEXT NOT NULL
);
CREATE UNIQUE INDEX activity_once ON activity (instance, execution_id, activity_id);
CREATE INDEX activity_ready ON activity (lane, id) WHERE ready IS NOT NULL AND session_id IS NULL;
CREATE INDEX activity_session_ready ON activity (session_id, lane, id)
    WHERE ready IS NOT NULL AND session_id IS NOT NULL;
CREATE INDEX activity_session ON activity (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX activity_wake ON activity (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE session (
    session_id       TEXT NOT NULL PRIMARY KEY,
    owner            TEXT NOT NULL,
    lock_until       INTEGER NOT NULL,
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
