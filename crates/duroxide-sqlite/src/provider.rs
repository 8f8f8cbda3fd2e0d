//! `SqliteProvider`: the provider over SQLite, with its threads.

mod intake;
mod thread;

use std::fmt::Write as _;

use duroxide_provider::store::StoreSnapshot;
use duroxide_store::{StoreBuilder, StoreOptions, StoreProvider, impl_provider_by_delegation};

pub use self::intake::{Intake, IntakeError};
use self::thread::run_on_a_thread;
use crate::{
    SqliteEngine, SqliteError, SqliteOptions, SqliteReader, compact,
    db::Db,
    open::{Location, existing_store, open_writer},
    wal,
};

/// Reader connections, next to the writer. A store in memory has one connection for everything.
const READERS: usize = 2;

/// A provider on a SQLite database.
///
/// One thread writes, and commits all waiting operations in one transaction; two read. Several providers, in one
/// process or in many, may open one file. Dropping a provider ends its threads and closes its connections.
#[derive(Debug)]
pub struct SqliteProvider {
    store: StoreProvider,
    location: Location,
    options: SqliteOptions,
}

impl_provider_by_delegation!(SqliteProvider, store);

impl SqliteProvider {
    /// Opens a store: `sqlite:path` (made if it is missing; an empty file is a new store) or `sqlite::memory:`.
    ///
    /// # Errors
    /// A URL that names no store, or a file that cannot be one: not a database, another program's, read-only, written
    /// by a newer schema, in a missing directory. Nothing in such a file is changed.
    pub async fn new(url: &str, options: Option<SqliteOptions>) -> Result<Self, SqliteError> {
        Self::open(Location::parse(url)?, options.unwrap_or_default()).await
    }

    /// Opens an existing store: a missing file is not made, and the tables of an older release are not upgraded. For
    /// tools that change the stores of other programs.
    ///
    /// # Errors
    /// As [`Self::new`], and for a file that is missing, empty, or not of this release's schema.
    pub async fn open_existing(url: &str, options: Option<SqliteOptions>) -> Result<Self, SqliteError> {
        let (url, options) = (url.to_owned(), options.unwrap_or_default());
        run_on_a_thread("open", move || Self::start(existing_store(&url)?, options)).await
    }

    /// Opens an existing store for reading only, while other processes write it. Every change is refused with a
    /// permanent error, and so is joining as a node. For tools that read the stores of other programs.
    ///
    /// # Errors
    /// As [`Self::open_existing`].
    pub async fn open_read_only(url: &str) -> Result<Self, SqliteError> {
        let url = url.to_owned();
        run_on_a_thread("open", move || Self::start_reading(existing_store(&url)?)).await
    }

    /// Opens a private store in memory.
    ///
    /// # Errors
    /// If SQLite cannot be set up, or the system has no thread to give.
    pub async fn new_in_memory() -> Result<Self, SqliteError> {
        Self::new_in_memory_with_options(None).await
    }

    /// Opens a private store in memory, with options.
    ///
    /// # Errors
    /// If SQLite cannot be set up, or the system has no thread to give.
    pub async fn new_in_memory_with_options(options: Option<SqliteOptions>) -> Result<Self, SqliteError> {
        Self::open(Location::Memory, options.unwrap_or_default()).await
    }

    /// Moves the write-ahead log into the database file, for example before a copy of it is taken. A store in memory
    /// has none.
    ///
    /// # Errors
    /// If the file cannot be opened or written, or other connections held it for too long.
    pub async fn checkpoint(&self) -> Result<(), SqliteError> {
        if self.location == Location::Memory {
            return Ok(());
        }
        let (location, options) = (self.location.clone(), self.options.clone());
        run_on_a_thread("checkpoint", move || {
            let db = Db::new(open_writer(&location, &options)?);
            wal::checkpoint_fully(&db).map_err(|failure| failure.into_provider_error("checkpoint"))
        })
        .await
    }

    /// Gives pages that deleted rows have left back to the file system; returns how many bytes. A store in memory has
    /// none to give.
    ///
    /// The first call of a file writes the whole file anew, which needs as much space again and blocks all other
    /// writes: make it when no node runs, or right after the file was made. Later calls go in steps of 1 MiB while
    /// nodes run.
    ///
    /// # Errors
    /// If the file cannot be opened or written, or other connections held it for too long. The store is unchanged then,
    /// or has given back fewer pages.
    pub async fn compact(&self) -> Result<u64, SqliteError> {
        if self.location == Location::Memory {
            return Ok(0);
        }
        let (location, options) = (self.location.clone(), self.options.clone());
        run_on_a_thread("compact", move || compact::run(&open_writer(&location, &options)?)).await
    }

    /// The whole content, for the checks of [`duroxide_provider::invariant`]. All of it is held in memory.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn snapshot(&self) -> Result<StoreSnapshot, SqliteError> {
        self.store.snapshot().await
    }

    /// Everything that is queued or locked, as text for people. Payloads are shown by their size.
    pub async fn debug_dump(&self) -> String {
        match self.snapshot().await {
            Ok(snapshot) => dump(&snapshot),
            Err(error) => error.to_string(),
        }
    }

    async fn open(location: Location, options: SqliteOptions) -> Result<Self, SqliteError> {
        run_on_a_thread("open", move || Self::start(location, options)).await
    }

    fn start_reading(location: Location) -> Result<Self, SqliteError> {
        let options = SqliteOptions::default();
        let reader = {
            let (location, options) = (location.clone(), options.clone());
            move || SqliteReader::open(&location, &options)
        };
        let store = StoreBuilder::opening(reader.clone())
            .with_reader(reader)
            .named("sqlite", env!("CARGO_PKG_VERSION"))
            .start()?;
        Ok(Self { store, location, options })
    }

    fn start(location: Location, options: SqliteOptions) -> Result<Self, SqliteError> {
        let location = location.resolve();
        let mut builder = {
            let (location, options) = (location.clone(), options.clone());
            StoreBuilder::opening(move || SqliteEngine::open_at(location, options))
        };
        if let Some(files) = location.node_files() {
            builder = builder.with_node_locks(files);
        }
        let shared = location != Location::Memory;
        for _ in 0..if shared { READERS } else { 0 } {
            let (location, options) = (location.clone(), options.clone());
            builder = builder.with_reader(move || SqliteReader::open(&location, &options));
        }
        let store = builder
            .named("sqlite", env!("CARGO_PKG_VERSION"))
            .with_options(StoreOptions { shared, ..StoreOptions::default() })
            .start()?;
        Ok(Self { store, location, options })
    }
}

fn dump(snapshot: &StoreSnapshot) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{} instances, {} dead letters",
        snapshot.instances.len(),
        snapshot.dead_letters.len()
    );
    for instance in &snapshot.instances {
        let name = instance.name.as_deref().unwrap_or("(not started)");
        let _ = writeln!(text, "{} {name} execution {}", instance.instance, instance.execution_id);
        if let Some(lock) = &instance.lock {
            let _ = writeln!(text, "  locked until {} ms", lock.until.as_millis());
        }
        for message in &instance.messages {
            let (due, attempts, locked) = (message.due_at_ms, message.attempt_count, message.locked);
            let bytes = message.data.len();
            let _ =
                writeln!(text, "  message due {due} ms, {attempts} attempts, locked {locked}, {bytes} bytes");
        }
        for activity in &instance.activities {
            let (id, attempts, locked) =
                (activity.activity_id, activity.attempt_count, activity.lock.is_some());
            let _ = writeln!(text, "  activity {id}, {attempts} attempts, locked {locked}");
        }
    }
    text
}
