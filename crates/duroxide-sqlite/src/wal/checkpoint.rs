//! Moving the write-ahead log into the database, between two transactions, not within a commit.
//!
//! SQLite restarts the log only after a checkpoint that reached its end, so checkpoints must keep up with the writer:
//! they are made by the writer itself. The log is never truncated: overwriting an existing one syncs faster than
//! appending.

mod mark;

use duroxide_provider::store::{FailureClass, StoreFailure};
use rusqlite::Connection;

use self::mark::{LogFile, Mark};
use crate::{
    db::{Db, ONLY},
    open::Location,
};

/// From this many bytes on the log is checkpointed.
pub(crate) const LOG_BYTES_DUE: u64 = 4 << 20;
/// From this many bytes on (a reader holds an old state) the checkpoint waits for the readers, so that the log can
/// start over.
const LOG_BYTES_MAX: u64 = 256 << 20;
const _: () = assert!(LOG_BYTES_DUE < LOG_BYTES_MAX);

const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
const RESTART: &str = "PRAGMA wal_checkpoint(RESTART)";
const FULL: &str = "PRAGMA wal_checkpoint(FULL)";

/// Detects when the log has reached a length, by reading the file: SQLite overwrites a log from its beginning, so the
/// length of the file is no measure, but the frame at that place changes. A hook of SQLite would get the length; older
/// versions of rusqlite do not have it, and newer ones disagree on its signature.
#[derive(Debug)]
pub(crate) struct Log {
    /// `None` for a store in memory, and for one in another file layer, which SQLite checkpoints itself.
    file: Option<LogFile>,
    due: Mark,
    max: Mark,
    /// The frame behind the last complete checkpoint. A reader can keep SQLite from starting over; the log then goes on
    /// there.
    behind: Option<Mark>,
}

impl Log {
    /// The log of a connection to a store.
    pub(crate) fn of(conn: &Connection, location: &Location) -> rusqlite::Result<Self> {
        let page_bytes: i64 = conn.pragma_query_value(None, "page_size", |row| row.get(ONLY))?;
        let page_bytes = u64::try_from(page_bytes).unwrap_or_default();
        let frames = |bytes: u64| bytes.checked_div(page_bytes).unwrap_or(u64::MAX);
        Ok(Self {
            file: location.log(conn).map(|path| LogFile::new(path, page_bytes)),
            due: Mark::at(frames(LOG_BYTES_DUE)),
            max: Mark::at(frames(LOG_BYTES_MAX)),
            behind: None,
        })
    }

    /// Takes everything that is in the file now for known.
    pub(crate) fn mark(&mut self) {
        let Some(file) = &mut self.file else { return };
        for mark in [Some(&mut self.due), Some(&mut self.max), self.behind.as_mut()].into_iter().flatten() {
            mark.renew(file);
        }
    }

    /// Checkpoints if it is due.
    pub(crate) fn maintain(&mut self, db: &Db) -> Result<(), StoreFailure> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.max.changed(file) {
            self.checkpoint(db, RESTART)
        } else if self.due.changed(file) || self.behind.as_ref().is_some_and(|mark| mark.changed(file)) {
            self.checkpoint(db, PASSIVE)
        } else {
            Ok(())
        }
    }

    /// Checkpoints as far as readers allow.
    pub(crate) fn checkpoint_now(&mut self, db: &Db) -> Result<(), StoreFailure> {
        self.checkpoint(db, PASSIVE)
    }

    fn checkpoint(&mut self, db: &Db, sql: &'static str) -> Result<(), StoreFailure> {
        let progress = run(db, sql)?;
        if progress.length == progress.done {
            // The next commit restarts the log if it can.
            self.behind = u64::try_from(progress.length).ok().map(Mark::at);
            self.mark();
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

/// The result row of a checkpoint.
struct Progress {
    busy: bool,
    length: i64,
    done: i64,
}

fn run(db: &Db, sql: &'static str) -> Result<Progress, StoreFailure> {
    let progress = db.first(sql, [], |row| {
        Ok(Progress { busy: row.get("busy")?, length: row.get("log")?, done: row.get("checkpointed")? })
    })?;
    Ok(progress.unwrap_or(Progress { busy: false, length: 0, done: 0 }))
}
