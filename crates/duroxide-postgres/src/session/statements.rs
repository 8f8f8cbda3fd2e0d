//! The statements of the session connection.

use crate::SchemaName;

/// Statements with the schema's name in them.
pub(super) struct Statements {
    pub(super) set_up: String,
    pub(super) hello: &'static str,
    pub(super) hold: String,
    pub(super) release: String,
    pub(super) touch: String,
    pub(super) discard: String,
    pub(super) join_rotation: String,
    pub(super) leave_rotation: String,
    pub(super) check: String,
    pub(super) joining: String,
}

/// The number of an advisory lock for a text.
pub(super) fn key(text: &str) -> String {
    format!("hashtextextended({text}, 0)")
}

/// Holders of the advisory lock of a number, which is listed as two halves, as rows `held`.
pub(super) fn holders(key: &str) -> String {
    format!(
        "FROM pg_catalog.pg_locks AS held WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1
            AND held.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
            AND ((held.classid::bigint << 32) | held.objid::bigint) = {key}"
    )
}

impl Statements {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
        let listener = key(&format!("'duroxide listener {schema}'"));
        let node = |name: &str| key(&format!("'duroxide node {schema} ' || {name}"));
        let (of_parameter, of_row) = (node("$1::text"), node("node_lock.name"));
        let held = format!("EXISTS (SELECT 1 {})", holders(&of_row));
        // Held, shared, by all processes that take turns in checking for dead nodes.
        let rotation = key(&format!("'duroxide turns {schema}'"));
        Self {
            // A node on a machine that lost its power or its network is dead when the server notices the end of this connection.
            // Unless it is told to, it asks an idle connection after hours, and sends notifications again for a quarter of an
            // hour. A database without our tables is another one.
            set_up: format!(
                "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;
                SET tcp_user_timeout = '11s';
                LISTEN {schema}; SELECT schema_version FROM {schema}.meta;
                SELECT pg_advisory_lock_shared({listener})"
            ),
            hello: "SELECT pg_notify($1, $2)",
            hold: format!("SELECT pg_try_advisory_lock({of_parameter}) AS held"),
            release: format!("SELECT pg_advisory_unlock({of_parameter})"),
            touch: format!(
                "INSERT INTO {schema}.node_lock (name, tried_at) VALUES ($1, {now})
                ON CONFLICT (name) DO UPDATE SET tried_at = excluded.tried_at"
            ),
            discard: format!("DELETE FROM {schema}.node_lock WHERE name = $1"),
            join_rotation: format!("SELECT pg_advisory_lock_shared({rotation})"),
            leave_rotation: format!("SELECT pg_advisory_unlock_shared({rotation})"),
            check: format!(
                "SELECT (SELECT count(*) {listeners}) AS listeners, (SELECT count(*) {claimers}) AS claimers,
                (SELECT count(*) {claimers} AND held.pid < pg_backend_pid()) AS rank, {now} AS now,
                (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint AS server_started_at,
                unlocked.names AS unlocked, unlocked.tried_at AS unlocked_tried_at
                FROM (SELECT coalesce(array_agg(name), '{{}}') AS names, coalesce(array_agg(tried_at), '{{}}') AS tried_at
                    FROM (SELECT name, tried_at FROM {schema}.node_lock
                        WHERE name <> ALL ($1::text[]) AND NOT {held} ORDER BY name) AS found) AS unlocked",
                listeners = holders(&listener),
                claimers = holders(&rotation),
            ),
            joining: format!(
                "SELECT EXISTS (SELECT 1 FROM {schema}.node_lock WHERE name <> ALL ($1::text[])
                    AND tried_at > {now} - $2 AND {held}) AS joining"
            ),
        }
    }
}
