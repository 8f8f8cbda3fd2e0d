-- A schema of version 2 with instances inside, as commit d04d2e23 left it, the last one before migration 0003.
-- Made like the file of a later version (`writes_the_file_of_this_schema` in upgrades/main.rs), with a program of that commit.
-- Dumped at 1795125262398873
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
    CONSTRAINT instance_extent CHECK (
CASE extent_kind
    WHEN 'visible'::text THEN ((lock_token IS NOT NULL) AND (extent_at IS NOT NULL) AND (extent_up_to IS NOT NULL))
    WHEN 'marked'::text THEN ((lock_token IS NOT NULL) AND (extent_mark IS NOT NULL))
    ELSE (lock_token IS NULL)
END)
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
INSERT INTO upgraded.activity VALUES (5121, 3073, 1, 2, 2, NULL, 0, NULL, NULL, NULL, NULL, 0, false, false, 0, 0, NULL, '{"ActivityExecute":{"instance":"activity-queued","execution_id":1,"id":2,"name":"Unknown","input":"tea"}}');
INSERT INTO upgraded.activity VALUES (5122, 2049, 1, 2, 1, NULL, 0, '5122-88962d7b005948798991cb98c7006400', 1795211662093968, 86400000000, 1, 1, true, false, 0, 0, 1795211662093968, '{"ActivityExecute":{"instance":"activity-held","execution_id":1,"id":2,"name":"Hang","input":"tea"}}');
INSERT INTO upgraded.activity VALUES (6145, 4097, 1, 2, 3, NULL, 0, NULL, NULL, NULL, NULL, 0, false, false, 0, 0, NULL, '{"ActivityExecute":{"instance":"activity-tagged","execution_id":1,"id":2,"name":"Echo","input":"tea","tag":"gpu"}}');
INSERT INTO upgraded.activity VALUES (7169, 5123, 1, 2, 1, 'kettle', 0, '7169-bf04f03c095a4f2f9b342a2653ae9e1d', 1795211662117044, 86400000000, 1, 1, true, false, 0, 0, 1795211662117044, '{"ActivityExecute":{"instance":"activity-in-session","execution_id":1,"id":2,"name":"Hang","input":"tea","session_id":"kettle"}}');
INSERT INTO upgraded.custom_status VALUES (13316, 'filling', 1);
INSERT INTO upgraded.dead_letter VALUES (1, 'nobody', '{"QueueMessage":{"instance":"nobody","name":"orders","data":"lost"}}', 'no such instance', 0, 1795125262266360, 2, NULL, NULL, NULL, NULL, NULL);
INSERT INTO upgraded.execution VALUES (2049, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125262093968, NULL);
INSERT INTO upgraded.execution VALUES (3073, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125262093968, NULL);
INSERT INTO upgraded.execution VALUES (4097, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125262109762, NULL);
INSERT INTO upgraded.execution VALUES (5123, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125262117044, NULL);
INSERT INTO upgraded.execution VALUES (6146, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125262137855, NULL);
INSERT INTO upgraded.execution VALUES (8193, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125262155383, NULL);
INSERT INTO upgraded.execution VALUES (10241, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125262169847, NULL);
INSERT INTO upgraded.execution VALUES (11266, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125262169847, NULL);
INSERT INTO upgraded.execution VALUES (12289, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125262179293, NULL);
INSERT INTO upgraded.execution VALUES (13313, 1, 'Running', NULL, 0, 5, 0, 2, 1, 1795125262179293, NULL);
INSERT INTO upgraded.execution VALUES (13316, 1, 'ContinuedAsNew', '2', 0, 5, 0, 5, 1, 1795125262179293, 1795125262179293);
INSERT INTO upgraded.execution VALUES (13316, 2, 'Running', NULL, 0, 5, 0, 5, 1, 1795125262179293, NULL);
INSERT INTO upgraded.execution VALUES (15366, 1, 'Failed', 'spilled', 0, 5, 0, 2, 1, 1795125262202424, 1795125262202424);
INSERT INTO upgraded.execution VALUES (14337, 1, 'Completed', 'tea', 0, 5, 0, 4, 2, 1795125262202424, 1795125262237131);
INSERT INTO upgraded.execution VALUES (7170, 1, 'Running', NULL, 0, 5, 0, 4, 2, 1795125262137855, NULL);
INSERT INTO upgraded.history VALUES (2049, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"activity-held","execution_id":1,"timestamp_ms":1795125262066,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Activity","version":"1.0.0","input":"Hang","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (2049, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"activity-held","execution_id":1,"timestamp_ms":1795125262066,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Hang","input":"tea"}');
INSERT INTO upgraded.history VALUES (3073, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"activity-queued","execution_id":1,"timestamp_ms":1795125262066,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Activity","version":"1.0.0","input":"Unknown","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (3073, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"activity-queued","execution_id":1,"timestamp_ms":1795125262066,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Unknown","input":"tea"}');
INSERT INTO upgraded.history VALUES (4097, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"activity-tagged","execution_id":1,"timestamp_ms":1795125262082,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Tagged","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (4097, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"activity-tagged","execution_id":1,"timestamp_ms":1795125262082,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Echo","input":"tea","tag":"gpu"}');
INSERT INTO upgraded.history VALUES (5123, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"activity-in-session","execution_id":1,"timestamp_ms":1795125262106,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"InSession","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (5123, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"activity-in-session","execution_id":1,"timestamp_ms":1795125262106,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Hang","input":"tea","session_id":"kettle"}');
INSERT INTO upgraded.history VALUES (6146, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"event","execution_id":1,"timestamp_ms":1795125262126,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Event","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (6146, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"event","execution_id":1,"timestamp_ms":1795125262126,"duroxide_version":"0.5.0","type":"ExternalSubscribed","name":"go"}');
INSERT INTO upgraded.history VALUES (7170, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"queue","execution_id":1,"timestamp_ms":1795125262125,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Queue","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (7170, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"queue","execution_id":1,"timestamp_ms":1795125262126,"duroxide_version":"0.5.0","type":"ExternalSubscribedPersistent","name":"orders"}');
INSERT INTO upgraded.history VALUES (8193, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"timer","execution_id":1,"timestamp_ms":1795125262145,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Timer","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (8193, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"timer","execution_id":1,"timestamp_ms":1795125262146,"duroxide_version":"0.5.0","type":"TimerCreated","fire_at_ms":1795128862147}');
INSERT INTO upgraded.history VALUES (10241, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"turn-held","execution_id":1,"timestamp_ms":1795125262161,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Turn","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (10241, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"turn-held","execution_id":1,"timestamp_ms":1795125262161,"duroxide_version":"0.5.0","type":"ExternalSubscribed","name":"first"}');
INSERT INTO upgraded.history VALUES (11266, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"parent","execution_id":1,"timestamp_ms":1795125262161,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Parent","version":"1.0.0","input":"Event","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (11266, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"parent","execution_id":1,"timestamp_ms":1795125262161,"duroxide_version":"0.5.0","type":"SubOrchestrationScheduled","name":"Event","instance":"sub::2","input":""}');
INSERT INTO upgraded.history VALUES (12289, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"parent-of-queued","execution_id":1,"timestamp_ms":1795125262173,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Parent","version":"1.0.0","input":"Late","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (12289, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"parent-of-queued","execution_id":1,"timestamp_ms":1795125262173,"duroxide_version":"0.5.0","type":"SubOrchestrationScheduled","name":"Late","instance":"sub::2","input":""}');
INSERT INTO upgraded.history VALUES (13313, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"parent::sub::2","execution_id":1,"timestamp_ms":1795125262173,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Event","version":"1.0.0","input":"","parent_instance":"parent","parent_id":2,"parent_execution_id":1}');
INSERT INTO upgraded.history VALUES (13313, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"parent::sub::2","execution_id":1,"timestamp_ms":1795125262173,"duroxide_version":"0.5.0","type":"ExternalSubscribed","name":"go"}');
INSERT INTO upgraded.history VALUES (13316, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125262173,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Values","version":"1.0.0","input":"1","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (13316, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125262173,"duroxide_version":"0.5.0","type":"KeyValueSet","key":"kept","value":"one","last_updated_at_ms":1795125262173}');
INSERT INTO upgraded.history VALUES (13316, 1, 3, '{"event_id":3,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125262173,"duroxide_version":"0.5.0","type":"KeyValueSet","key":"cleared","value":"one","last_updated_at_ms":1795125262173}');
INSERT INTO upgraded.history VALUES (13316, 1, 4, '{"event_id":4,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125262173,"duroxide_version":"0.5.0","type":"KeyValueSet","key":"changed","value":"one","last_updated_at_ms":1795125262173}');
INSERT INTO upgraded.history VALUES (13316, 1, 5, '{"event_id":5,"source_event_id":null,"instance_id":"values","execution_id":1,"timestamp_ms":1795125262173,"duroxide_version":"0.5.0","type":"OrchestrationContinuedAsNew","input":"2"}');
INSERT INTO upgraded.history VALUES (13316, 2, 1, '{"event_id":1,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125262174,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Values","version":"1.0.0","input":"2","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (13316, 2, 2, '{"event_id":2,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125262186,"duroxide_version":"0.5.0","type":"KeyValueSet","key":"changed","value":"two","last_updated_at_ms":1795125262186}');
INSERT INTO upgraded.history VALUES (13316, 2, 3, '{"event_id":3,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125262186,"duroxide_version":"0.5.0","type":"KeyValueCleared","key":"cleared"}');
INSERT INTO upgraded.history VALUES (13316, 2, 4, '{"event_id":4,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125262186,"duroxide_version":"0.5.0","type":"CustomStatusUpdated","status":"filling"}');
INSERT INTO upgraded.history VALUES (13316, 2, 5, '{"event_id":5,"source_event_id":null,"instance_id":"values","execution_id":2,"timestamp_ms":1795125262186,"duroxide_version":"0.5.0","type":"ExternalSubscribed","name":"go"}');
INSERT INTO upgraded.history VALUES (14337, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"done","execution_id":1,"timestamp_ms":1795125262186,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Activity","version":"1.0.0","input":"Echo","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (14337, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"done","execution_id":1,"timestamp_ms":1795125262186,"duroxide_version":"0.5.0","type":"ActivityScheduled","name":"Echo","input":"tea"}');
INSERT INTO upgraded.history VALUES (15366, 1, 1, '{"event_id":1,"source_event_id":null,"instance_id":"failed","execution_id":1,"timestamp_ms":1795125262186,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"Fails","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}');
INSERT INTO upgraded.history VALUES (15366, 1, 2, '{"event_id":2,"source_event_id":null,"instance_id":"failed","execution_id":1,"timestamp_ms":1795125262186,"duroxide_version":"0.5.0","type":"OrchestrationFailed","details":{"Application":{"kind":"OrchestrationFailed","message":"spilled","retryable":false}}}');
INSERT INTO upgraded.history VALUES (14337, 1, 3, '{"event_id":3,"source_event_id":2,"instance_id":"done","execution_id":1,"timestamp_ms":1795125262234,"duroxide_version":"0.5.0","type":"ActivityCompleted","result":"tea"}');
INSERT INTO upgraded.history VALUES (14337, 1, 4, '{"event_id":4,"source_event_id":null,"instance_id":"done","execution_id":1,"timestamp_ms":1795125262234,"duroxide_version":"0.5.0","type":"OrchestrationCompleted","output":"tea"}');
INSERT INTO upgraded.history VALUES (7170, 1, 3, '{"event_id":3,"source_event_id":null,"instance_id":"queue","execution_id":1,"timestamp_ms":1795125262253,"duroxide_version":"0.5.0","type":"ExternalEventPersistent","name":"orders","data":"tea"}');
INSERT INTO upgraded.history VALUES (7170, 1, 4, '{"event_id":4,"source_event_id":null,"instance_id":"queue","execution_id":1,"timestamp_ms":1795125262253,"duroxide_version":"0.5.0","type":"ExternalSubscribedPersistent","name":"orders"}');
INSERT INTO upgraded.instance VALUES (2049, 'activity-held', true, 'Activity', '1.0.0', NULL, 'Running', 1, 1795125262093968, 1795125262093968, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 3, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (3073, 'activity-queued', true, 'Activity', '1.0.0', NULL, 'Running', 1, 1795125262093968, 1795125262093968, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 3, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (4097, 'activity-tagged', true, 'Tagged', '1.0.0', NULL, 'Running', 1, 1795125262109762, 1795125262109762, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 6, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (5123, 'activity-in-session', true, 'InSession', '1.0.0', NULL, 'Running', 1, 1795125262117044, 1795125262117044, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 7, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (6146, 'event', true, 'Event', '1.0.0', NULL, 'Running', 1, 1795125262137855, 1795125262137855, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 10, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (8193, 'timer', true, 'Timer', '1.0.0', NULL, 'Running', 1, 1795125262155383, 1795125262155383, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 14, NULL, false, 1795128862147000);
INSERT INTO upgraded.instance VALUES (11266, 'parent', true, 'Parent', '1.0.0', NULL, 'Running', 1, 1795125262169847, 1795125262169847, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 15, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (15361, 'parent-of-queued::sub::2', false, NULL, NULL, NULL, NULL, 1, 1795125262179293, 1795125262179293, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 19, 15362, false, NULL);
INSERT INTO upgraded.instance VALUES (12289, 'parent-of-queued', true, 'Parent', '1.0.0', NULL, 'Running', 1, 1795125262179293, 1795125262179293, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 15, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (13313, 'parent::sub::2', true, 'Event', '1.0.0', 'parent', 'Running', 1, 1795125262179293, 1795125262179293, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 10, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (16385, 'queued', false, NULL, NULL, NULL, NULL, 1, 1795125262186938, 1795125262186938, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 19, 16386, false, NULL);
INSERT INTO upgraded.instance VALUES (13316, 'values', true, 'Values', '1.0.0', NULL, 'Running', 2, 1795125262179293, 1795125262202424, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 21, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (15366, 'failed', true, 'Fails', '1.0.0', NULL, 'Failed', 1, 1795125262202424, 1795125262202424, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 22, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (17410, 'queued-and-cancelled', false, NULL, NULL, NULL, NULL, 1, 1795125262202424, 1795125262202424, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 19, 17411, false, NULL);
INSERT INTO upgraded.instance VALUES (14337, 'done', true, 'Activity', '1.0.0', NULL, 'Completed', 1, 1795125262202424, 1795125262237131, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 3, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (7170, 'queue', true, 'Queue', '1.0.0', NULL, 'Running', 1, 1795125262137855, 1795125262255644, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 11, NULL, false, NULL);
INSERT INTO upgraded.instance VALUES (10241, 'turn-held', true, 'Turn', '1.0.0', NULL, 'Running', 1, 1795125262169847, 1795125262169847, '10241-1c6eefeaf6824fdd8876ff5f28f70c0d', 1795211662280680, 86400000000, 1, 'visible', 1795125262280680, 25601, NULL, false, 0, 0, 16, NULL, false, 1795211662280680);
INSERT INTO upgraded.instance VALUES (18433, 'queued-version', false, NULL, NULL, NULL, NULL, 1, 1795125262218277, 1795125262218277, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, 23, 18434, false, NULL);
INSERT INTO upgraded.instance VALUES (23553, 'unborn', false, NULL, NULL, NULL, NULL, 1, 1795125262260214, 1795125262260214, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0, 0, NULL, NULL, false, 1795211662260214);
INSERT INTO upgraded.intake OVERRIDING SYSTEM VALUE VALUES (1, 'start', 'from-intake', 'Event', NULL, '');
INSERT INTO upgraded.intake OVERRIDING SYSTEM VALUE VALUES (2, 'raise', 'from-intake', 'go', NULL, 'of the intake');
INSERT INTO upgraded.kv VALUES (13316, 'changed', 'one', 1795125262173);
INSERT INTO upgraded.kv VALUES (13316, 'cleared', 'one', 1795125262173);
INSERT INTO upgraded.kv VALUES (13316, 'kept', 'one', 1795125262173);
INSERT INTO upgraded.kv_change VALUES (13316, 'changed', 'two', 1795125262186);
INSERT INTO upgraded.kv_change VALUES (13316, 'cleared', NULL, 0);
INSERT INTO upgraded.lane OVERRIDING SYSTEM VALUE VALUES (1, '{"tag":null,"name":"Hang"}');
INSERT INTO upgraded.lane OVERRIDING SYSTEM VALUE VALUES (2, '{"tag":null,"name":"Unknown"}');
INSERT INTO upgraded.lane OVERRIDING SYSTEM VALUE VALUES (3, '{"tag":"gpu","name":"Echo"}');
INSERT INTO upgraded.lane OVERRIDING SYSTEM VALUE VALUES (4, '{"tag":null,"name":"Echo"}');
INSERT INTO upgraded.message VALUES (8193, 1795128862147000, 11265, 3, 'TF/1/2', 1795125262155383, 0, 0, NULL, '{"TimerFired":{"instance":"timer","execution_id":1,"id":2,"fire_at_ms":1795128862147}}');
INSERT INTO upgraded.message VALUES (15361, 0, 15363, 0, 'ST/parent-of-queued/1/2', 1795125262179293, 0, 0, NULL, '{"StartOrchestration":{"instance":"parent-of-queued::sub::2","orchestration":"Late","input":"","version":null,"parent_instance":"parent-of-queued","parent_id":2,"parent_execution_id":1,"execution_id":1}}');
INSERT INTO upgraded.message VALUES (16385, 0, 16387, 0, NULL, 1795125262186938, 0, 0, NULL, '{"StartOrchestration":{"instance":"queued","orchestration":"Late","input":"","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}');
INSERT INTO upgraded.message VALUES (17410, 0, 17412, 0, NULL, 1795125262202424, 0, 0, NULL, '{"StartOrchestration":{"instance":"queued-and-cancelled","orchestration":"Late","input":"","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}');
INSERT INTO upgraded.message VALUES (18433, 0, 18435, 0, NULL, 1795125262218277, 0, 0, NULL, '{"StartOrchestration":{"instance":"queued-version","orchestration":"Event","input":"","version":"2.0.0","parent_instance":null,"parent_id":null,"execution_id":1}}');
INSERT INTO upgraded.message VALUES (17410, 0, 19460, 4, NULL, 1795125262227699, 0, 0, NULL, '{"CancelInstance":{"instance":"queued-and-cancelled","reason":"no longer needed"}}');
INSERT INTO upgraded.message VALUES (23553, 0, 23554, 4, NULL, 1795125262260214, 0, 0, NULL, '{"ExternalRaised":{"instance":"unborn","name":"go","data":"early"}}');
INSERT INTO upgraded.message VALUES (10241, 0, 25601, 4, NULL, 1795125262280680, 0, 0, NULL, '{"ExternalRaised":{"instance":"turn-held","name":"first","data":"one"}}');
INSERT INTO upgraded.message VALUES (10241, 0, 26625, 4, NULL, 1795125262290875, 0, 0, NULL, '{"ExternalRaised":{"instance":"turn-held","name":"second","data":"two"}}');
INSERT INTO upgraded.meta VALUES (true, 2);
INSERT INTO upgraded.node OVERRIDING SYSTEM VALUE VALUES (1, '1fb9c00c86b84f82bcfda4f9a3499a11', 1795125262009786, 1795125262009786, '["work-0-1fb9c00c86b84f82bcfda4f9a3499a11","work-1-1fb9c00c86b84f82bcfda4f9a3499a11","work-2-1fb9c00c86b84f82bcfda4f9a3499a11","work-3-1fb9c00c86b84f82bcfda4f9a3499a11"]', '{"replay_versions":[{"min":"0.0.0","max":"0.5.0"}],"orchestrations":{"Activity":["1.0.0"],"Event":["1.0.0"],"Fails":["1.0.0"],"InSession":["1.0.0"],"Parent":["1.0.0"],"Queue":["1.0.0"],"Tagged":["1.0.0"],"Timer":["1.0.0"],"Turn":["1.0.0"],"Values":["1.0.0"]},"activities":["Echo","Hang","__duroxide_syscall:get_kv_value","__duroxide_syscall:new_guid","__duroxide_syscall:utc_now_ms"],"tags":"DefaultOnly","asks_for_registered_only":true,"max_attempts":10}');
INSERT INTO upgraded.node_lock VALUES ('1fb9c00c86b84f82bcfda4f9a3499a11', 1795125262005226);
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (1, '{"name":"Activity","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (2, '{"name":"Tagged","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (3, '{"name":"Activity","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (4, '{"name":"InSession","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (5, '{"name":"Event","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (6, '{"name":"Tagged","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (7, '{"name":"InSession","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (8, '{"name":"Queue","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (9, '{"name":"Timer","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (10, '{"name":"Event","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (11, '{"name":"Queue","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (12, '{"name":"Turn","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (13, '{"name":"Parent","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (14, '{"name":"Timer","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (15, '{"name":"Parent","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (16, '{"name":"Turn","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (17, '{"name":"Values","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (18, '{"name":"Fails","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (19, '{"name":"Late","version":null,"pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (20, '{"name":"Values","version":"1.0.0","pinned":null}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (21, '{"name":"Values","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (22, '{"name":"Fails","version":"1.0.0","pinned":{"major":0,"minor":5,"patch":0}}');
INSERT INTO upgraded.route OVERRIDING SYSTEM VALUE VALUES (23, '{"name":"Event","version":"2.0.0","pinned":null}');
INSERT INTO upgraded.session VALUES ('kettle', 'work-3-1fb9c00c86b84f82bcfda4f9a3499a11', 1795211662117044, 86400000000, 1795125262117044);
SELECT pg_catalog.setval('upgraded.dead_letter_number', 1, true);
SELECT pg_catalog.setval('upgraded.intake_number_seq', 2, true);
SELECT pg_catalog.setval('upgraded.lane_id_seq', 4, true);
SELECT pg_catalog.setval('upgraded.node_id_seq', 1, true);
SELECT pg_catalog.setval('upgraded.number_block', 26625, true);
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
