//! Moving the write-ahead log into the database, between two transactions instead of inside somebody's commit.
//!
//! SQLite restarts the log only after a checkpoint that reached its end, so checkpoints must keep up with the writer:
//! they are made by the writer itself. The log is never truncated: overwriting an existing one syncs faster than
//! appending.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use duroxide_provider::store::{FailureClass, StoreFailure};
use rusqlite::{Connection, hooks::Wal};

use crate::db::Db;

/// From this many bytes on the log is checkpointed.
pub(crate) const LOG_BYTES_DUE: u64 = 4 << 20;
/// From this many bytes on (a reader holds an old state) the checkpoint waits for the readers, so that the log can
/// start over.
const LOG_BYTES_MAX: u64 = 256 << 20;
const _: () = assert!(LOG_BYTES_DUE < LOG_BYTES_MAX);

const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
const RESTART: &str = "PRAGMA wal_checkpoint(RESTART)";
const FULL: &str = "PRAGMA wal_checkpoint(FULL)";

/// How long the log is.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pages: Arc<AtomicU64>,
    page_bytes: u64,
}

impl Log {
    /// Follows the log of a connection: SQLite tells its length with every commit.
    pub(crate) fn follow(conn: &mut Connection) -> rusqlite::Result<Self> {
        let page_bytes: i64 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let log = Self { pages: Arc::default(), page_bytes: u64::try_from(page_bytes).unwrap_or_default() };
        let pages = Arc::clone(&log.pages);
        conn.wal_hook(Some(move |_: &'_ mut Wal, length: i32| {
            pages.store(u64::try_from(length).unwrap_or_default(), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(log)
    }

    fn bytes(&self) -> u64 {
        self.pages.load(Ordering::Relaxed).saturating_mul(self.page_bytes)
    }

    /// Checkpoints if it is due.
    pub(crate) fn maintain(&self, db: &Db) -> Result<(), StoreFailure> {
        match self.bytes() {
            bytes if bytes >= LOG_BYTES_MAX => self.checkpoint(db, RESTART),
            bytes if bytes >= LOG_BYTES_DUE => self.checkpoint(db, PASSIVE),
            _ => Ok(()),
        }
    }

    /// Checkpoints as far as readers allow.
    pub(crate) fn checkpoint_now(&self, db: &Db) -> Result<(), StoreFailure> {
        self.checkpoint(db, PASSIVE)
    }

    fn checkpoint(&self, db: &Db, sql: &'static str) -> Result<(), StoreFailure> {
        let progress = run(db, sql)?;
        if progress.length == progress.done {
            // The next commit starts the log over; until then there is nothing to do.
            self.pages.store(0, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Checkpoints everything that is committed now, waiting for writers and readers that are in the way.
pub(crate) fn run_full(db: &Db) -> Result<(), StoreFailure> {
    if run(db, FULL)?.busy {
        let message = "the log could not be checkpointed: another connection is in the way";
        return Err(StoreFailure::new(FailureClass::Retryable, message));
    }
    Ok(())
}

/// What a checkpoint answers.
struct Progress {
    busy: bool,
    length: i64,
    done: i64,
}

fn run(db: &Db, sql: &'static str) -> Result<Progress, StoreFailure> {
    let progress =
        db.first(sql, [], |row| Ok(Progress { busy: row.get(0)?, length: row.get(1)?, done: row.get(2)? }))?;
    Ok(progress.unwrap_or(Progress { busy: false, length: 0, done: 0 }))
}
