//! Opening a store: connecting, and making sure that the schema is ours.

use tokio_postgres::error::SqlState;

use crate::{
    PostgresOptions, SchemaName,
    connection::{Connection, Frame, Query, parameters},
    fault::Trouble,
    value::Columns,
};

/// The only version of the schema so far.
const SCHEMA_VERSION: i64 = 1;
const TABLES: &str = include_str!("../migrations/0001_tables.sql");
const HAS_META: &str = "SELECT 1 FROM pg_catalog.pg_class
    JOIN pg_catalog.pg_namespace ON pg_namespace.oid = pg_class.relnamespace
    WHERE pg_namespace.nspname = $1 AND pg_class.relname = 'meta'";
const VERSION: &str = "SELECT schema_version FROM {s}.meta";

/// Why a store cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The database cannot be reached or does not let us in.
    #[error("cannot connect to PostgreSQL: {message}")]
    Connect {
        /// What is known.
        message: String,
    },
    /// The connection string cannot be read.
    #[error(
        "no connection string: {message} (write postgres://user@host/database or host=... user=... dbname=...)"
    )]
    Url {
        /// What is wrong with it.
        message: String,
    },
    /// The schema cannot be made or read.
    #[error("cannot prepare schema {schema}: {message}")]
    Prepare {
        /// The schema.
        schema: String,
        /// What the database says.
        message: String,
    },
    /// A newer duroxide has changed the schema.
    #[error(
        "schema {schema} has version {found}, and this build knows versions up to {known}: use a newer build"
    )]
    NewerSchema {
        /// The schema.
        schema: String,
        /// Its version.
        found: i64,
        /// The newest version that is known.
        known: i64,
    },
}

impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Url { message: error.to_string() }
    }
}

/// Connects and makes the tables if they are missing.
pub(crate) fn open(options: &PostgresOptions) -> Result<Connection, OpenError> {
    let mut connection = Connection::open(options)
        .map_err(|trouble| OpenError::Connect { message: trouble.into_failure().message })?;
    let schema = &options.schema;
    let prepare = |trouble: Trouble| OpenError::Prepare {
        schema: schema.to_string(),
        message: trouble.into_failure().message,
    };
    if !has_tables(&mut connection, schema).map_err(prepare)? {
        make_tables(&mut connection, schema).map_err(prepare)?;
    }
    let found = version(&mut connection).map_err(prepare)?;
    if found > SCHEMA_VERSION {
        let schema = schema.to_string();
        return Err(OpenError::NewerSchema { schema, found, known: SCHEMA_VERSION });
    }
    Ok(connection)
}

fn has_tables(connection: &mut Connection, schema: &SchemaName) -> Result<bool, Trouble> {
    let query = Query::new(HAS_META, parameters![schema.as_str().to_owned()]);
    Ok(connection.trip(&[query], Frame::Plain)?.iter().any(|rows| !rows.is_empty()))
}

/// Makes everything in one transaction, under a lock that nodes which start at the same time wait for. Whoever comes
/// second finds the tables there, which is no failure.
fn make_tables(connection: &mut Connection, schema: &SchemaName) -> Result<(), Trouble> {
    let tables = TABLES.replace("{s}", schema.as_str());
    let script = format!(
        "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('duroxide {schema}', 0));
        CREATE SCHEMA IF NOT EXISTS {schema};
        {tables}
        COMMIT;"
    );
    let Err(trouble) = connection.script(&script) else { return Ok(()) };
    connection.script("ROLLBACK")?;
    if trouble.has_code(&SqlState::DUPLICATE_TABLE) { Ok(()) } else { Err(trouble) }
}

fn version(connection: &mut Connection) -> Result<i64, Trouble> {
    let answers = connection.trip(&[Query::new(VERSION, Vec::new())], Frame::Plain)?;
    match answers.iter().flatten().next() {
        Some(row) => row.column("schema_version"),
        None => Ok(0),
    }
}
