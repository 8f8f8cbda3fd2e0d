//! Room for the write-ahead log, made before it is needed.
//!
//! A commit that makes the log longer costs the disk twice as much as one that overwrites it: the new length is written
//! too. SQLite overwrites its log once the log has reached the length at which it is checkpointed; until then, which is
//! after every start of a program, each commit appends. So the log is extended to its full length when the first node
//! joins.

use duroxide_provider::store::StoreFailure;

use super::{LOG_BYTES_DUE, Log};
use crate::{
    db::Db,
    error::failure,
    open::WRITER_CACHE,
    tables::{BEGIN, ROLLBACK},
};

/// Pages that do not fit into a small cache go to the log while the transaction is open. A rollback leaves them there,
/// invalid, and SQLite's next writes overwrite them.
const SMALL_CACHE: &str = "PRAGMA cache_size = 16";
/// No payload has this id: ids are drawn from the counter of numbers, which begins at 1.
const FILL: &str = "INSERT INTO payload (id, data) VALUES (-1, zeroblob(?1))";

/// Whether room was made, or tried to be made, since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct LogSpace {
    is_made: bool,
}

impl LogSpace {
    /// Extends a short log to the length at which it is checkpointed. Only once: if the disk is full, or another process
    /// writes, the log stays short. The next commit syncs the longer log.
    pub(crate) fn make(&mut self, db: &Db, log: &mut Log) {
        if std::mem::replace(&mut self.is_made, true) {
            return;
        }
        if let Err(failure) = fill_log(db) {
            tracing::debug!(target: "duroxide::providers::sqlite", %failure, "the log could not be made longer");
        }
        // The invalid pages must not count as growth of the log.
        log.mark();
    }
}

fn fill_log(db: &Db) -> Result<(), StoreFailure> {
    db.execute(SMALL_CACHE, [])?;
    let filled = db.run(BEGIN).map_err(|error| failure(&error)).and_then(|()| {
        let filled = db.execute(FILL, [LOG_BYTES_DUE.cast_signed()]);
        let rolled_back = db.run(ROLLBACK).map_err(|error| failure(&error));
        filled.and(rolled_back)
    });
    db.execute(WRITER_CACHE, [])?;
    filled
}
