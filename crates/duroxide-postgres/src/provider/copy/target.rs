//! [`Target`]: the schema that is copied into, until it gets its name.

use std::time::Duration;

use duroxide_provider::{
    memory::record::StoredInstance,
    store::{CopySource, IntakeRow, StoreReader as _, StoreSnapshot},
};

use super::CopyError;
use crate::{
    OpenError, PostgresEngine, PostgresOptions, SchemaName,
    connection::{Connection, Frame, Query, parameters},
    database_error::DatabaseError,
    open::{Found, begin_locked, connect, has_schema, migrations_from, or_roll_back, prepare},
    value::Columns,
};

const SUFFIX: &str = "_copy";
const LOCK: &str = "SELECT pg_try_advisory_lock(hashtextextended('duroxide copy {s}', 0)) AS is_locked";
const WAIT_FOR_LOCK: &str = "SELECT pg_advisory_lock(hashtextextended('duroxide copy {s}', 0))";
/// The table `copied_from` marks the schema of a copy that is not complete, and has the state of its source. The transaction that
/// makes the schema makes it, and the one that gives the schema its name drops it: a schema without it is no copy's.
const IS_MARKED: &str =
    "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = '{s}' AND tablename = 'copied_from'";
const MARK: &str = "INSERT INTO {s}.copied_from (state) VALUES ($1)";
const STATE: &str = "SELECT state FROM {s}.copied_from";
const DONE: &str = "SELECT count(*) AS instances, coalesce(max(number), 0)::bigint AS last FROM {s}.instance";
const ADD_INTAKE: &str = "INSERT INTO {s}.intake (kind, instance_id, name, version, data)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])";
const INTAKE: &str = "SELECT kind, instance_id, name, version, data FROM {s}.intake ORDER BY number";
const SET_NUMBERS: &str = "SELECT setval('{s}.numbers', ($1::bigint / 1024 + 1) * 1024 + 1, false),
    setval('{s}.dead_letter_number', (SELECT coalesce(max(number), 0) FROM {s}.dead_letter) + 1, false)";
const SCHEMA_ID: &str = "SELECT oid::bigint AS id FROM pg_catalog.pg_namespace WHERE nspname = $1";

/// What the schema of a copy holds before it begins.
enum Earlier {
    Nothing,
    /// An interrupted copy of a source in this state.
    Copy {
        state: String,
    },
    /// A store, or anything else that no interrupted copy has left.
    Other,
}

/// The schema that is copied into, as long as it has another name.
pub(super) struct Target {
    engine: PostgresEngine,
    options: PostgresOptions,
}

impl Target {
    /// Opens the rest of an interrupted copy of the same state, or begins anew.
    pub(super) fn open(options: &PostgresOptions, state: &str) -> Result<Self, CopyError> {
        let name = format!("{}{SUFFIX}", options.schema);
        let schema = SchemaName::new(&name)
            .map_err(|error| OpenError::Prepare { schema: name.clone(), message: error.to_string() })?;
        // Histories may be long, and a page has those of many instances.
        let options =
            PostgresOptions { schema: schema.clone(), answer_timeout: Duration::MAX, ..options.clone() };
        let (mut connection, _) = connect(&options)?;
        lock(&mut connection, &schema)?;
        match earlier(&mut connection, &schema)? {
            Earlier::Nothing => begin(&mut connection, &schema, state, "")?,
            Earlier::Copy { state: earlier } if earlier == state => {}
            Earlier::Copy { .. } => {
                let drop = format!("DROP SCHEMA {schema} CASCADE;");
                begin(&mut connection, &schema, state, &drop)?;
            }
            Earlier::Other => return Err(CopyError::WorkingSchemaExists { schema: name }),
        }
        prepare(&mut connection, &schema, Found::Ours, None)?;
        let engine = PostgresEngine::on(connection, options.clone()).with_callers_clock();
        Ok(Self { engine, options })
    }

    /// How many instances were copied, and the number of the last one.
    pub(super) fn done(&mut self) -> Result<(u64, u64), CopyError> {
        let rows = ask(self.connection(), Query::new(DONE, Vec::new()))?;
        let Some(row) = rows.first() else { return Ok((0, 0)) };
        Ok((row.number("instances")?, row.number("last")?))
    }

    /// Adds instances.
    pub(super) fn add(&mut self, page: Vec<StoredInstance>) -> Result<(), CopyError> {
        Ok(self.engine.tables().import_instances(page)?)
    }

    /// Dead letters, intake and sequences. This may have been done before.
    pub(super) fn add_rest(&mut self, source: &mut impl CopySource) -> Result<(), CopyError> {
        let schema = &self.options.schema;
        let clear = format!("DELETE FROM {schema}.dead_letter; DELETE FROM {schema}.intake");
        self.connection().script(&clear)?;
        self.engine.tables().import_dead_letters(source.dead_letters()?)?;
        let intake = source.intake()?;
        let texts = |part: fn(&IntakeRow) -> &String| intake.iter().map(part).cloned().collect::<Vec<_>>();
        let versions: Vec<Option<String>> = intake.iter().map(|row| row.version.clone()).collect();
        let rows = parameters![
            texts(|row| &row.kind),
            texts(|row| &row.instance_id),
            texts(|row| &row.name),
            versions,
            texts(|row| &row.data)
        ];
        ask(self.connection(), Query::new(ADD_INTAKE, rows))?;
        let next = i64::try_from(source.next_number()?).unwrap_or(i64::MAX / 2);
        ask(self.connection(), Query::new(SET_NUMBERS, parameters![next]))?;
        Ok(())
    }

    /// Everything that was copied.
    pub(super) fn snapshot(&mut self) -> Result<StoreSnapshot, CopyError> {
        Ok(self.engine.snapshot()?)
    }

    /// The rows of the intake that were copied, oldest first.
    pub(super) fn intake(&mut self) -> Result<Vec<IntakeRow>, CopyError> {
        let row = |row: &tokio_postgres::Row| {
            Ok(IntakeRow {
                kind: row.column("kind")?,
                instance_id: row.column("instance_id")?,
                name: row.column("name")?,
                version: row.column("version")?,
                data: row.column("data")?,
            })
        };
        let rows = ask(self.connection(), Query::new(INTAKE, Vec::new()))?;
        Ok(rows.iter().map(row).collect::<Result<_, DatabaseError>>()?)
    }

    /// Gives the schema its name.
    pub(super) fn publish(mut self, name: &SchemaName) -> Result<(), CopyError> {
        let schema = self.options.schema.clone();
        let id = schema_id(self.connection(), &schema)?;
        let script =
            format!("BEGIN; DROP TABLE {schema}.copied_from; ALTER SCHEMA {schema} RENAME TO {name}; COMMIT");
        let Err(error) = self.connection().script(&script) else { return Ok(()) };
        let Self { engine, options } = self;
        // The lock ends with its connection.
        drop(engine);
        // The answer to the commit may have been lost, and then the next attempt would find a schema of this name.
        if id.is_some() && id_after_commit(&options, name).is_ok_and(|found| found == id) {
            return Ok(());
        }
        Err(error.into())
    }

    fn connection(&mut self) -> &mut Connection {
        self.engine.tables().connection()
    }
}

/// Refuses a second copy. The lock ends with the connection.
fn lock(connection: &mut Connection, schema: &SchemaName) -> Result<(), CopyError> {
    let rows = ask(connection, Query::new(LOCK, Vec::new()))?;
    match rows.first().map(|row| row.column("is_locked")).transpose()? {
        Some(true) => Ok(()),
        _ => Err(CopyError::Busy { schema: schema.to_string() }),
    }
}

fn earlier(connection: &mut Connection, schema: &SchemaName) -> Result<Earlier, DatabaseError> {
    if !has_schema(connection, schema)? {
        return Ok(Earlier::Nothing);
    }
    if ask(connection, Query::new(IS_MARKED, Vec::new()))?.is_empty() {
        return Ok(Earlier::Other);
    }
    let rows = ask(connection, Query::new(STATE, Vec::new()))?;
    let state = rows.first().map(|row| row.column("state")).transpose()?.unwrap_or_default();
    Ok(Earlier::Copy { state })
}

/// Makes the schema with its mark and all tables in one transaction, behind `drop`. So an interrupted attempt leaves a schema that is
/// marked, or none.
fn begin(
    connection: &mut Connection,
    schema: &SchemaName,
    state: &str,
    drop: &str,
) -> Result<(), DatabaseError> {
    or_roll_back(connection, |connection| {
        let (begin, tables) = (begin_locked(schema), migrations_from(0, schema));
        connection.script(&format!(
            "{begin}; {drop} CREATE SCHEMA {schema}; CREATE TABLE {schema}.copied_from (state text NOT NULL); {tables}"
        ))?;
        ask(connection, Query::new(MARK, parameters![state.to_owned()]))?;
        connection.script("COMMIT")
    })
}

/// The id of the schema with this name, after a lost connection has ended that may have given it the name.
fn id_after_commit(options: &PostgresOptions, name: &SchemaName) -> Result<Option<i64>, DatabaseError> {
    let mut connection = Connection::open(options)?;
    connection.set_limit(options.answer_timeout);
    connection.script("SET lock_timeout = '10s'")?;
    // A server that has not noticed the end of the connection has carried out its last script all the same.
    let _ = ask(&mut connection, Query::new(WAIT_FOR_LOCK, Vec::new()));
    schema_id(&mut connection, name)
}

fn schema_id(connection: &mut Connection, schema: &SchemaName) -> Result<Option<i64>, DatabaseError> {
    let rows = ask(connection, Query::new(SCHEMA_ID, parameters![schema.as_str().to_owned()]))?;
    rows.first().map(|row| row.column("id")).transpose()
}

fn ask(connection: &mut Connection, query: Query) -> Result<Vec<tokio_postgres::Row>, DatabaseError> {
    let answers = connection.trip(&[query], Frame::Plain)?;
    Ok(answers.into_iter().flatten().collect())
}
