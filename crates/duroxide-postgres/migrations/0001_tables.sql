-- Times are microseconds since the epoch, except the millisecond values that users see in key-value entries.
-- `{s}` stands for the schema. Texts that are compared or sorted have the collation "C", the order of their bytes.

CREATE TABLE {s}.meta (
    only_row       boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    schema_version bigint NOT NULL
);
INSERT INTO {s}.meta (schema_version) VALUES (1);

-- Numbers of instances, messages, activities, ready instances, marks and removals. A transaction draws whole blocks,
-- after it has locked the rows that the numbers order, and never keeps what is left of a block.
CREATE SEQUENCE {s}.number_block INCREMENT BY 1024 MINVALUE 1 START WITH 1;

-- What an orchestration fetch can filter by, as JSON: one text that can be compared, absent parts included.
CREATE TABLE {s}.route (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    definition text COLLATE "C" NOT NULL,
    CONSTRAINT route_once UNIQUE (definition)
);

-- What a worker fetch can filter by, as JSON.
CREATE TABLE {s}.lane (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    definition text COLLATE "C" NOT NULL,
    CONSTRAINT lane_once UNIQUE (definition)
);

-- An instance, or the mailbox of one that was never started (`known` is false), which no read shows.
CREATE TABLE {s}.instance (
    number       bigint PRIMARY KEY,
    id           text COLLATE "C" NOT NULL,
    known        boolean NOT NULL,
    name         text,
    version      text,
    parent       text COLLATE "C",
    status       text COLLATE "C",
    execution_id bigint NOT NULL,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    lock_token   text,
    lock_until   bigint,
    lock_length  bigint,
    lock_node    bigint,
    -- Which messages the lock holds: all that were visible at a time, up to a number, or those with a mark.
    extent_kind  text,
    extent_at    bigint,
    extent_up_to bigint,
    extent_mark  bigint,
    suspect      boolean NOT NULL,
    lost         bigint NOT NULL,
    blamed       bigint NOT NULL,
    route        bigint,
    -- The place among those that can be claimed; NULL while the instance waits.
    ready_number bigint,
    -- A mailbox of queue messages only: the next claim makes dead letters of them.
    is_stray     boolean NOT NULL,
    -- When readiness has to be decided anew.
    wait_until   bigint,
    CONSTRAINT instance_id_once UNIQUE (id),
    CONSTRAINT instance_extent CHECK (CASE extent_kind
        WHEN 'visible' THEN lock_token IS NOT NULL AND extent_at IS NOT NULL AND extent_up_to IS NOT NULL
        WHEN 'marked' THEN lock_token IS NOT NULL AND extent_mark IS NOT NULL
        ELSE lock_token IS NULL END)
);
CREATE INDEX instance_ready ON {s}.instance (route, ready_number) WHERE ready_number IS NOT NULL AND NOT is_stray;
CREATE INDEX instance_stray ON {s}.instance (number) WHERE is_stray;
CREATE INDEX instance_wait ON {s}.instance (wait_until, number) WHERE wait_until IS NOT NULL;
CREATE INDEX instance_parent ON {s}.instance (parent, number) WHERE parent IS NOT NULL;
CREATE INDEX instance_status ON {s}.instance (status, number) WHERE known;

CREATE TABLE {s}.execution (
    instance      bigint NOT NULL,
    execution_id  bigint NOT NULL,
    status        text COLLATE "C" NOT NULL,
    output        text,
    pinned_major  bigint,
    pinned_minor  bigint,
    pinned_patch  bigint,
    last_event_id bigint NOT NULL,
    turns         bigint NOT NULL,
    started_at    bigint NOT NULL,
    completed_at  bigint,
    PRIMARY KEY (instance, execution_id)
);

CREATE TABLE {s}.history (
    instance     bigint NOT NULL,
    execution_id bigint NOT NULL,
    event_id     bigint NOT NULL,
    data         text NOT NULL,
    CONSTRAINT history_event_once PRIMARY KEY (instance, execution_id, event_id)
);

-- `due_at` is 0 for what is visible at once: a clock that is set back must not hide work.
CREATE TABLE {s}.message (
    instance     bigint NOT NULL,
    due_at       bigint NOT NULL,
    number       bigint NOT NULL,
    kind         bigint NOT NULL,
    key          text COLLATE "C",
    enqueued_at  bigint NOT NULL,
    hidden_until bigint NOT NULL,
    attempts     bigint NOT NULL,
    mark         bigint,
    data         text NOT NULL,
    PRIMARY KEY (instance, due_at, number)
);
CREATE UNIQUE INDEX message_key_once ON {s}.message (instance, key) WHERE key IS NOT NULL;
CREATE INDEX message_start ON {s}.message (instance, kind, due_at, number) WHERE kind <= 1;
-- Calls that were not carried out yet, by their parent: they are deleted with it. Keys begin with `ST/{parent}/`.
CREATE INDEX message_child_start ON {s}.message (key) WHERE key >= 'ST/' AND key < 'ST0';

CREATE TABLE {s}.activity (
    number         bigint PRIMARY KEY,
    instance       bigint NOT NULL,
    execution_id   bigint NOT NULL,
    activity_id    bigint NOT NULL,
    lane           bigint NOT NULL,
    session_id     text COLLATE "C",
    hidden_until   bigint NOT NULL,
    lock_token     text,
    lock_until     bigint,
    lock_length    bigint,
    lock_node      bigint,
    attempts       bigint NOT NULL,
    claimed        boolean NOT NULL,
    stop_requested boolean NOT NULL,
    lost           bigint NOT NULL,
    blamed         bigint NOT NULL,
    -- When it can be claimed; NULL if it can be claimed now.
    wait_until     bigint,
    data           text NOT NULL,
    CONSTRAINT activity_once UNIQUE (instance, execution_id, activity_id)
);
CREATE INDEX activity_ready ON {s}.activity (lane, number) WHERE wait_until IS NULL AND session_id IS NULL;
CREATE INDEX activity_session_ready ON {s}.activity (session_id, lane, number)
    WHERE wait_until IS NULL AND session_id IS NOT NULL;
CREATE INDEX activity_session ON {s}.activity (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX activity_wait ON {s}.activity (wait_until, number) WHERE wait_until IS NOT NULL;

CREATE TABLE {s}.session (
    id               text COLLATE "C" PRIMARY KEY,
    owner            text COLLATE "C" NOT NULL,
    lock_until       bigint NOT NULL,
    lock_length      bigint NOT NULL,
    last_activity_at bigint NOT NULL
);
CREATE INDEX session_owner ON {s}.session (owner);
CREATE INDEX session_end ON {s}.session (lock_until);

-- What earlier executions left, and apart from it what the current one changed (value NULL: removed).
CREATE TABLE {s}.kv (
    instance           bigint NOT NULL,
    key                text COLLATE "C" NOT NULL,
    value              text NOT NULL,
    last_updated_at_ms bigint NOT NULL,
    PRIMARY KEY (instance, key)
);
CREATE TABLE {s}.kv_change (
    instance           bigint NOT NULL,
    key                text COLLATE "C" NOT NULL,
    value              text,
    last_updated_at_ms bigint NOT NULL,
    PRIMARY KEY (instance, key)
);

-- Apart from the instance: a large status must not be rewritten with every lock.
CREATE TABLE {s}.custom_status (
    instance bigint PRIMARY KEY,
    status   text,
    version  bigint NOT NULL
);

CREATE SEQUENCE {s}.dead_letter_number;
CREATE TABLE {s}.dead_letter (
    number           bigint PRIMARY KEY,
    instance_id      text COLLATE "C",
    payload          text NOT NULL,
    reason           text NOT NULL,
    attempts         bigint NOT NULL,
    dead_lettered_at bigint NOT NULL,
    -- Where it goes back to if its payload still cannot be decoded: a message has a kind, an activity has none.
    kind             bigint,
    key              text,
    execution_id     bigint,
    activity_id      bigint,
    lane             bigint,
    session_id       text
);
CREATE INDEX dead_letter_instance ON {s}.dead_letter (instance_id);

CREATE TABLE {s}.node (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text COLLATE "C" NOT NULL,
    started_at     bigint NOT NULL,
    seen_at        bigint NOT NULL,
    -- The owners of sessions that end with the node, as a JSON list.
    session_owners text NOT NULL,
    -- What the node can do, as JSON.
    capability     text NOT NULL,
    CONSTRAINT node_name_once UNIQUE (name)
);

-- Nodes that hold, or held, an advisory lock that ends with their connection. One without its lock is gone.
CREATE TABLE {s}.node_lock (
    name     text COLLATE "C" PRIMARY KEY,
    -- When it last tried to join.
    tried_at bigint NOT NULL
);

-- Rows of deleted instances and pruned executions that are still to be removed. Nothing leads to them any more. A call
-- removes them in steps (`task`); if it stops, anyone may go on from `remove_at` on.
CREATE TABLE {s}.removal_task (
    number    bigint PRIMARY KEY,
    remove_at bigint NOT NULL
);
CREATE INDEX removal_task_due ON {s}.removal_task (remove_at);
CREATE TABLE {s}.removal (
    number       bigint PRIMARY KEY,
    task         bigint NOT NULL,
    instance     bigint NOT NULL,
    -- NULL: everything of the instance.
    execution_id bigint
);
CREATE INDEX removal_of_task ON {s}.removal (task, number);
CREATE INDEX removal_of_execution ON {s}.removal (instance, execution_id);

-- Rows that are changed leave room on their page for the next version of a row. An update that changes no indexed column then
-- writes no index (an execution, a value, a message that is hidden), and one that does stays on its page.
ALTER TABLE {s}.instance SET (fillfactor = 80);
ALTER TABLE {s}.execution SET (fillfactor = 80);
ALTER TABLE {s}.message SET (fillfactor = 90);
ALTER TABLE {s}.activity SET (fillfactor = 80);
ALTER TABLE {s}.custom_status SET (fillfactor = 70);
ALTER TABLE {s}.node SET (fillfactor = 50);
ALTER TABLE {s}.node_lock SET (fillfactor = 50);

-- Queues are small and turn over fast: autovacuum looks by a number of dead rows, not by a share of the rows, and does not pause.
ALTER TABLE {s}.message SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {s}.activity SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
-- A large table of ended instances must not wait until a fifth of its rows are dead.
ALTER TABLE {s}.instance SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
ALTER TABLE {s}.execution SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
