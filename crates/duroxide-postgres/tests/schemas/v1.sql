-- A schema of version 1 with instances inside, as commit 7dfec920 left it, the last one before migration 0002.
-- Made like the file of a later version (`writes_the_file_of_this_schema` in upgrades/main.rs), with a program of that commit.
-- Dumped at 1795125259906284
CREATE SCHEMA upgraded;
CREATE TABLE upgraded.activity (
    number bigint NOT NULL,
    instance bigint NOT NULL,
    execution_id bigint NOT NULL,
    activity_id bigint NOT NULL,
    lane bigint NOT NULL,
    session_id text COLLATE pg_catalog."C",
    hidden_until bigint NOT NULL,
    lock_token text,
    lock_until bigint,
    lock_length bigint,
    lock_node bigint,
    attempts bigint NOT NULL,
    claimed boolean NOT NULL,
    stop_requested boolean NOT NULL,
    lost bigint NOT NULL,
    blamed bigint NOT NULL,
    wait_until bigint,
    data text NOT NULL
);
CREATE TABLE upgraded.custom_status (
    instance bigint NOT NULL,
    status text,
    version bigint NOT NULL
);
CREATE TABLE upgraded.dead_letter (
    number bigint NOT NULL,
    instance_id text COLLATE pg_catalog."C",
    payload text NOT NULL,
    reason text NOT NULL,
    attempts bigint NOT NULL,
    dead_lettered_at bigint NOT NULL,
    kind bigint,
    key text,
    execution_id bigint,
    activity_id bigint,
    lane bigint,
    session_id text
);
CREATE SEQUENCE upgraded.dead_letter_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE upgraded.execution (
    instance bigint NOT NULL,
    execution_id bigint NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    output text,
    pinned_major bigint,
    pinned_minor bigint,
    pinned_patch bigint,
    last_event_id bigint NOT NULL,
    turns bigint NOT NULL,
    started_at bigint NOT NULL,
    completed_at bigint
);
CREATE TABLE upgraded.history (
    instance bigint NOT NULL,
    execution_id bigint NOT NULL,
    event_id bigint NOT NULL,
    data text NOT NULL
);
CREATE TABLE upgraded.instance (
    number bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    known boolean NOT NULL,
    name text,
    version text,
    parent text COLLATE pg_catalog."C",
    status text COLLATE pg_catalog."C",
    execution_id bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    lock_token text,
    lock_until bigint,
    lock_length bigint,
    lock_node bigint,
    extent_kind text,
    extent_at bigint,
    extent_up_to bigint,
    extent_mark bigint,
    suspect boolean NOT NULL,
    lost bigint NOT NULL,
    blamed bigint NOT NULL,
    route bigint,
    ready_number bigint,
    is_stray boolean NOT NULL,
    wait_until bigint,
    CONSTRAINT instance_extent CHECK (
CASE extent_kind
    WHEN 'visible'::text THEN ((lock_token IS NOT NULL) AND (extent_at IS NOT NULL) AND (extent_up_to IS NOT NULL))
    WHEN 'marked'::text THEN ((lock_token IS NOT NULL) AND (extent_mark IS NOT NULL))
    ELSE (lock_token IS NULL)
END)
);
CREATE TABLE upgraded.kv (
    instance bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL,
    last_updated_at_ms bigint NOT NULL
);
CREATE TABLE upgraded.kv_change (
    instance bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    value text,
    last_updated_at_ms bigint NOT NULL
);
CREATE TABLE upgraded.lane (
    id bigint NOT NULL,
    definition text NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE upgraded.lane ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME upgraded.lane_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE upgraded.message (
    instance bigint NOT NULL,
    due_at bigint NOT NULL,
    number bigint NOT NULL,
    kind bigint NOT NULL,
    key text COLLATE pg_catalog."C",
    enqueued_at bigint NOT NULL,
    hidden_until bigint NOT NULL,
    attempts bigint NOT NULL,
    mark bigint,
    data text NOT NULL
);
CREATE TABLE upgraded.meta (
    only_row boolean DEFAULT true NOT NULL,
    schema_version bigint NOT NULL,
    CONSTRAINT meta_only_row_check CHECK (only_row)
);
CREATE TABLE upgraded.node (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    started_at bigint NOT NULL,
    seen_at bigint NOT NULL,
    session_owners text NOT NULL,
    capability text NOT NULL
);
ALTER TABLE upgraded.node ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME upgraded.node_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE upgraded.node_lock (
    name text NOT NULL COLLATE pg_catalog."C",
    tried_at bigint NOT NULL
);
CREATE SEQUENCE upgraded.number_block
    START WITH 1
    INCREMENT BY 1024
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE upgraded.removal (
    number bigint NOT NULL,
    task bigint NOT NULL,
    instance bigint NOT NULL,
    execution_id bigint
);
CREATE TABLE upgraded.removal_task (
    number bigint NOT NULL,
    remove_at bigint NOT NULL
);
CREATE TABLE upgraded.route (
    id bigint NOT NULL,
    definition text NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE upgraded.route ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME upgraded.route_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE upgraded.session (
    id text NOT NULL COLLATE pg_catalog."C",
    owner text NOT NULL COLLATE pg_catalog."C",
    lock_until bigint NOT NULL,
    lock_length bigint NOT NULL,
    last_activity_at bigint NOT NULL
);
INSERT INTO upgraded.activity VALUES (5121, 2049, 1, 2, 1, NULL, 0, '5121-4238e1550b344930b0599bb09baeb29e', 1795211659650549, 86400000000, 1, 1, true, false, 0, 0, 1795211659650549, '{"ActivityExecute":{"instance":"activity-held","execution_id":1,"id":2,"name":"Hang","input":"tea"}}');
INSERT INTO upgraded.activity VALUES (6145, 4097, 1, 2, 2, NULL, 0, NULL, NULL, NULL, NULL, 0, false, false, 0, 0, NULL, '{"ActivityExecute":{"instance":"activity-queued","execution_id":1,"id":2,"name":"Unknown","input":"tea"}}');
INSERT INTO upgraded.activity VALUES (9217, 5122, 1, 2, 3, NULL, 0, NULL, NULL, NULL, NULL, 0, false, false, 0, 0, NULL, '{"ActivityExecute":{"instance":"activity-tagged","execution_id":1,"id":2,"name":"Echo","input":"tea","tag":"gpu"}}');
INSERT INTO upgraded.activity VALUES (9218, 6146, 1, 2, 1, 'kettle', 0, '9218-65a80204f9cd4418b7f2cb51438aecd0', 1795211659686230, 86400000000, 1, 1, true, false, 0, 0, 1795211659686230, '{"ActivityExecute":{"instance":"activity-in-session","execution_id":1,"id":2,"name":"Hang","input":"tea","session_id":"kettle"}}');
INSERT INTO upgraded.custom_status VALUES (17412, 'filling', 1);
INSERT INTO upgraded.dead_letter VALUES (1, 'nobody', '{"QueueMessage":{"instance":"nobody","name":"orders","data":"lost"}}', 'no such instance', 0, 1795125259834191, 2, NULL, NULL, NULL, NULL, NULL);
INSERT INTO upgraded.execution VALUES (2049, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125259650549, NULL);
INSERT INTO upgraded.execution VALUES (4097, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125259665769, NULL);
INSERT INTO upgraded.execution VALUES (5122, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125259686230, NULL);
INSERT INTO upgraded.execution VALUES (6146, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125259686230, NULL);
INSERT INTO upgraded.execution VALUES (8193, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125259706001, NULL);
INSERT INTO upgraded.execution VALUES (11265, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125259729758, NULL);
INSERT INTO upgraded.execution VALUES (13313, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125259745556, NULL);
INSERT INTO upgraded.execution VALUES (14338, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125259745556, NULL);
INSERT INTO upgraded.execution VALUES (16385, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125259766941, NULL);
INSERT INTO upgraded.execution VALUES (17409, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125259766941, NULL);
INSERT INTO upgraded.execution VALUES (17412, 1, 'ContinuedAsNew', '2', 0, 5, 0, 5, 1, 1795125259766941, 1795125259766941);
INSERT INTO upgraded.execution VALUES (17412, 2, 'Running', NULL, 0, 5, 0, 5, 1, 1795125259766941, NULL);
INSERT INTO upgraded.execution VALUES (22529, 1, 'Failed', 'spilled', 0, 5, 0, 2, 1, 1795125259806794, 1795125259806794);
INSERT INTO upgraded.execution VALUES (19457, 1, 'Completed', 'tea', 0, 5, 0, 4, 2, 1795125259790257, 1795125259817479);
INSERT INTO upgraded.execution VALUES (10241, 1, 'Running', NULL, 0, 5, 0, 4, 2, 1795125259729758, NULL);
INSERT INTO upgraded.history VALUES (2049, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"activity-held","execution_id":1,"timestamp_ms":1795125259637,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Activity","version":"1.0.0","input":"Hang","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (2049, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"activity-held","execution_id":1,"timestamp_ms":1795125259637,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Hang","input":"tea"}');
INSERT INTO upgraded.history VALUES (4097, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"activity-queued","execution_id":1,"timestamp_ms":1795125259637,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Activity","version":"1.0.0","input":"Unknown","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (4097, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"activity-queued","execution_id":1,"timestamp_ms":1795125259637,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Unknown","input":"tea"}');
INSERT INTO upgraded.history VALUES (5122, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"activity-tagged","execution_id":1,"timestamp_ms":1795125259674,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Tagged","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (5122, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"activity-tagged","execution_id":1,"timestamp_ms":1795125259674,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Echo","input":"tea","tag":"gpu"}');
INSERT INTO upgraded.history VALUES (6146, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"activity-in-session","execution_id":1,"timestamp_ms":1795125259674,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"InSession","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (6146, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"activity-in-session","execution_id":1,"timestamp_ms":1795125259674,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Hang","input":"tea","session_id":"kettle"}');
INSERT INTO upgraded.history VALUES (8193, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"event","execution_id":1,"timestamp_ms":1795125259694,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Event","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (8193, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"event","execution_id":1,"timestamp_ms":1795125259694,"duroxide_version":"0.5.0","type":"ExternalSubscribed","name":"go"}');
INSERT INTO upgraded.history VALUES (10241, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"queue","execution_id":1,"timestamp_ms":1795125259714,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Queue","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (10241, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"queue","execution_id":1,"timestamp_ms":1795125259714,"duroxide_version":"0.5.0","type":"ExternalSubscribedPersistent","name":"orders"}');
INSERT INTO upgraded.history VALUES (11265, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"timer","execution_id":1,"timestamp_ms":1795125259714,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Timer","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (11265, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"timer","execution_id":1,"timestamp_ms":1795125259714,"duroxide_version":"0.5.0","type":"TimerCreated","fire_at_ms":1795128859715}');
INSERT INTO upgraded.history VALUES (13313, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"turn-held","execution_id":1,"timestamp_ms":1795125259737,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Turn","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (13313, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"turn-held","execution_id":1,"timestamp_ms":1795125259738,"duroxide_version":"0.5.0","type":"ExternalSubscribed","name":"first"}');
INSERT INTO upgraded.history VALUES (14338, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"parent","execution_id":1,"timestamp_ms":1795125259738,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Parent","version":"1.0.0","input":"Event","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (14338, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"parent","execution_id":1,"timestamp_ms":1795125259738,"duroxide_version":"0.5.0","type":"SubOrchestrationScheduled","name":"Event","instance":"sub::2","input":""}');
INSERT INTO upgraded.history VALUES (16385, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"parent-of-queued","execution_id":1,"timestamp_ms":1795125259749,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Parent","version":"1.0.0","input":"Late","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (16385, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"parent-of-queued","execution_id":1,"timestamp_ms":1795125259749,"duroxide_version":"0.5.0","type":"SubOrchestrationScheduled","name":"Late","instance":"sub::2","input":""}');
INSERT INTO upgraded.history VALUES (17409, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"parent::sub::2","execution_id":1,"timestamp_ms":1795125259749,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Event","version":"1.0.0","input":"","parent_instance":"parent","parent_id":2,"parent_execution_id":1}');
INSERT INTO upgraded.history VALUES (17409, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"parent::sub::2","execution_id":1,"timestamp_ms":1795125259749,"duroxide_version":"0.5.0","type":"ExternalSubscribed","name":"go"}');
INSERT INTO upgraded.history VALUES (17412, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125259749,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Values","version":"1.0.0","input":"1","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (17412, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125259749,"duroxide_version":"0.5.0","type":"KeyValueSet","key":"kept","value":"one","last_updated_at_ms":1795125259749}');
INSERT INTO upgraded.history VALUES (17412, 1, 3, '{"event_id":3,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125259749,"duroxide_version":"0.5.0","type":"KeyValueSet","key":"cleared","value":"one","last_updated_at_ms":1795125259749}');
INSERT INTO upgraded.history VALUES (17412, 1, 4, '{"event_id":4,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125259749,"duroxide_version":"0.5.0","type":"KeyValueSet","key":"changed","value":"one","last_updated_at_ms":1795125259749}');
INSERT INTO upgraded.history VALUES (17412, 1, 5, '{"event_id":5,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125259749,"duroxide_version":"0.5.0","type":"OrchestrationContinuedAsNew","input":"2"}');
INSERT INTO upgraded.history VALUES (17412, 2, 1, '{"event_id":1,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125259749,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Values","version":"1.0.0","input":"2","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (17412, 2, 2, '{"event_id":2,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125259778,"duroxide_version":"0.5.0","type":"KeyValueSet","key":"changed","value":"two","last_updated_at_ms":1795125259778}');
INSERT INTO upgraded.history VALUES (17412, 2, 3, '{"event_id":3,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125259778,"duroxide_version":"0.5.0","type":"KeyValueCleared","key":"cleared"}');
INSERT INTO upgraded.history VALUES (17412, 2, 4, '{"event_id":4,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125259778,"duroxide_version":"0.5.0","type":"CustomStatusUpdated","status":"filling"}');
INSERT INTO upgraded.history VALUES (17412, 2, 5, '{"event_id":5,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125259778,"duroxide_version":"0.5.0","type":"ExternalSubscribed","name":"go"}');
INSERT INTO upgraded.history VALUES (19457, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"done","execution_id":1,"timestamp_ms":1795125259778,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Activity","version":"1.0.0","input":"Echo","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (19457, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"done","execution_id":1,"timestamp_ms":1795125259778,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Echo","input":"tea"}');
INSERT INTO upgraded.history VALUES (22529, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"failed","execution_id":1,"timestamp_ms":1795125259798,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Fails","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (22529, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"failed","execution_id":1,"timestamp_ms":1795125259798,"duroxide_version":"0.5.0","type":"OrchestrationFailed","details":{"Application":{"kind":"OrchestrationFailed","message":"spilled","retryable":false}}}');
INSERT INTO upgraded.history VALUES (19457, 1, 3, '{"event_id":3,"source_event_id":2,"instance_id":"done","execution_id":1,"timestamp_ms":1795125259814,"duroxide_version":"0.5.0","type":"ActivityCompleted","result":"tea"}');
INSERT INTO upgraded.history VALUES (19457, 1, 4, '{"event_id":4,"source_event_id":null,"instance_id":"done","execution_id":1,"timestamp_ms":1795125259814,"duroxide_version":"0.5.0","type":"OrchestrationCompleted","output":"tea"}');
INSERT INTO upgraded.history VALUES (10241, 1, 3, '{"event_id":3,"source_event_id":null,"instance_id":"queue","execution_id":1,"timestamp_ms":1795125259825,"duroxide_version":"0.5.0","type":"ExternalEventPersistent","name":"orders","data":"tea"}');
INSERT INTO upgraded.history VALUES (10241, 1, 4, '{"event_id":4,"source_event_id":null,"instance_id":"queue","execution_id":1,"timestamp_ms":1795125259825,"duroxide_version":"0.5.0","type":"ExternalSubscribedPersistent","name":"orders"}');
INSERT INTO upgraded.instance VALUES (2049, 'activity-held', true, 'Activity', '1.0.0', NULL, 'Running', 1, 1795125259650549, 1795125259650549, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 2, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (4097, 'activity-queued', true, 'Activity', '1.0.0', NULL, 'Running', 1, 1795125259665769, 1795125259665769, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 2, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (5122, 'activity-tagged', true, 'Tagged', '1.0.0', NULL, 'Running', 1, 1795125259686230, 1795125259686230, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 7, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (6146, 'activity-in-session', true, 'InSession', '1.0.0', NULL, 'Running', 1, 1795125259686230, 1795125259686230, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 6, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (8193, 'event', true, 'Event', '1.0.0', NULL, 'Running', 1, 1795125259706001, 1795125259706001, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 9, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (11265, 'timer', true, 'Timer', '1.0.0', NULL, 'Running', 1, 1795125259729758, 1795125259729758, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 14, NULL, false, 1795128859715000);
INSERT INTO upgraded.instance VALUES (14338, 'parent', true, 'Parent', '1.0.0', NULL, 'Running', 1, 1795125259745556, 1795125259745556, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 15, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (16385, 'parent-of-queued', true, 'Parent', '1.0.0', NULL, 'Running', 1, 1795125259766941, 1795125259766941, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 15, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (17409, 'parent::sub::2', true, 'Event', '1.0.0', 'parent', 'Running', 1, 1795125259766941, 1795125259766941, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 9, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (20483, 'parent-of-queued::sub::2', false, NULL, NULL, NULL, NULL, 1, 1795125259766941, 1795125259766941, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 18, 20484, false, NULL);
INSERT INTO upgraded.instance VALUES (17412, 'values', true, 'Values', '1.0.0', NULL, 'Running', 2, 1795125259766941, 1795125259790257, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 20, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (23554, 'queued', false, NULL, NULL, NULL, NULL, 1, 1795125259790257, 1795125259790257, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 18, 23555, false, NULL);
INSERT INTO upgraded.instance VALUES (22529, 'failed', true, 'Fails', '1.0.0', NULL, 'Failed', 1, 1795125259806794, 1795125259806794, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 23, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (25604, 'queued-version', false, NULL, NULL, NULL, NULL, 1, 1795125259806794, 1795125259806794, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 22, 25605, false, NULL);
INSERT INTO upgraded.instance VALUES (24577, 'queued-and-cancelled', false, NULL, NULL, NULL, NULL, 1, 1795125259797952, 1795125259797952, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 18, 24578, false, NULL);
INSERT INTO upgraded.instance VALUES (19457, 'done', true, 'Activity', '1.0.0', NULL, 'Completed', 1, 1795125259790257, 1795125259817479, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 2, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (10241, 'queue', true, 'Queue', '1.0.0', NULL, 'Running', 1, 1795125259729758, 1795125259826594, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 13, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (30721, 'unborn', false, NULL, NULL, NULL, NULL, 1, 1795125259830009, 1795125259830009, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, NULL, NULL, false, 1795211659830009);
INSERT INTO upgraded.instance VALUES (13313, 'turn-held', true, 'Turn', '1.0.0', NULL, 'Running', 1, 1795125259745556, 1795125259745556, '13313-4dec228fcf604cbfa571641227bb7993', 1795211659848868, 86400000000, 1, 'visible', 1795125259848868, 32769, NULL, false, 0, 0, 16, NULL, false, 1795211659848868);
INSERT INTO upgraded.kv VALUES (17412, 'changed', 'one', 1795125259749);
INSERT INTO upgraded.kv VALUES (17412, 'cleared', 'one', 1795125259749);
INSERT INTO upgraded.kv VALUES (17412, 'kept', 'one', 1795125259749);
INSERT INTO upgraded.kv_change VALUES (17412, 'changed', 'two', 1795125259778);
INSERT INTO upgraded.kv_change VALUES (17412, 'cleared', NULL, 0);
INSERT INTO upgraded.lane OVERRIDING SYSTEM VALUE VALUES (1, '{"tag":null,"name":"Hang"}');
INSERT INTO upgraded.lane OVERRIDING SYSTEM VALUE VALUES (2, '{"tag":null,"name":"Unknown"}');
INSERT INTO upgraded.lane OVERRIDING SYSTEM VALUE VALUES (3, '{"tag":"gpu","name":"Echo"}');
INSERT INTO upgraded.lane OVERRIDING SYSTEM VALUE VALUES (4, '{"tag":null,"name":"Echo"}');
INSERT INTO upgraded.message VALUES (11265, 1795128859715000, 14337, 3, 'TF/1/2', 1795125259729758, 0, 0, NULL, '{"TimerFired":{"instance":"timer","execution_id":1,"id":2,"fire_at_ms":1795128859715}}');
INSERT INTO upgraded.message VALUES (20483, 0, 20485, 0, 'ST/parent-of-queued/1/2', 1795125259766941, 0, 0, NULL, '{"StartOrchestration":{"instance":"parent-of-queued::sub::2","orchestration":"Late","input":"","version":null,"parent_instance":"parent-of-queued","parent_id":2,"parent_execution_id":1,"execution_id":1}}');
INSERT INTO upgraded.message VALUES (23554, 0, 23556, 0, NULL, 1795125259790257, 0, 0, NULL, '{"StartOrchestration":{"instance":"queued","orchestration":"Late","input":"","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}');
INSERT INTO upgraded.message VALUES (24577, 0, 24579, 0, NULL, 1795125259797952, 0, 0, NULL, '{"StartOrchestration":{"instance":"queued-and-cancelled","orchestration":"Late","input":"","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}');
INSERT INTO upgraded.message VALUES (25604, 0, 25606, 0, NULL, 1795125259806794, 0, 0, NULL, '{"StartOrchestration":{"instance":"queued-version","orchestration":"Event","input":"","version":"2.0.0","parent_instance":null,"parent_id":null,"execution_id":1}}');
INSERT INTO upgraded.message VALUES (24577, 0, 26625, 4, NULL, 1795125259814214, 0, 0, NULL, '{"CancelInstance":{"instance":"queued-and-cancelled","reason":"no longer needed"}}');
INSERT INTO upgraded.message VALUES (30721, 0, 30722, 4, NULL, 1795125259830009, 0, 0, NULL, '{"ExternalRaised":{"instance":"unborn","name":"go","data":"early"}}');
INSERT INTO upgraded.message VALUES (13313, 0, 32769, 4, NULL, 1795125259848868, 0, 0, NULL, '{"ExternalRaised":{"instance":"turn-held","name":"first","data":"one"}}');
INSERT INTO upgraded.message VALUES (13313, 0, 33793, 4, NULL, 1795125259862579, 0, 0, NULL, '{"ExternalRaised":{"instance":"turn-held","name":"second","data":"two"}}');
INSERT INTO upgraded.meta VALUES (true, 1);
INSERT INTO upgraded.node OVERRIDING SYSTEM VALUE VALUES (1, '43b4182ca2bf4438b206d8ab935fd676', 1795125259589518, 1795125259589518, '["work-0-43b4182ca2bf4438b206d8ab935fd676","work-1-43b4182ca2bf4438b206d8ab935fd676","work-2-43b4182ca2bf4438b206d8ab935fd676","work-3-43b4182ca2bf4438b206d8ab935fd676"]', '{"replay_versions":[{"min":"0.0.0","max":"0.5.0"}],"orchestrations":{"Activity":["1.0.0"],"Event":["1.0.0"],"Fails":["1.0.0"],"InSession":["1.0.0"],"Parent":["1.0.0"],"Queue":["1.0.0"],"Tagged":["1.0.0"],"Timer":["1.0.0"],"Turn":["1.0.0"],"Values":["1.0.0"]},"activities":["Echo","Hang","__duroxide_syscall:get_kv_value","__duroxide_syscall:new_guid","__duroxide_syscall:utc_now_ms"],"tags":"DefaultOnly","asks_for_registered_only":true}');
INSERT INTO upgraded.node_lock VALUES ('43b4182ca2bf4438b206d8ab935fd676', 1795125259571743);
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (1, '{"name":"Activity","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (2, '{"name":"Activity","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (3, '{"name":"Tagged","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (4, '{"name":"InSession","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (5, '{"name":"Event","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (6, '{"name":"InSession","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (7, '{"name":"Tagged","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (8, '{"name":"Queue","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (9, '{"name":"Event","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (10, '{"name":"Timer","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (11, '{"name":"Turn","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (12, '{"name":"Parent","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (13, '{"name":"Queue","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (14, '{"name":"Timer","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (15, '{"name":"Parent","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (16, '{"name":"Turn","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (17, '{"name":"Values","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (18, '{"name":"Late","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (19, '{"name":"Values","version":"1.0.0","pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (20, '{"name":"Values","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (21, '{"name":"Fails","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (22, '{"name":"Event","version":"2.0.0","pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (23, '{"name":"Fails","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.session VALUES ('kettle', 'work-3-43b4182ca2bf4438b206d8ab935fd676', 1795211659686230, 86400000000, 1795125259686230);
SELECT pg_catalog.setval('upgraded.dead_letter_number', 1, true);
SELECT pg_catalog.setval('upgraded.lane_id_seq', 4, true);
SELECT pg_catalog.setval('upgraded.node_id_seq', 1, true);
SELECT pg_catalog.setval('upgraded.number_block', 33793, true);
SELECT pg_catalog.setval('upgraded.route_id_seq', 23, true);
ALTER TABLE ONLY upgraded.activity
    ADD CONSTRAINT activity_once UNIQUE (instance, execution_id, activity_id);
ALTER TABLE ONLY upgraded.activity
    ADD CONSTRAINT activity_pkey PRIMARY KEY (number);
ALTER TABLE ONLY upgraded.custom_status
    ADD CONSTRAINT custom_status_pkey PRIMARY KEY (instance);
ALTER TABLE ONLY upgraded.dead_letter
    ADD CONSTRAINT dead_letter_pkey PRIMARY KEY (number);
ALTER TABLE ONLY upgraded.execution
    ADD CONSTRAINT execution_pkey PRIMARY KEY (instance, execution_id);
ALTER TABLE ONLY upgraded.history
    ADD CONSTRAINT history_event_once PRIMARY KEY (instance, execution_id, event_id);
ALTER TABLE ONLY upgraded.instance
    ADD CONSTRAINT instance_id_once UNIQUE (id);
ALTER TABLE ONLY upgraded.instance
    ADD CONSTRAINT instance_pkey PRIMARY KEY (number);
ALTER TABLE ONLY upgraded.kv_change
    ADD CONSTRAINT kv_change_pkey PRIMARY KEY (instance, key);
ALTER TABLE ONLY upgraded.kv
    ADD CONSTRAINT kv_pkey PRIMARY KEY (instance, key);
ALTER TABLE ONLY upgraded.lane
    ADD CONSTRAINT lane_once UNIQUE (definition);
ALTER TABLE ONLY upgraded.lane
    ADD CONSTRAINT lane_pkey PRIMARY KEY (id);
ALTER TABLE ONLY upgraded.message
    ADD CONSTRAINT message_pkey PRIMARY KEY (instance, due_at, number);
ALTER TABLE ONLY upgraded.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY upgraded.node_lock
    ADD CONSTRAINT node_lock_pkey PRIMARY KEY (name);
ALTER TABLE ONLY upgraded.node
    ADD CONSTRAINT node_name_once UNIQUE (name);
ALTER TABLE ONLY upgraded.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (id);
ALTER TABLE ONLY upgraded.removal
    ADD CONSTRAINT removal_pkey PRIMARY KEY (number);
ALTER TABLE ONLY upgraded.removal_task
    ADD CONSTRAINT removal_task_pkey PRIMARY KEY (number);
ALTER TABLE ONLY upgraded.route
    ADD CONSTRAINT route_once UNIQUE (definition);
ALTER TABLE ONLY upgraded.route
    ADD CONSTRAINT route_pkey PRIMARY KEY (id);
ALTER TABLE ONLY upgraded.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (id);
CREATE INDEX activity_ready ON upgraded.activity USING btree (lane, number) WHERE ((wait_until IS NULL) AND (session_id IS NULL));
CREATE INDEX activity_session ON upgraded.activity USING btree (session_id) WHERE (session_id IS NOT NULL);
CREATE INDEX activity_session_ready ON upgraded.activity USING btree (session_id, lane, number) WHERE ((wait_until IS NULL) AND (session_id IS NOT NULL));
CREATE INDEX activity_wait ON upgraded.activity USING btree (wait_until, number) WHERE (wait_until IS NOT NULL);
CREATE INDEX dead_letter_instance ON upgraded.dead_letter USING btree (instance_id);
CREATE INDEX instance_parent ON upgraded.instance USING btree (parent, number) WHERE (parent IS NOT NULL);
CREATE INDEX instance_ready ON upgraded.instance USING btree (route, ready_number) WHERE ((ready_number IS NOT NULL) AND (NOT is_stray));
CREATE INDEX instance_status ON upgraded.instance USING btree (status, number) WHERE known;
CREATE INDEX instance_stray ON upgraded.instance USING btree (number) WHERE is_stray;
CREATE INDEX instance_wait ON upgraded.instance USING btree (wait_until, number) WHERE (wait_until IS NOT NULL);
CREATE INDEX message_child_start ON upgraded.message USING btree (key) WHERE ((key >= 'ST/'::text) AND (key < 'ST0'::text));
CREATE UNIQUE INDEX message_key_once ON upgraded.message USING btree (instance, key) WHERE (key IS NOT NULL);
CREATE INDEX message_start ON upgraded.message USING btree (instance, kind, due_at, number) WHERE (kind <= 1);
CREATE INDEX removal_of_execution ON upgraded.removal USING btree (instance, execution_id);
CREATE INDEX removal_of_task ON upgraded.removal USING btree (task, number);
CREATE INDEX removal_task_due ON upgraded.removal_task USING btree (remove_at);
CREATE INDEX session_end ON upgraded.session USING btree (lock_until);
CREATE INDEX session_owner ON upgraded.session USING btree (owner);
