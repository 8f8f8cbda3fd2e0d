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
    pub(super) look: String,
    pub(super) joining: String,
}

/// The number of an advisory lock for a text.
fn key(text: &str) -> String {
    format!("hashtextextended({text}, 0)")
}

/// Whether somebody holds the lock of a number. An advisory lock of 64 bits is listed as two halves.
fn is_held(key: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM pg_catalog.pg_locks AS held WHERE held.locktype = 'advisory' AND held.granted
            AND held.objsubid = 1 AND held.database = (SELECT oid FROM pg_catalog.pg_database
                WHERE datname = current_database())
            AND ((held.classid::bigint << 32) | held.objid::bigint) = {key})"
    )
}

impl Statements {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
        let listener = key(&format!("'duroxide listener {schema}'"));
        let node = |name: &str| key(&format!("'duroxide node {schema} ' || {name}"));
        let (of_parameter, of_row) = (node("$1::text"), node("node_lock.name"));
        let held = is_held(&of_row);
        Self {
            set_up: format!("LISTEN {schema}; SELECT pg_advisory_lock_shared({listener})"),
            hello: "SELECT pg_notify($1, $2)",
            hold: format!("SELECT pg_try_advisory_lock({of_parameter}) AS held"),
            release: format!("SELECT pg_advisory_unlock({of_parameter})"),
            touch: format!(
                "INSERT INTO {schema}.node_lock (name, tried_at) VALUES ($1, {now})
                ON CONFLICT (name) DO UPDATE SET tried_at = excluded.tried_at"
            ),
            discard: format!("DELETE FROM {schema}.node_lock WHERE name = $1"),
            look: format!(
                "SELECT (SELECT count(*) FROM pg_catalog.pg_locks AS held WHERE held.locktype = 'advisory'
                    AND held.granted AND held.objsubid = 1 AND held.database = (SELECT oid
                        FROM pg_catalog.pg_database WHERE datname = current_database())
                    AND ((held.classid::bigint << 32) | held.objid::bigint) = {listener}) AS listeners,
                ARRAY(SELECT name FROM {schema}.node_lock WHERE name <> ALL ($1::text[]) AND NOT {held}) AS gone"
            ),
            joining: format!(
                "SELECT EXISTS (SELECT 1 FROM {schema}.node_lock WHERE name <> ALL ($1::text[])
                    AND tried_at > {now} - $2 AND {held}) AS joining"
            ),
        }
    }
}
