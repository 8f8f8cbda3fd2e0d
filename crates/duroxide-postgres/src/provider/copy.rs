//! Copies another store into a new schema.
//!
//! Rows go into a schema of another name, page by page, each page in a transaction. When all of them are copied and have
//! been compared with the source, that schema gets its name. So no process sees half a copy, and an interrupted one goes on
//! behind its last page.

use std::time::Duration;

use duroxide_provider::{
    ProviderError,
    invariant::{self, Violation},
    store::{CopySource, IntakeRow, StoreFailure, StoreReader as _, StoreSnapshot},
};

use crate::{
    OpenError, PostgresEngine, PostgresOptions, SchemaName,
    connection::{Connection, Frame, Query, parameters},
    database_error::DatabaseError,
    open::has_schema,
    value::Columns,
};

/// How many instances a transaction copies.
const PAGE: usize = 100;
const SUFFIX: &str = "_copy";
const DONE: &str = "SELECT count(*) AS instances, coalesce(max(number), 0)::bigint AS last FROM {s}.instance";
const ADD_INTAKE: &str = "INSERT INTO {s}.intake (kind, instance_id, name, version, data)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])";
const SET_NUMBERS: &str = "SELECT setval('{s}.numbers', ($1::bigint / 1024 + 1) * 1024 + 1, false),
    setval('{s}.dead_letter_number', (SELECT coalesce(max(number), 0) FROM {s}.dead_letter) + 1, false)";
const STATE: &str = "SELECT state FROM {s}.copied_from";
const NOTE_STATE: &str = "INSERT INTO {s}.copied_from (state) VALUES ($1)";

/// How far a copy has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyProgress {
    /// Instances that are in the new schema, those of an interrupted copy included.
    pub copied: u64,
    /// Instances in the source.
    pub total: u64,
}

/// Why a copy failed. The schema does not exist; the copied pages are kept for the next attempt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The source cannot be opened, or is in use.
    #[error("cannot copy from there: {0}")]
    Source(#[source] ProviderError),
    /// The database cannot be used.
    #[error(transparent)]
    Target(#[from] OpenError),
    /// The schema exists already.
    #[error(
        "schema {schema} exists: a copy makes its schema itself; choose another name, or drop the schema"
    )]
    SchemaExists {
        /// Its name.
        schema: String,
    },
    /// A lock and its copy need a connection of their own, and a pooler has none for them.
    #[error(
        "cannot copy through a transaction pooler: give the address of the server itself (PostgresOptions::session_config)"
    )]
    Pooled,
    /// Another process copies into the same schema.
    #[error("another copy into schema {schema} runs: wait for its end")]
    Busy {
        /// Its name.
        schema: String,
    },
    /// Reading or writing failed. The next attempt goes on from there.
    #[error("the copy was interrupted: {message} (try again: it goes on where it was)")]
    Interrupted {
        /// Why.
        message: String,
    },
    /// The copy differs from the source.
    #[error("the copy differs from its source at {what}")]
    Differs {
        /// The first instance that differs, or a part of the store.
        what: String,
    },
    /// Guarantees do not hold in the source, nor in its copy.
    #[error("the store breaks {} guarantees, the first of them: {}", violations.len(),
        violations.first().map(ToString::to_string).unwrap_or_default())]
    Unsound {
        /// All of them.
        violations: Vec<Violation>,
    },
}

impl From<StoreFailure> for CopyError {
    fn from(failure: StoreFailure) -> Self {
        Self::Interrupted { message: failure.message }
    }
}

impl From<DatabaseError> for CopyError {
    fn from(error: DatabaseError) -> Self {
        error.into_failure().into()
    }
}

/// Copies everything; returns how many instances there are. Blocks.
pub(crate) fn copy(
    source: &mut impl CopySource,
    options: &PostgresOptions,
    progress: &mut dyn FnMut(CopyProgress),
) -> Result<u64, CopyError> {
    let options = &options.past_pooler().ok_or(CopyError::Pooled)?;
    refuse_schema(options)?;
    let state = source.state()?;
    let mut target = Target::open(options, &state)?;
    let total = source.instance_count()?;
    let (mut copied, mut last) = target.done()?;
    progress(CopyProgress { copied, total });
    loop {
        let page = source.instances_after(last, PAGE)?;
        let Some(end) = page.last().map(|stored| stored.instance.row.number) else { break };
        copied += page.len() as u64;
        target.engine.tables().import_instances(page)?;
        last = end;
        progress(CopyProgress { copied, total });
    }
    target.add_rest(source)?;
    verify(&source.snapshot()?, &target.engine.snapshot()?)?;
    target.publish(&options.schema)?;
    Ok(total)
}

fn refuse_schema(options: &PostgresOptions) -> Result<(), CopyError> {
    let failed = |error| OpenError::of_connection(error, 1);
    let mut connection = Connection::open(options).map_err(failed)?;
    if has_schema(&mut connection, &options.schema)? {
        return Err(CopyError::SchemaExists { schema: options.schema.to_string() });
    }
    Ok(())
}

/// The schema that is copied into, as long as it has another name.
struct Target {
    engine: PostgresEngine,
    schema: SchemaName,
}

impl Target {
    /// Opens the rest of an interrupted copy of the same state, or begins anew.
    fn open(options: &PostgresOptions, state: &str) -> Result<Self, CopyError> {
        let name = format!("{}{SUFFIX}", options.schema);
        let schema = SchemaName::new(&name)
            .map_err(|error| OpenError::Prepare { schema: name.clone(), message: error.to_string() })?;
        // Histories may be long, and a page has those of many instances.
        let options =
            PostgresOptions { schema: schema.clone(), answer_timeout: Duration::MAX, ..options.clone() };
        let mut target = Self { engine: PostgresEngine::open(options)?.with_callers_clock(), schema };
        target.lock()?;
        if !target.continues(state)? {
            let (tables, schema) = (target.engine.tables(), &target.schema);
            tables.connection().script(&format!("DROP SCHEMA {schema} CASCADE"))?;
            target.engine.make_tables()?;
            target.continues(state)?;
        }
        Ok(target)
    }

    /// The lock ends with the connection.
    fn lock(&mut self) -> Result<(), CopyError> {
        const LOCK: &str =
            "SELECT pg_try_advisory_lock(hashtextextended('duroxide copy {s}', 0)) AS is_locked";
        let rows = self.ask(Query::new(LOCK, Vec::new()))?;
        match rows.first().map(|row| row.column("is_locked")).transpose()? {
            Some(true) => Ok(()),
            _ => Err(CopyError::Busy { schema: self.schema.to_string() }),
        }
    }

    /// Whether the rows were copied from this state. A schema without copied instances notes the state.
    fn continues(&mut self, state: &str) -> Result<bool, CopyError> {
        let table = format!("CREATE TABLE IF NOT EXISTS {}.copied_from (state text NOT NULL)", self.schema);
        self.engine.tables().connection().script(&table)?;
        let noted = self.ask(Query::new(STATE, Vec::new()))?;
        let Some(noted) = noted.first() else {
            if self.done()?.0 > 0 {
                return Ok(false);
            }
            self.ask(Query::new(NOTE_STATE, parameters![state.to_owned()]))?;
            return Ok(true);
        };
        Ok(noted.column::<String>("state")? == state)
    }

    /// How many instances were copied, and the number of the last one.
    fn done(&mut self) -> Result<(u64, u64), CopyError> {
        let rows = self.ask(Query::new(DONE, Vec::new()))?;
        let Some(row) = rows.first() else { return Ok((0, 0)) };
        Ok((row.number("instances")?, row.number("last")?))
    }

    /// Dead letters, intake and sequences. This may have been done before.
    fn add_rest(&mut self, source: &mut impl CopySource) -> Result<(), CopyError> {
        let clear = format!("DELETE FROM {0}.dead_letter; DELETE FROM {0}.intake", self.schema);
        self.engine.tables().connection().script(&clear)?;
        self.engine.tables().import_dead_letters(source.dead_letters()?)?;
        let intake = source.intake()?;
        let texts = |part: fn(&IntakeRow) -> &String| intake.iter().map(part).cloned().collect::<Vec<_>>();
        let versions: Vec<Option<String>> = intake.iter().map(|row| row.version.clone()).collect();
        self.ask(Query::new(
            ADD_INTAKE,
            parameters![
                texts(|row| &row.kind),
                texts(|row| &row.instance_id),
                texts(|row| &row.name),
                versions,
                texts(|row| &row.data)
            ],
        ))?;
        let next = i64::try_from(source.next_number()?).unwrap_or(i64::MAX / 2);
        self.ask(Query::new(SET_NUMBERS, parameters![next]))?;
        Ok(())
    }

    /// Gives the schema its name.
    fn publish(mut self, name: &SchemaName) -> Result<(), CopyError> {
        let script = format!(
            "BEGIN; DROP TABLE {0}.copied_from; ALTER SCHEMA {0} RENAME TO {name}; COMMIT",
            self.schema
        );
        Ok(self.engine.tables().connection().script(&script)?)
    }

    fn ask(&mut self, query: Query) -> Result<Vec<tokio_postgres::Row>, DatabaseError> {
        let answers = self.engine.tables().connection().trip(&[query], Frame::Plain)?;
        Ok(answers.into_iter().flatten().collect())
    }
}

fn verify(source: &StoreSnapshot, copy: &StoreSnapshot) -> Result<(), CopyError> {
    let differs = |what: &str| Err(CopyError::Differs { what: what.to_owned() });
    for (before, after) in source.instances.iter().zip(&copy.instances) {
        if before != after {
            return differs(&format!("instance {}", before.instance));
        }
    }
    if source.instances.len() != copy.instances.len() {
        return differs("the number of instances");
    }
    if source.dead_letters != copy.dead_letters {
        return differs("the dead letters");
    }
    let violations = invariant::check(copy);
    if violations.is_empty() { Ok(()) } else { Err(CopyError::Unsound { violations }) }
}
