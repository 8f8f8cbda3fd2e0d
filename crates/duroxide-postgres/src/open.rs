//! Opening a store: connecting, and making sure that the server and the schema will do.

mod error;

use std::time::Duration;

pub use self::error::OpenError;
use crate::{
    PostgresOptions, SchemaName,
    connection::{Connection, Frame, Query, parameters},
    database_error::DatabaseError,
    provider::CONNECTIONS,
    session::{Compared, DatabasesDiffer, compare_databases},
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
    include_str!("../migrations/0005_intake_age_and_lock_looks.sql"),
];
/// The schema this build works with, and the newest it can open.
const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;
/// A standby is read-only, and so is a session that begins read-only transactions.
const SERVER: &str = "SELECT current_setting('server_version_num')::int / 10000 AS version,
    current_setting('transaction_read_only') = 'on' AS is_read_only";
/// Whether the schema has our table `meta`, and if not, the first relation or type in it. One statement, so that tables which another
/// process commits meanwhile are seen with their `meta`, or not at all.
///
/// What belongs to an extension is not counted, nor what is part of another object: the row type of a table, the sequence of an
/// identity column, an index.
const CONTENT: &str = "WITH schema AS (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1),
    meta AS (SELECT (SELECT count(*) FROM pg_catalog.pg_attribute WHERE attrelid = pg_class.oid
            AND attname IN ('only_row', 'schema_version') AND NOT attisdropped) = 2 AS is_ours
        FROM pg_catalog.pg_class WHERE relnamespace = (SELECT oid FROM schema) AND relname = 'meta'),
    object AS (
        SELECT 'pg_catalog.pg_class'::regclass AS catalog, oid, relname AS name FROM pg_catalog.pg_class
            WHERE relnamespace = (SELECT oid FROM schema) AND relkind NOT IN ('i', 'I')
        UNION ALL SELECT 'pg_catalog.pg_type'::regclass, oid, typname FROM pg_catalog.pg_type
            WHERE typnamespace = (SELECT oid FROM schema)),
    counted AS (SELECT coalesce(pg_catalog.pg_describe_object(catalog, oid, 0), name::text) AS description
        FROM object WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_depend WHERE pg_depend.classid = object.catalog
            AND pg_depend.objid = object.oid AND pg_depend.objsubid = 0 AND pg_depend.deptype IN ('e', 'i'))
        ORDER BY name LIMIT 1)
    SELECT coalesce((SELECT is_ours FROM meta), false) AS is_ours,
        CASE WHEN (SELECT is_ours FROM meta) THEN NULL ELSE (SELECT description FROM counted) END AS foreign_object";
const VERSION: &str = "SELECT schema_version FROM {s}.meta";
const MAY_READ: &str = "SELECT pg_catalog.has_schema_privilege($1::text::name, '{s}', 'USAGE')
    AND pg_catalog.has_table_privilege($1::text::name, '{s}.meta', 'SELECT') AS may_read";

/// The content of a schema.
pub(crate) enum Found {
    Nothing,
    Ours,
    /// Relations or types that no release of ours has made. One of them as an example.
    Foreign {
        object: String,
    },
}

/// Connects, makes the tables if they are missing, and brings an older schema up to date.
pub(crate) fn open(options: &PostgresOptions) -> Result<Connection, OpenError> {
    open_for(options, None)
}

/// Like [`open`]. If the session connection has this role, which may not read what is made, nothing is made.
pub(crate) fn open_for(
    options: &PostgresOptions,
    session_role: Option<&str>,
) -> Result<Connection, OpenError> {
    let (mut connection, found) = connect(options)?;
    prepare(&mut connection, &options.schema, found, session_role)?;
    Ok(connection)
}

/// Makes the tables if they are missing, and brings an older schema up to date.
pub(crate) fn prepare(
    connection: &mut Connection,
    schema: &SchemaName,
    mut found: Found,
    session_role: Option<&str>,
) -> Result<(), OpenError> {
    let unusable = |error: DatabaseError| OpenError::of_schema(error, schema.as_str());
    if matches!(found, Found::Nothing) {
        found = make_tables(connection, schema, session_role).map_err(unusable)?;
    }
    if known_version(connection, schema, &found)? < SCHEMA_VERSION {
        upgrade(connection, schema, session_role).map_err(unusable)?;
    }
    Ok(())
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

/// 24.17: refuses a session connection that reaches another database than the store's connections. Changes nothing. Returns the role
/// of a session connection that has an address of its own.
pub(crate) fn check_session_database(options: &PostgresOptions) -> Result<Option<String>, OpenError> {
    if !options.notifications || options.session_config.is_none() {
        return Ok(None);
    }
    // An error of the store's own address comes first.
    drop(connect(options)?);
    match compare_databases(options) {
        Ok(Compared::Same { session_role }) => Ok(Some(session_role)),
        Ok(Compared::Differ(DatabasesDiffer { session, store })) => {
            Err(OpenError::OtherDatabase { session, store })
        }
        Err(error) => Err(OpenError::of_connection(error, options, CONNECTIONS)),
    }
}

/// Connects to a suitable server, and reads the content of its schema.
pub(crate) fn connect(options: &PostgresOptions) -> Result<(Connection, Found), OpenError> {
    let mut connection =
        Connection::open(options).map_err(|error| OpenError::of_connection(error, options, CONNECTIONS))?;
    let schema = &options.schema;
    check_server(&mut connection, schema)?;
    let found =
        find_tables(&mut connection, schema).map_err(|error| OpenError::of_schema(error, schema.as_str()))?;
    connection.set_limit(options.answer_timeout);
    Ok((connection, found))
}

/// The version of a schema that this build can use, or upgrade.
fn known_version(connection: &mut Connection, schema: &SchemaName, found: &Found) -> Result<i64, OpenError> {
    check_ours(schema, found)?;
    let of = schema.to_string();
    let found = version(connection).map_err(|error| OpenError::of_schema(error, schema.as_str()))?;
    if found > SCHEMA_VERSION {
        return Err(OpenError::NewerSchema { schema: of, found, known: SCHEMA_VERSION });
    }
    Ok(found)
}

/// Whether the schema holds a store.
fn check_ours(schema: &SchemaName, found: &Found) -> Result<(), OpenError> {
    let schema = schema.to_string();
    match found {
        Found::Ours => Ok(()),
        Found::Nothing => Err(OpenError::Missing { schema }),
        Found::Foreign { object } => {
            Err(OpenError::ForeignSchema { schema, message: format!("it holds {object}") })
        }
    }
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
        read(connection).map_err(|error| OpenError::of_schema(error, schema.as_str()))?;
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
    let query = Query::new(CONTENT, parameters![schema.as_str().to_owned()]);
    let answers = connection.trip(&[query], Frame::Plain)?;
    let Some(row) = answers.iter().flatten().next() else { return Ok(Found::Nothing) };
    if row.column("is_ours")? {
        return Ok(Found::Ours);
    }
    let foreign: Option<String> = row.column("foreign_object")?;
    Ok(foreign.map_or(Found::Nothing, |object| Found::Foreign { object }))
}

/// Makes everything in one transaction, if the schema is empty or missing. Nodes that start at the same time wait for a lock, and look
/// after it what the schema holds: the second one finds the tables. Returns what it holds at the end.
fn make_tables(
    connection: &mut Connection,
    schema: &SchemaName,
    session_role: Option<&str>,
) -> Result<Found, DatabaseError> {
    or_roll_back(connection, |connection| {
        connection.script(&begin_locked(schema))?;
        let found = find_tables(connection, schema)?;
        if !matches!(found, Found::Nothing) {
            connection.script("ROLLBACK")?;
            return Ok(found);
        }
        let create_schema = if has_schema(connection, schema)? {
            // A role that may create tables in a schema need not be allowed to create schemas.
            String::new()
        } else {
            format!("CREATE SCHEMA IF NOT EXISTS {schema};")
        };
        connection.script(&format!("{create_schema} {}", migrations_from(0, schema)))?;
        check_session_rights(connection, session_role)?;
        connection.script("COMMIT")?;
        Ok(Found::Ours)
    })
}

/// Brings an older schema to the current version, all or nothing. Nodes that start at the same time wait for each other;
/// the second one finds an upgraded schema.
fn upgrade(
    connection: &mut Connection,
    schema: &SchemaName,
    session_role: Option<&str>,
) -> Result<(), DatabaseError> {
    or_roll_back(connection, |connection| {
        // Another process that upgrades the schema may take as long as this one: no time limit would be long enough.
        connection.script_within(&begin_locked(schema), Duration::MAX)?;
        let migrations = migrations_from(version(connection)?, schema);
        connection.script_within(&migrations, Duration::MAX)?;
        check_session_rights(connection, session_role)?;
        connection.script_within("COMMIT", Duration::MAX)
    })
}

/// Refuses a role of the session connection that may not read the schema, before it is committed. Only then it is known: the role may
/// own the schema, be a member of its owner, or have rights by default.
fn check_session_rights(
    connection: &mut Connection,
    session_role: Option<&str>,
) -> Result<(), DatabaseError> {
    let Some(role) = session_role else { return Ok(()) };
    let query = Query::new(MAY_READ, parameters![role.to_owned()]);
    let answers = connection.trip(&[query], Frame::Plain)?;
    match answers.iter().flatten().next().map(|row| row.column("may_read")).transpose()? {
        Some(true) => Ok(()),
        _ => Err(DatabaseError::denied(format!(
            "the session connection has the role {role}, which may not read it"
        ))),
    }
}

pub(crate) fn begin_locked(schema: &SchemaName) -> String {
    // After waiting for the lock, the statement has to see the changes of its last holder.
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(hashtextextended('duroxide {schema}', 0))"
    )
}

/// The statements that bring a schema of this version to the current one.
pub(crate) fn migrations_from(version: i64, schema: &SchemaName) -> String {
    let missing = MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or_default());
    let script: String = missing.map(|migration| migration.replace("{s}", schema.as_str())).collect();
    format!("{script} UPDATE {schema}.meta SET schema_version = greatest(schema_version, {SCHEMA_VERSION});")
}

pub(crate) fn or_roll_back<T>(
    connection: &mut Connection,
    run: impl FnOnce(&mut Connection) -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    let result = run(connection);
    if result.is_err() {
        connection.script("ROLLBACK")?;
    }
    result
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
