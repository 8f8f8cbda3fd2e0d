//! Copies another store into a new schema.
//!
//! Rows go into a schema of another name, page by page, each page in a transaction. When all of them are copied and have
//! been compared with the source, that schema gets its name. So no process sees half a copy, and an interrupted one goes on
//! behind its last page.

mod target;

use duroxide_provider::{
    ProviderError,
    invariant::{self, Violation},
    store::{CopySource, StoreFailure, StoreSnapshot},
};

use self::target::Target;
use crate::{
    OpenError, PostgresOptions, connection::Connection, database_error::DatabaseError, open::has_schema,
};

/// How many instances a transaction copies.
const PAGE: usize = 100;

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
    /// The schema in which the copy would work until it is complete exists, and no interrupted copy has made it: it may be a store.
    #[error(
        "schema {schema} exists, and no interrupted copy has made it: a copy makes and drops a schema of this name; choose \
         another name"
    )]
    WorkingSchemaExists {
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
        target.add(page)?;
        last = end;
        progress(CopyProgress { copied, total });
    }
    target.add_rest(source)?;
    verify(&source.snapshot()?, &target.snapshot()?)?;
    if source.intake()? != target.intake()? {
        return Err(CopyError::Differs { what: "the intake".to_owned() });
    }
    target.publish(&options.schema)?;
    Ok(total)
}

fn refuse_schema(options: &PostgresOptions) -> Result<(), CopyError> {
    let failed = |error| OpenError::of_connection(error, options, 1);
    let mut connection = Connection::open(options).map_err(failed)?;
    if has_schema(&mut connection, &options.schema)? {
        return Err(CopyError::SchemaExists { schema: options.schema.to_string() });
    }
    Ok(())
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
