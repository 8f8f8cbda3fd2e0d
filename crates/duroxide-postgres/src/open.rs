//! Opening a store: connecting, and making sure that the server and the schema will do.

mod error;

use std::time::Duration;

pub use self::error::OpenError;
use crate::{
    PostgresOptions, SchemaName,
    connection::{Connection, Frame, Query, parameters},
    database_error::DatabaseError,
    provider::CONNECTIONS,
    value::Columns,
};

/// The oldest major version of PostgreSQL that has all that statements use. The tests run on the version that is installed.
const OLDEST_SERVER: i32 = 14;
/// Migration n brings a schema from version n - 1 to n. Each is a file that is never changed again.
const MIGRATIONS: [&str; 5] = [
    include_str!("../migrations/0001_tables.sql"),
    include_str!("../migrations/0002_intake.sql"),
    include_str!("../migrations/0003_revisions.sql"),
    include_str!("../migrations/0004_hot_updates.sql"),
    include_str!("../migrations/0005_lock_looks.sql"),
];
/// The schema this build works with, and the newest it can open.
const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;
/// A standby is read-only, and so is a session that begins read-only transactions.
const SERVER: &str = "SELECT current_setting('server_version_num')::int / 10000 AS version,
    current_setting('transaction_read_only') = 'on' AS is_read_only";
/// Whether the table `meta` exists, and whether it has our columns.
const META: &str = "SELECT (SELECT count(*) FROM pg_catalog.pg_attribute WHERE attrelid = pg_class.oid
        AND attname IN ('only_row', 'schema_version') AND NOT attisdropped) = 2 AS is_ours
    FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = pg_class.relnamespace
    WHERE pg_namespace.nspname = $1 AND pg_class.relname = 'meta'";
const VERSION: &str = "SELECT schema_version FROM {s}.meta";

/// The content of a schema.
enum Found {
    Nothing,
    Ours,
    Foreign,
}

/// Connects, makes the tables if they are missing, and brings an older schema up to date.
pub(crate) fn open(options: &PostgresOptions) -> Result<Connection, OpenError> {
    let schema = &options.schema;
    let unusable = |trouble: DatabaseError| OpenError::of_schema(trouble, schema.as_str());
    let (mut connection, mut found) = connect(options)?;
    if matches!(found, Found::Nothing) {
        let made = make_tables(&mut connection, schema);
        found = find_tables(&mut connection, schema).map_err(unusable)?;
        // Another process may have been faster.
        match (made, &found) {
            (Ok(()), _) | (Err(_), Found::Ours) => {}
            (Err(trouble), Found::Nothing | Found::Foreign) => return Err(unusable(trouble)),
        }
    }
    if known_version(&mut connection, schema, &found)? < SCHEMA_VERSION {
        upgrade(&mut connection, schema).map_err(unusable)?;
    }
    Ok(connection)
}

/// Connects to a schema of this release without changing it: a missing or older one is an error.
pub(crate) fn open_existing(options: &PostgresOptions) -> Result<Connection, OpenError> {
    let schema = &options.schema;
    let (mut connection, found) = connect(options)?;
    let found = known_version(&mut connection, schema, &found)?;
    if found < SCHEMA_VERSION {
        return Err(OpenError::OlderSchema { schema: schema.to_string(), found, known: SCHEMA_VERSION });
    }
    Ok(connection)
}

/// Connects to a suitable server, and reads the content of its schema.
fn connect(options: &PostgresOptions) -> Result<(Connection, Found), OpenError> {
    let mut connection =
        Connection::open(options).map_err(|trouble| OpenError::of_connection(trouble, CONNECTIONS))?;
    let schema = &options.schema;
    check_server(&mut connection, schema)?;
    let found = find_tables(&mut connection, schema)
        .map_err(|trouble| OpenError::of_schema(trouble, schema.as_str()))?;
    connection.set_limit(options.answer_timeout);
    Ok((connection, found))
}

/// The version of a schema that this build can use, or upgrade.
fn known_version(connection: &mut Connection, schema: &SchemaName, found: &Found) -> Result<i64, OpenError> {
    let of = schema.to_string();
    match found {
        Found::Ours => {}
        Found::Nothing => return Err(OpenError::Missing { schema: of }),
        Found::Foreign => {
            let message = "a table meta of another shape".to_owned();
            return Err(OpenError::ForeignSchema { schema: of, message });
        }
    }
    let found = version(connection).map_err(|trouble| OpenError::of_schema(trouble, schema.as_str()))?;
    if found > SCHEMA_VERSION {
        return Err(OpenError::NewerSchema { schema: of, found, known: SCHEMA_VERSION });
    }
    Ok(found)
}

fn check_server(connection: &mut Connection, schema: &SchemaName) -> Result<(), OpenError> {
    let read = |connection: &mut Connection| -> Result<(i32, bool), DatabaseError> {
        let answers = connection.trip(&[Query::new(SERVER, Vec::new())], Frame::Plain)?;
        match answers.iter().flatten().next() {
            Some(row) => Ok((row.column("version")?, row.column("is_read_only")?)),
            None => Ok((0, false)),
        }
    };
    let (found, is_read_only) =
        read(connection).map_err(|trouble| OpenError::of_schema(trouble, schema.as_str()))?;
    check_version(found)?;
    if is_read_only { Err(OpenError::ReadOnly) } else { Ok(()) }
}

fn check_version(found: i32) -> Result<(), OpenError> {
    if found < OLDEST_SERVER {
        return Err(OpenError::TooOld { found, oldest: OLDEST_SERVER });
    }
    Ok(())
}

fn find_tables(connection: &mut Connection, schema: &SchemaName) -> Result<Found, DatabaseError> {
    let query = Query::new(META, parameters![schema.as_str().to_owned()]);
    let answers = connection.trip(&[query], Frame::Plain)?;
    match answers.iter().flatten().next() {
        None => Ok(Found::Nothing),
        Some(row) if row.column("is_ours")? => Ok(Found::Ours),
        Some(_) => Ok(Found::Foreign),
    }
}

/// Makes everything in one transaction, under a lock that nodes which start at the same time wait for. The second one
/// finds the tables.
pub(crate) fn make_tables(connection: &mut Connection, schema: &SchemaName) -> Result<(), DatabaseError> {
    let create_schema = if has_schema(connection, schema)? {
        // A role that may create tables in a schema need not be allowed to create schemas.
        String::new()
    } else {
        format!("CREATE SCHEMA IF NOT EXISTS {schema};")
    };
    let script = format!("{}; {create_schema} {} COMMIT;", begin_locked(schema), migrations_from(0, schema));
    or_roll_back(connection, |connection| connection.script(&script))
}

/// Brings an older schema to the current version, all or nothing. Nodes that start at the same time wait for each other;
/// the second one finds an upgraded schema.
fn upgrade(connection: &mut Connection, schema: &SchemaName) -> Result<(), DatabaseError> {
    or_roll_back(connection, |connection| {
        // Another process that upgrades the schema may take as long as this one: no time limit would be long enough.
        connection.script_within(&begin_locked(schema), Duration::MAX)?;
        let migrations = migrations_from(version(connection)?, schema);
        connection.script_within(&format!("{migrations} COMMIT;"), Duration::MAX)
    })
}

fn begin_locked(schema: &SchemaName) -> String {
    // After waiting for the lock, the statement has to see the changes of its last holder.
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(hashtextextended('duroxide {schema}', 0))"
    )
}

/// The statements that bring a schema of this version to the current one.
fn migrations_from(version: i64, schema: &SchemaName) -> String {
    let missing = MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or_default());
    let script: String = missing.map(|migration| migration.replace("{s}", schema.as_str())).collect();
    format!("{script} UPDATE {schema}.meta SET schema_version = greatest(schema_version, {SCHEMA_VERSION});")
}

fn or_roll_back(
    connection: &mut Connection,
    run: impl FnOnce(&mut Connection) -> Result<(), DatabaseError>,
) -> Result<(), DatabaseError> {
    let Err(trouble) = run(connection) else { return Ok(()) };
    connection.script("ROLLBACK")?;
    Err(trouble)
}

const HAS_SCHEMA: &str = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1";

pub(crate) fn has_schema(connection: &mut Connection, schema: &SchemaName) -> Result<bool, DatabaseError> {
    let query = Query::new(HAS_SCHEMA, parameters![schema.as_str().to_owned()]);
    Ok(connection.trip(&[query], Frame::Plain)?.iter().any(|rows| !rows.is_empty()))
}

fn version(connection: &mut Connection) -> Result<i64, DatabaseError> {
    let answers = connection.trip(&[Query::new(VERSION, Vec::new())], Frame::Plain)?;
    match answers.iter().flatten().next() {
        Some(row) => row.column("schema_version"),
        None => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_older_than_fourteen_is_refused() {
        assert_eq!(check_version(14), Ok(()));
        assert_eq!(check_version(13), Err(OpenError::TooOld { found: 13, oldest: 14 }));
        let text = check_version(9).unwrap_err().to_string();
        assert!(text.contains("PostgreSQL 9") && text.contains("upgrade the server"), "{text}");
    }
}
