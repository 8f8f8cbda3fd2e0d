//! The store engine: the storage rules over SQLite's tables.

mod intake;

use std::sync::Arc;

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{ReadyIndex as _, RuleOptions, Rules},
    store::{
        Batch, Done, FailureClass, Fault, Op, Readies, StoreEngine, StoreFailure, TellOfWrite,
        TransactionSteps,
    },
};

use crate::{
    SqliteError, SqliteOptions, SqliteReader, StatementTrace,
    db::Db,
    error::{commit_failure, failure, sqlite_error},
    open::{Location, open_writer},
    reads::Fullness,
    tables::{BEGIN, COMMIT, SqliteTables},
    wal::{LOG_BYTES_DUE, Log, LogSpace, WalWatcher},
};

/// Must change something: SQLite writes and syncs nothing for an update that leaves a row as it was. A number that is
/// left out does no harm.
const PROBE: &str = "UPDATE sequence SET next = next + 1 WHERE id = 1";

/// The SQLite store engine: the storage rules over one connection that writes.
#[derive(Debug)]
pub struct SqliteEngine {
    rules: Rules<SqliteTables>,
    location: Location,
    options: SqliteOptions,
    log: Log,
    log_space: LogSpace,
    /// The last read `data_version`: SQLite's count of commits by other connections.
    data_version: i64,
    /// Whether the intake may have rows.
    intake_due: bool,
    /// Whether the store was closed and could not be opened again yet.
    closed: bool,
    trace: Option<Arc<StatementTrace>>,
    watcher: WalWatcher,
}

impl SqliteEngine {
    /// Opens the store of a URL, `sqlite:path` or `sqlite::memory:`, and makes it if it is missing.
    ///
    /// # Errors
    /// A URL that names no store, or a file that cannot be one: not a database, another program's, read-only, written
    /// by a newer schema, in a missing directory. Nothing in such a file is changed.
    pub fn open(url: &str, options: SqliteOptions) -> Result<Self, SqliteError> {
        Self::open_at(Location::parse(url)?, options)
    }

    /// Opens a private store in memory.
    ///
    /// # Errors
    /// Only if SQLite itself cannot be set up.
    pub fn open_in_memory(options: SqliteOptions) -> Result<Self, SqliteError> {
        Self::open_at(Location::Memory, options)
    }

    pub(crate) fn open_at(location: Location, options: SqliteOptions) -> Result<Self, SqliteError> {
        let location = location.resolve();
        let conn = open_writer(&location, &options)?;
        let log = Log::of(&conn, &location).map_err(|error| sqlite_error("open", &error))?;
        let rule_options = RuleOptions { orphan_message_ttl: options.orphan_message_ttl };
        let mut engine = Self {
            rules: Rules::new(SqliteTables::new(Db::new(conn)), rule_options),
            location,
            options,
            log,
            log_space: LogSpace::default(),
            data_version: 0,
            intake_due: true,
            closed: false,
            trace: None,
            watcher: WalWatcher::default(),
        };
        engine.changed_elsewhere().map_err(|failure| failure.into_provider_error("open"))?;
        Ok(engine)
    }

    /// Another connection to the same store, for reads next to the writer. `None` for a store in memory, which has one
    /// connection for everything: SQLite's shared cache answers concurrent readers with an error that a busy timeout
    /// does not prevent.
    ///
    /// # Errors
    /// If the connection cannot be opened or set up.
    pub fn open_reader(&self) -> Result<Option<SqliteReader>, SqliteError> {
        match &self.location {
            Location::Memory => Ok(None),
            file @ Location::File { .. } => SqliteReader::open(file, &self.options).map(Some),
        }
    }

    /// Moves the write-ahead log into the database, as far as readers allow.
    ///
    /// # Errors
    /// If SQLite cannot read the log or write the database.
    pub fn checkpoint(&mut self) -> Result<(), StoreFailure> {
        self.log.checkpoint_now(&self.rules.tables().db)
    }

    /// Keeps every statement from now on, also after a reopen.
    pub fn trace_statements(&mut self) -> Arc<StatementTrace> {
        let trace = Arc::clone(self.trace.get_or_insert_default());
        self.rules.tables_mut().db.trace_to(Some(Arc::clone(&trace)));
        trace
    }

    /// The value of a PRAGMA on this connection.
    ///
    /// # Errors
    /// If SQLite does not know the pragma.
    pub fn pragma(&self, name: &str) -> Result<String, SqliteError> {
        self.db().pragma(name)
    }

    /// The steps of a transaction, for tests that read a store during a transaction.
    #[doc(hidden)]
    pub fn steps(&mut self) -> &mut (impl TransactionSteps + use<>) {
        &mut self.rules
    }

    pub(crate) fn db(&self) -> &Db {
        &self.rules.tables().db
    }

    /// The time of reads: that of the last transaction.
    #[expect(clippy::unnecessary_wraps, reason = "a reader has to ask the store")]
    pub(crate) fn read_at(&self) -> Result<Timestamp, StoreFailure> {
        Ok(self.rules.now())
    }

    /// A node joins: it will write much. The join's commit puts the longer log on the disk.
    fn make_room_in_log(&mut self) {
        if self.location.log_bytes().is_some_and(|bytes| bytes < LOG_BYTES_DUE) {
            self.log_space.make(&self.rules.tables().db, &mut self.log);
        }
    }

    /// Connection and mailbox counts, for reads.
    pub(crate) fn db_and_fullness(&mut self) -> (&Db, &mut Fullness) {
        self.rules.tables_mut().db_and_fullness()
    }

    /// Closes the connection before another is opened: its cached index of the log may differ from the disk. An empty
    /// database takes its place, and runs no transaction.
    fn close(&mut self) -> Result<(), StoreFailure> {
        self.rules.rollback();
        let empty = Db::empty().map_err(|error| failure(&error))?;
        self.closed = true;
        self.rules.reopened();
        self.rules.tables_mut().db = empty;
        Ok(())
    }

    /// Commits something, to prove that the store works.
    fn probe(&self) -> Result<(), StoreFailure> {
        let db = self.db();
        db.run(BEGIN).map_err(|error| failure(&error))?;
        db.execute(PROBE, [])?;
        db.run(COMMIT).map_err(|error| commit_failure(&error))
    }
}

impl StoreEngine for SqliteEngine {
    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        if self.closed {
            let failure = StoreFailure::new(FailureClass::Retryable, "the store is being opened again");
            return Err(Fault::Unavailable(failure));
        }
        if batch.operations.iter().any(|submitted| matches!(&*submitted.op, Op::JoinNode(_))) {
            self.make_room_in_log();
        }
        if self.intake_due && self.has_intake().map_err(Fault::Unavailable)? {
            return self.transact_with_intake(batch);
        }
        self.rules.transact_in_steps(batch)
    }

    /// Rows in the intake are due now.
    fn next_wake(&mut self, now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
        if self.has_intake()? {
            return Ok(Some(now));
        }
        self.rules.next_wake()
    }

    /// The number changes only through the commits of other connections.
    fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure> {
        let version = self.rules.tables().data_version()?;
        let changed = std::mem::replace(&mut self.data_version, version) != version;
        self.intake_due |= changed;
        Ok(changed)
    }

    /// Every commit writes the log, so the log is watched.
    fn tell_of_writes(&mut self, tell: &TellOfWrite) -> bool {
        let log = self.location.log(self.db().conn());
        log.is_some_and(|log| self.watcher.tell_of_write(&log, tell))
    }

    fn may_be_ready(&mut self) -> Result<Readies, StoreFailure> {
        self.rules.tables_mut().may_be_ready()
    }

    fn reopen(&mut self) -> Result<(), StoreFailure> {
        if self.location == Location::Memory {
            return Ok(());
        }
        self.close()?;
        let into_failure = |error: SqliteError| {
            let class = if error.retryable { FailureClass::Retryable } else { FailureClass::Permanent };
            StoreFailure::new(class, error.to_string())
        };
        let conn = open_writer(&self.location, &self.options).map_err(into_failure)?;
        self.log = Log::of(&conn, &self.location).map_err(|error| failure(&error))?;
        let tables = self.rules.tables_mut();
        tables.db = Db::new(conn);
        tables.db.trace_to(self.trace.clone());
        // A commit whose sync failed may be in the log all the same. Linux marks the pages that it could not write as
        // clean, and no later sync of the log writes them; a checkpoint writes them again, into the database.
        self.log.checkpoint_now(&tables.db)?;
        self.probe()?;
        self.closed = false;
        self.intake_due = true;
        Ok(())
    }

    fn maintain(&mut self) -> Result<(), StoreFailure> {
        self.log.maintain(&self.rules.tables().db)
    }
}
