//! `PostgresProvider`: the provider over PostgreSQL, with its connections.

mod copy;
mod intake;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use duroxide_provider::{
    ProviderError,
    store::{CopySource, StoreFailure, StoreSnapshot},
};
use duroxide_store::{StoreBuilder, StoreOptions, StoreProvider, impl_provider_by_delegation};

use self::copy::copy;
pub(crate) use self::intake::INTAKE_NOTIFICATION;
pub use self::{
    copy::{CopyError, CopyProgress},
    intake::{Intake, IntakeError},
};
use crate::{
    OpenError, PostgresEngine, PostgresHealth, PostgresOptions,
    connection::NodeClock,
    database_error::DatabaseError,
    node_locks::SessionLocks,
    open::{check_session_database, open_existing, open_for},
    reads::health,
    session::Session,
};

/// Reader connections, next to the writer.
const READERS: usize = 2;
/// The writer, the readers, and the session connection.
pub(crate) const CONNECTIONS: usize = 2 + READERS;
/// How often to ask the session connection for notifications; that costs no query.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// A provider on a PostgreSQL database.
///
/// Any number of processes may open one schema; each is a node that takes work. A provider has one writer connection, which
/// commits all waiting operations in one transaction, two readers, and a session connection, which listens, and whose end
/// tells other processes that this one has ended. Dropping a provider closes them.
#[derive(Debug)]
pub struct PostgresProvider {
    store: StoreProvider,
    options: PostgresOptions,
}

impl_provider_by_delegation!(PostgresProvider, store);

impl PostgresProvider {
    /// Opens the schema `duroxide` of a database, which is made if it is missing: `postgres://app@localhost/app`, or
    /// `host=localhost user=app dbname=app`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn new(url: &str) -> Result<Self, OpenError> {
        Self::open(PostgresOptions::new(url)?).await
    }

    /// Opens a store with options.
    ///
    /// # Errors
    /// See [`OpenError`]. Nothing is written then, except that a schema may have been made if a later connection could not be.
    pub async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        Self::open_on_a_thread(move || Self::start(options)).await
    }

    /// Opens an existing store without changing it: a missing schema is not made, and that of an older release is not
    /// upgraded. For tools that read the stores of other programs.
    ///
    /// # Errors
    /// See [`OpenError`]. Nothing is written then.
    pub async fn open_existing(options: PostgresOptions) -> Result<Self, OpenError> {
        Self::open_on_a_thread(move || open_existing(&options).and_then(|_| Self::start(options))).await
    }

    /// The whole content, for the checks of [`duroxide_provider::invariant`]. All of it is held in memory.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn snapshot(&self) -> Result<StoreSnapshot, ProviderError> {
        self.store.snapshot().await
    }

    async fn open_on_a_thread(
        open: impl FnOnce() -> Result<Self, OpenError> + Send + 'static,
    ) -> Result<Self, OpenError> {
        let (reply, answer) = tokio::sync::oneshot::channel();
        let start = move || drop(reply.send(open()));
        std::thread::Builder::new()
            .name("duroxide-postgres-open".to_owned())
            .spawn(start)
            .map_err(|error| OpenError::Connect { message: error.to_string() })?;
        let panicked = |_| OpenError::Connect { message: "opening the store panicked".to_owned() };
        answer.await.map_err(panicked)?
    }

    /// Copies all instances of another store, running ones included, into a new schema; returns how many there are. `open`
    /// opens the source, on the thread that copies.
    ///
    /// The schema must not exist. It appears when everything was copied and compared with the source, and the guarantees of a
    /// store hold in it. A copy that was interrupted goes on where it was if it is repeated, unless the source has
    /// changed; then it begins anew. The role must be allowed to create schemas. Both stores are held in memory at the end, to
    /// compare them.
    ///
    /// # Errors
    /// See [`CopyError`].
    pub async fn copy_from<S: CopySource>(
        open: impl FnOnce() -> Result<S, ProviderError> + Send + 'static,
        options: PostgresOptions,
        mut progress: impl FnMut(CopyProgress) + Send + 'static,
    ) -> Result<u64, CopyError> {
        let run = move || copy(&mut open().map_err(CopyError::Source)?, &options, &mut progress);
        let (reply, answer) = tokio::sync::oneshot::channel();
        let interrupted = |message: String| CopyError::Interrupted { message };
        std::thread::Builder::new()
            .name("duroxide-postgres-copy".to_owned())
            .spawn(move || drop(reply.send(run())))
            .map_err(|error| interrupted(error.to_string()))?;
        answer.await.map_err(|_| interrupted("copying panicked".to_owned()))?
    }

    /// Blocks: an engine connects on the thread that uses it.
    fn start(options: PostgresOptions) -> Result<Self, OpenError> {
        let session_role = check_session_database(&options)?;
        // Before any thread is started: typed errors, the schema, and the time.
        let clock = Arc::<NodeClock>::default();
        let connection = open_for(&options, session_role.as_deref())?;
        let mut first = PostgresEngine::on(connection, options.clone()).with_node_clock(Arc::clone(&clock));
        let silent = |failure: StoreFailure| OpenError::Connect { message: failure.message };
        first.tables().database_time().map_err(silent)?;
        drop(first);
        let failures = Failures::default();
        let refused = {
            let failures = failures.clone();
            move |error: ProviderError| {
                failures.take().unwrap_or(OpenError::Connect { message: error.message })
            }
        };
        // 24.8: without it leases decide about the items of a dead process.
        let session = match options.notifications {
            true => Some(Arc::new(start_session(&options, Arc::clone(&clock))?)),
            false => None,
        };
        let state = session.as_ref().map(|session| session.state());
        let mut builder = {
            let (open, clock) = (failures.noting(&options), Arc::clone(&clock));
            StoreBuilder::opening(move || Ok(open()?.with_session(state).with_node_clock(clock)))
        };
        for _ in 0..READERS {
            builder = builder.with_reader(failures.noting(&options));
        }
        if let Some(session) = session {
            builder = builder.with_node_locks(SessionLocks::new(session));
        }
        let check_interval = if options.notifications { CHECK_INTERVAL } else { options.poll_interval };
        let early_turns = options.early_turns;
        let store = builder
            .named("postgres", env!("CARGO_PKG_VERSION"))
            .with_recorded_clock(clock)
            .with_options(StoreOptions { check_interval, early_turns, ..StoreOptions::default() })
            .start()
            .map_err(refused)?;
        Ok(Self { store, options })
    }

    /// How large the tables are, how many of their rows are dead, and how long work waits. It makes a connection of its own
    /// for the question, so it answers although the store is busy.
    ///
    /// ```no_run
    /// # async fn example(store: duroxide_postgres::PostgresProvider) -> Result<(), Box<dyn std::error::Error>> {
    /// let health = store.health().await?;
    /// for table in health.tables.iter().filter(|table| table.dead_share() > 0.5) {
    ///     println!("{}: {} dead rows, vacuumed {:?} ago", table.name, table.dead_rows, table.vacuumed);
    /// }
    /// println!("the next instance has waited for {:?}", health.oldest_ready_instance);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the database cannot be reached or does not answer.
    pub async fn health(&self) -> Result<PostgresHealth, ProviderError> {
        health::read(&self.options).await
    }
}

/// Both connections may have the same fault, so the error names the connection.
fn start_session(options: &PostgresOptions, clock: Arc<NodeClock>) -> Result<Session, OpenError> {
    let refused =
        |error: DatabaseError| OpenError::of_connection(error.of_session_connection(), options, CONNECTIONS);
    Session::start(options.clone(), clock).map_err(refused)
}

/// The typed error of an engine that could not be opened on its thread; the store's own error loses the type.
#[derive(Debug, Clone, Default)]
struct Failures(Arc<Mutex<Option<OpenError>>>);

impl Failures {
    /// Opens an engine, and keeps the failure.
    fn noting(
        &self,
        options: &PostgresOptions,
    ) -> impl FnOnce() -> Result<PostgresEngine, ProviderError> + Send + use<> {
        let (kept, options) = (Arc::clone(&self.0), options.clone());
        move || {
            let early_turns = options.early_turns;
            let opened = PostgresEngine::open(options).map_err(|error| {
                let message = error.to_string();
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                ProviderError::retryable("open", message)
            });
            opened.map(|engine| if early_turns { engine.counting_early_turns() } else { engine })
        }
    }

    fn take(&self) -> Option<OpenError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
