-- A schema of version 3 with instances inside, as commit ffb5ec2c left it, the last one before migration 0004.
-- Made like the file of a later version (`writes_the_file_of_this_schema` in upgrades/main.rs), with a program of that commit.
-- Dumped at 1795125264755339
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
    data text NOT NULL,
    revision bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='0');
CREATE TABLE upgraded.custom_status (
    instance bigint NOT NULL,
    status text,
    version bigint NOT NULL
)
WITH (fillfactor='70');
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
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='5000');
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
    revision bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000');
CREATE TABLE upgraded.intake (
    number bigint NOT NULL,
    kind text NOT NULL,
    instance_id text NOT NULL,
    name text NOT NULL,
    version text,
    data text NOT NULL,
    CONSTRAINT intake_instance_id CHECK (((octet_length(instance_id) >= 1) AND (octet_length(instance_id) <= 2048))),
    CONSTRAINT intake_kind CHECK ((kind = ANY (ARRAY['start'::text, 'raise'::text, 'enqueue'::text])))
);
ALTER TABLE upgraded.intake ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME upgraded.intake_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
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
)
WITH (fillfactor='90', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='0');
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
)
WITH (fillfactor='50');
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
)
WITH (fillfactor='50');
CREATE SEQUENCE upgraded.number_blocks
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
INSERT INTO upgraded.activity VALUES (16385, 6145, 1, 2, 2, NULL, 0, NULL, NULL, NULL, NULL, 0, false, false, 0, 0, NULL, '{"ActivityExecute":{"instance":"activity-queued","execution_id":1,"id":2,"name":"Unknown","input":"tea"}}', 16390);
INSERT INTO upgraded.activity VALUES (16386, 1025, 1, 2, 1, NULL, 0, '16386-5d34774fbfd24a71a8c709ad785cf0db', 1795211664486064, 86400000000, 1, 1, true, false, 0, 0, 1795211664486064, '{"ActivityExecute":{"instance":"activity-held","execution_id":1,"id":2,"name":"Hang","input":"tea"}}', 16390);
INSERT INTO upgraded.activity VALUES (26625, 11265, 1, 2, 3, NULL, 0, NULL, NULL, NULL, NULL, 0, false, false, 0, 0, NULL, '{"ActivityExecute":{"instance":"activity-tagged","execution_id":1,"id":2,"name":"Echo","input":"tea","tag":"gpu"}}', 26630);
INSERT INTO upgraded.activity VALUES (26626, 16387, 1, 2, 1, 'kettle', 0, '26626-609318f3aee1438093199daef9a544ca', 1795211664509757, 86400000000, 1, 1, true, false, 0, 0, 1795211664509757, '{"ActivityExecute":{"instance":"activity-in-session","execution_id":1,"id":2,"name":"Hang","input":"tea","session_id":"kettle"}}', 26630);
INSERT INTO upgraded.custom_status VALUES (52228, 'filling', 1);
INSERT INTO upgraded.dead_letter VALUES (1, 'nobody', '{"QueueMessage":{"instance":"nobody","name":"orders","data":"lost"}}', 'no such instance', 0, 1795125264646135, 2, NULL, NULL, NULL, NULL, NULL);
INSERT INTO upgraded.execution VALUES (1025, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125264486064, NULL);
INSERT INTO upgraded.execution VALUES (6145, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125264486064, NULL);
INSERT INTO upgraded.execution VALUES (11265, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125264509757, NULL);
INSERT INTO upgraded.execution VALUES (16387, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125264509757, NULL);
INSERT INTO upgraded.execution VALUES (21505, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125264529800, NULL);
INSERT INTO upgraded.execution VALUES (31745, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125264553653, NULL);
INSERT INTO upgraded.execution VALUES (36865, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125264553653, NULL);
INSERT INTO upgraded.execution VALUES (41985, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125264570015, NULL);
INSERT INTO upgraded.execution VALUES (47107, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125264581691, NULL);
INSERT INTO upgraded.execution VALUES (52225, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125264581691, NULL);
INSERT INTO upgraded.execution VALUES (52228, 1, 'ContinuedAsNew', '2', 0, 5, 0, 5, 1, 1795125264581691, 1795125264581691);
INSERT INTO upgraded.execution VALUES (52228, 2, 'Running', NULL, 0, 5, 0, 5, 1, 1795125264581691, NULL);
INSERT INTO upgraded.execution VALUES (57350, 1, 'Failed', 'spilled', 0, 5, 0, 2, 1, 1795125264606076, 1795125264606076);
INSERT INTO upgraded.execution VALUES (52232, 1, 'Completed', 'tea', 0, 5, 0, 4, 2, 1795125264606076, 1795125264624451);
INSERT INTO upgraded.execution VALUES (26627, 1, 'Running', NULL, 0, 5, 0, 4, 2, 1795125264529800, NULL);
INSERT INTO upgraded.history VALUES (1025, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"activity-held","execution_id":1,"timestamp_ms":1795125264470,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Activity","version":"1.0.0","input":"Hang","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (1025, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"activity-held","execution_id":1,"timestamp_ms":1795125264470,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Hang","input":"tea"}');
INSERT INTO upgraded.history VALUES (6145, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"activity-queued","execution_id":1,"timestamp_ms":1795125264469,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Activity","version":"1.0.0","input":"Unknown","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (6145, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"activity-queued","execution_id":1,"timestamp_ms":1795125264470,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Unknown","input":"tea"}');
INSERT INTO upgraded.history VALUES (11265, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"activity-tagged","execution_id":1,"timestamp_ms":1795125264494,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Tagged","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (11265, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"activity-tagged","execution_id":1,"timestamp_ms":1795125264494,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Echo","input":"tea","tag":"gpu"}');
INSERT INTO upgraded.history VALUES (16387, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"activity-in-session","execution_id":1,"timestamp_ms":1795125264494,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"InSession","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (16387, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"activity-in-session","execution_id":1,"timestamp_ms":1795125264494,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Hang","input":"tea","session_id":"kettle"}');
INSERT INTO upgraded.history VALUES (21505, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"event","execution_id":1,"timestamp_ms":1795125264519,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Event","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (21505, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"event","execution_id":1,"timestamp_ms":1795125264519,"duroxide_version":"0.5.0","type":"ExternalSubscribed","name":"go"}');
INSERT INTO upgraded.history VALUES (26627, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"queue","execution_id":1,"timestamp_ms":1795125264518,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Queue","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (26627, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"queue","execution_id":1,"timestamp_ms":1795125264518,"duroxide_version":"0.5.0","type":"ExternalSubscribedPersistent","name":"orders"}');
INSERT INTO upgraded.history VALUES (31745, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"timer","execution_id":1,"timestamp_ms":1795125264539,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Timer","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (31745, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"timer","execution_id":1,"timestamp_ms":1795125264539,"duroxide_version":"0.5.0","type":"TimerCreated","fire_at_ms":1795128864540}');
INSERT INTO upgraded.history VALUES (36865, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"turn-held","execution_id":1,"timestamp_ms":1795125264539,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Turn","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (36865, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"turn-held","execution_id":1,"timestamp_ms":1795125264539,"duroxide_version":"0.5.0","type":"ExternalSubscribed","name":"first"}');
INSERT INTO upgraded.history VALUES (41985, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"parent","execution_id":1,"timestamp_ms":1795125264566,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Parent","version":"1.0.0","input":"Event","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (41985, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"parent","execution_id":1,"timestamp_ms":1795125264566,"duroxide_version":"0.5.0","type":"SubOrchestrationScheduled","name":"Event","instance":"sub::2","input":""}');
INSERT INTO upgraded.history VALUES (47107, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"parent-of-queued","execution_id":1,"timestamp_ms":1795125264573,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Parent","version":"1.0.0","input":"Late","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (47107, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"parent-of-queued","execution_id":1,"timestamp_ms":1795125264573,"duroxide_version":"0.5.0","type":"SubOrchestrationScheduled","name":"Late","instance":"sub::2","input":""}');
INSERT INTO upgraded.history VALUES (52225, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"parent::sub::2","execution_id":1,"timestamp_ms":1795125264573,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Event","version":"1.0.0","input":"","parent_instance":"parent","parent_id":2,"parent_execution_id":1}');
INSERT INTO upgraded.history VALUES (52225, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"parent::sub::2","execution_id":1,"timestamp_ms":1795125264573,"duroxide_version":"0.5.0","type":"ExternalSubscribed","name":"go"}');
INSERT INTO upgraded.history VALUES (52228, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125264573,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Values","version":"1.0.0","input":"1","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (52228, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125264573,"duroxide_version":"0.5.0","type":"KeyValueSet","key":"kept","value":"one","last_updated_at_ms":1795125264573}');
INSERT INTO upgraded.history VALUES (52228, 1, 3, '{"event_id":3,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125264573,"duroxide_version":"0.5.0","type":"KeyValueSet","key":"cleared","value":"one","last_updated_at_ms":1795125264573}');
INSERT INTO upgraded.history VALUES (52228, 1, 4, '{"event_id":4,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125264573,"duroxide_version":"0.5.0","type":"KeyValueSet","key":"changed","value":"one","last_updated_at_ms":1795125264573}');
INSERT INTO upgraded.history VALUES (52228, 1, 5, '{"event_id":5,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125264573,"duroxide_version":"0.5.0","type":"OrchestrationContinuedAsNew","input":"2"}');
INSERT INTO upgraded.history VALUES (52228, 2, 1, '{"event_id":1,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125264573,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Values","version":"1.0.0","input":"2","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (52228, 2, 2, '{"event_id":2,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125264589,"duroxide_version":"0.5.0","type":"KeyValueSet","key":"changed","value":"two","last_updated_at_ms":1795125264589}');
INSERT INTO upgraded.history VALUES (52228, 2, 3, '{"event_id":3,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125264589,"duroxide_version":"0.5.0","type":"KeyValueCleared","key":"cleared"}');
INSERT INTO upgraded.history VALUES (52228, 2, 4, '{"event_id":4,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125264589,"duroxide_version":"0.5.0","type":"CustomStatusUpdated","status":"filling"}');
INSERT INTO upgraded.history VALUES (52228, 2, 5, '{"event_id":5,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125264589,"duroxide_version":"0.5.0","type":"ExternalSubscribed","name":"go"}');
INSERT INTO upgraded.history VALUES (52232, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"done","execution_id":1,"timestamp_ms":1795125264589,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Activity","version":"1.0.0","input":"Echo","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (52232, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"done","execution_id":1,"timestamp_ms":1795125264589,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Echo","input":"tea"}');
INSERT INTO upgraded.history VALUES (57350, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"failed","execution_id":1,"timestamp_ms":1795125264589,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Fails","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (57350, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"failed","execution_id":1,"timestamp_ms":1795125264589,"duroxide_version":"0.5.0","type":"OrchestrationFailed","details":{"Application":{"kind":"OrchestrationFailed","message":"spilled","retryable":false}}}');
INSERT INTO upgraded.history VALUES (52232, 1, 3, '{"event_id":3,"source_event_id":2,"instance_id":"done","execution_id":1,"timestamp_ms":1795125264625,"duroxide_version":"0.5.0","type":"ActivityCompleted","result":"tea"}');
INSERT INTO upgraded.history VALUES (52232, 1, 4, '{"event_id":4,"source_event_id":null,"instance_id":"done","execution_id":1,"timestamp_ms":1795125264625,"duroxide_version":"0.5.0","type":"OrchestrationCompleted","output":"tea"}');
INSERT INTO upgraded.history VALUES (26627, 1, 3, '{"event_id":3,"source_event_id":null,"instance_id":"queue","execution_id":1,"timestamp_ms":1795125264637,"duroxide_version":"0.5.0","type":"ExternalEventPersistent","name":"orders","data":"tea"}');
INSERT INTO upgraded.history VALUES (26627, 1, 4, '{"event_id":4,"source_event_id":null,"instance_id":"queue","execution_id":1,"timestamp_ms":1795125264637,"duroxide_version":"0.5.0","type":"ExternalSubscribedPersistent","name":"orders"}');
INSERT INTO upgraded.instance VALUES (1025, 'activity-held', true, 'Activity', '1.0.0', NULL, 'Running', 1, 1795125264486064, 1795125264486064, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 3, NULL, false, NULL, 16390);
INSERT INTO upgraded.instance VALUES (6145, 'activity-queued', true, 'Activity', '1.0.0', NULL, 'Running', 1, 1795125264486064, 1795125264486064, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 3, NULL, false, NULL, 16390);
INSERT INTO upgraded.instance VALUES (11265, 'activity-tagged', true, 'Tagged', '1.0.0', NULL, 'Running', 1, 1795125264509757, 1795125264509757, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 8, NULL, false, NULL, 26630);
INSERT INTO upgraded.instance VALUES (16387, 'activity-in-session', true, 'InSession', '1.0.0', NULL, 'Running', 1, 1795125264509757, 1795125264509757, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 6, NULL, false, NULL, 26630);
INSERT INTO upgraded.instance VALUES (21505, 'event', true, 'Event', '1.0.0', NULL, 'Running', 1, 1795125264529800, 1795125264529800, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 10, NULL, false, NULL, 36868);
INSERT INTO upgraded.instance VALUES (31745, 'timer', true, 'Timer', '1.0.0', NULL, 'Running', 1, 1795125264553653, 1795125264553653, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 14, NULL, false, 1795128864540000, 47106);
INSERT INTO upgraded.instance VALUES (41985, 'parent', true, 'Parent', '1.0.0', NULL, 'Running', 1, 1795125264570015, 1795125264570015, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 16, NULL, false, NULL, 52231);
INSERT INTO upgraded.instance VALUES (47107, 'parent-of-queued', true, 'Parent', '1.0.0', NULL, 'Running', 1, 1795125264581691, 1795125264581691, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 16, NULL, false, NULL, 57353);
INSERT INTO upgraded.instance VALUES (52225, 'parent::sub::2', true, 'Event', '1.0.0', 'parent', 'Running', 1, 1795125264581691, 1795125264581691, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 10, NULL, false, NULL, 57353);
INSERT INTO upgraded.instance VALUES (57347, 'parent-of-queued::sub::2', false, NULL, NULL, NULL, NULL, 1, 1795125264581691, 1795125264581691, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 19, 57348, false, NULL, 57353);
INSERT INTO upgraded.instance VALUES (57354, 'queued', false, NULL, NULL, NULL, NULL, 1, 1795125264585634, 1795125264585634, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 19, 57355, false, NULL, 57357);
INSERT INTO upgraded.instance VALUES (52228, 'values', true, 'Values', '1.0.0', NULL, 'Running', 2, 1795125264581691, 1795125264606076, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 21, NULL, false, NULL, 62469);
INSERT INTO upgraded.instance VALUES (57350, 'failed', true, 'Fails', '1.0.0', NULL, 'Failed', 1, 1795125264606076, 1795125264606076, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 22, NULL, false, NULL, 62469);
INSERT INTO upgraded.instance VALUES (52232, 'done', true, 'Activity', '1.0.0', NULL, 'Completed', 1, 1795125264606076, 1795125264624451, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 3, NULL, false, NULL, 67594);
INSERT INTO upgraded.instance VALUES (26627, 'queue', true, 'Queue', '1.0.0', NULL, 'Running', 1, 1795125264529800, 1795125264635697, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 11, NULL, false, NULL, 67598);
INSERT INTO upgraded.instance VALUES (36865, 'turn-held', true, 'Turn', '1.0.0', NULL, 'Running', 1, 1795125264553653, 1795125264553653, '36865-5d991e81a1a34293b2344fc43e1b3c3a', 1795211664656156, 86400000000, 1, 'visible', 1795125264656156, 77829, NULL, false, 0, 0, 15, NULL, false, 1795211664656156, 77833);
INSERT INTO upgraded.instance VALUES (67585, 'queued-version', false, NULL, NULL, NULL, NULL, 1, 1795125264617740, 1795125264617740, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 23, 67586, false, NULL, 67588);
INSERT INTO upgraded.instance VALUES (62466, 'queued-and-cancelled', false, NULL, NULL, NULL, NULL, 1, 1795125264606076, 1795125264606076, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 19, 62467, false, NULL, 67593);
INSERT INTO upgraded.instance VALUES (72705, 'unborn', false, NULL, NULL, NULL, NULL, 1, 1795125264642150, 1795125264642150, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, NULL, NULL, false, 1795211664642150, 72707);
INSERT INTO upgraded.intake OVERRIDING SYSTEM VALUE VALUES (1, 'start', 'from-intake', 'Event', NULL, '');
INSERT INTO upgraded.intake OVERRIDING SYSTEM VALUE VALUES (2, 'raise', 'from-intake', 'go', NULL, 'of the intake');
INSERT INTO upgraded.kv VALUES (52228, 'changed', 'one', 1795125264573);
INSERT INTO upgraded.kv VALUES (52228, 'cleared', 'one', 1795125264573);
INSERT INTO upgraded.kv VALUES (52228, 'kept', 'one', 1795125264573);
INSERT INTO upgraded.kv_change VALUES (52228, 'changed', 'two', 1795125264589);
INSERT INTO upgraded.kv_change VALUES (52228, 'cleared', NULL, 0);
INSERT INTO upgraded.lane OVERRIDING SYSTEM VALUE VALUES (1, '{"tag":null,"name":"Hang"}');
INSERT INTO upgraded.lane OVERRIDING SYSTEM VALUE VALUES (2, '{"tag":null,"name":"Unknown"}');
INSERT INTO upgraded.lane OVERRIDING SYSTEM VALUE VALUES (3, '{"tag":"gpu","name":"Echo"}');
INSERT INTO upgraded.lane OVERRIDING SYSTEM VALUE VALUES (4, '{"tag":null,"name":"Echo"}');
INSERT INTO upgraded.message VALUES (31745, 1795128864540000, 47105, 3, 'TF/1/2', 1795125264553653, 0, 0, NULL, '{"TimerFired":{"instance":"timer","execution_id":1,"id":2,"fire_at_ms":1795128864540}}');
INSERT INTO upgraded.message VALUES (57347, 0, 57349, 0, 'ST/parent-of-queued/1/2', 1795125264581691, 0, 0, NULL, '{"StartOrchestration":{"instance":"parent-of-queued::sub::2","orchestration":"Late","input":"","version":null,"parent_instance":"parent-of-queued","parent_id":2,"parent_execution_id":1,"execution_id":1}}');
INSERT INTO upgraded.message VALUES (57354, 0, 57356, 0, NULL, 1795125264585634, 0, 0, NULL, '{"StartOrchestration":{"instance":"queued","orchestration":"Late","input":"","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}');
INSERT INTO upgraded.message VALUES (62466, 0, 62468, 0, NULL, 1795125264606076, 0, 0, NULL, '{"StartOrchestration":{"instance":"queued-and-cancelled","orchestration":"Late","input":"","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}');
INSERT INTO upgraded.message VALUES (67585, 0, 67587, 0, NULL, 1795125264617740, 0, 0, NULL, '{"StartOrchestration":{"instance":"queued-version","orchestration":"Event","input":"","version":"2.0.0","parent_instance":null,"parent_id":null,"execution_id":1}}');
INSERT INTO upgraded.message VALUES (62466, 0, 67592, 4, NULL, 1795125264618635, 0, 0, NULL, '{"CancelInstance":{"instance":"queued-and-cancelled","reason":"no longer needed"}}');
INSERT INTO upgraded.message VALUES (72705, 0, 72706, 4, NULL, 1795125264642150, 0, 0, NULL, '{"ExternalRaised":{"instance":"unborn","name":"go","data":"early"}}');
INSERT INTO upgraded.message VALUES (36865, 0, 77829, 4, NULL, 1795125264656156, 0, 0, NULL, '{"ExternalRaised":{"instance":"turn-held","name":"first","data":"one"}}');
INSERT INTO upgraded.message VALUES (36865, 0, 77832, 4, NULL, 1795125264666015, 0, 0, NULL, '{"ExternalRaised":{"instance":"turn-held","name":"second","data":"two"}}');
INSERT INTO upgraded.meta VALUES (true, 3);
INSERT INTO upgraded.node OVERRIDING SYSTEM VALUE VALUES (1, 'vm-10432-a82218f7f4c349fd889e82fdfc15ae2f', 1795125264437805, 1795125264437805, '["work-0-vm-10432-a82218f7f4c349fd889e82fdfc15ae2f","work-1-vm-10432-a82218f7f4c349fd889e82fdfc15ae2f","work-2-vm-10432-a82218f7f4c349fd889e82fdfc15ae2f","work-3-vm-10432-a82218f7f4c349fd889e82fdfc15ae2f"]', '{"replay_versions":[{"min":"0.0.0","max":"0.5.0"}],"orchestrations":{"Activity":["1.0.0"],"Event":["1.0.0"],"Fails":["1.0.0"],"InSession":["1.0.0"],"Parent":["1.0.0"],"Queue":["1.0.0"],"Tagged":["1.0.0"],"Timer":["1.0.0"],"Turn":["1.0.0"],"Values":["1.0.0"]},"activities":["Echo","Hang","__duroxide_syscall:get_kv_value","__duroxide_syscall:new_guid","__duroxide_syscall:utc_now_ms"],"tags":"DefaultOnly","asks_for_registered_only":true,"max_attempts":10}');
INSERT INTO upgraded.node_lock VALUES ('vm-10432-a82218f7f4c349fd889e82fdfc15ae2f', 1795125264430214);
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (1, '{"name":"Activity","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (2, '{"name":"Tagged","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (3, '{"name":"Activity","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (4, '{"name":"InSession","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (5, '{"name":"Event","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (6, '{"name":"InSession","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (7, '{"name":"Queue","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (8, '{"name":"Tagged","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (9, '{"name":"Timer","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (10, '{"name":"Event","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (11, '{"name":"Queue","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (12, '{"name":"Turn","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (13, '{"name":"Parent","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (14, '{"name":"Timer","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (15, '{"name":"Turn","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (16, '{"name":"Parent","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (17, '{"name":"Values","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (18, '{"name":"Fails","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (19, '{"name":"Late","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (20, '{"name":"Values","version":"1.0.0","pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (21, '{"name":"Values","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (22, '{"name":"Fails","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (23, '{"name":"Event","version":"2.0.0","pinned":null}');
INSERT INTO upgraded.session VALUES ('kettle', 'work-3-vm-10432-a82218f7f4c349fd889e82fdfc15ae2f', 1795211664509757, 86400000000, 1795125264509757);
SELECT pg_catalog.setval('upgraded.dead_letter_number', 1, true);
SELECT pg_catalog.setval('upgraded.intake_number_seq', 2, true);
SELECT pg_catalog.setval('upgraded.lane_id_seq', 4, true);
SELECT pg_catalog.setval('upgraded.node_id_seq', 1, true);
SELECT pg_catalog.setval('upgraded.number_blocks', 81921, true);
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
ALTER TABLE ONLY upgraded.intake
    ADD CONSTRAINT intake_pkey PRIMARY KEY (number);
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
