//! Room for the write-ahead log, made before it is needed.
//!
//! A commit that makes the log longer costs the disk twice as much as one that overwrites it: the new length is to be
//! written too. SQLite overwrites its log once that has reached the length at which it is checkpointed; until then, which
//! is after every start of a program, each commit appends. So the first node that joins lets it grow at once.

use duroxide_provider::store::StoreFailure;

use super::{LOG_BYTES_DUE, Log};
use crate::{db::Db, open::WRITER_CACHE};

/// Pages that do not fit into a small cache go to the log while the transaction is open. They stay there, void, when that
/// is rolled back, and what SQLite writes next overwrites them.
const SMALL_CACHE: &str = "PRAGMA cache_size = 16";
const BEGIN: &str = "SAVEPOINT log_space";
const FILL: &str = "INSERT INTO payload (id, data) VALUES (-1, zeroblob(?1))";
const ROLL_BACK: &str = "ROLLBACK TO log_space";
const END: &str = "RELEASE log_space";

/// Whether room was made, or tried to be made, since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct LogSpace {
    is_made: bool,
}

impl LogSpace {
    /// Makes a short log as long as it gets before it is checkpointed. The commit of this transaction puts it on the disk.
    pub(crate) fn make(&mut self, db: &Db, log: &mut Log) -> Result<(), StoreFailure> {
        // Once: on a disk that has no room, the next attempt does without.
        if std::mem::replace(&mut self.is_made, true) {
            return Ok(());
        }
        db.execute(SMALL_CACHE, [])?;
        let filled = fill_log(db);
        db.execute(WRITER_CACHE, [])?;
        // The void pages must not be taken for a log that has grown.
        log.mark();
        filled
    }
}

fn fill_log(db: &Db) -> Result<(), StoreFailure> {
    db.execute(BEGIN, [])?;
    db.execute(FILL, [LOG_BYTES_DUE.cast_signed()])?;
    db.execute(ROLL_BACK, [])?;
    db.execute(END, []).map(|_| ())
}
