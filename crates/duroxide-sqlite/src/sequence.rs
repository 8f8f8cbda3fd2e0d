//! The counter that orders messages, activities, ready instances and incarnations.

use duroxide_core::Timestamp;
use duroxide_provider::store::{FailureClass, StoreFailure};

use crate::db::{Db, micros};

const READ: &str = "SELECT next, written_at FROM sequence WHERE id = 1";
const WRITE: &str = "UPDATE sequence SET next = ?1, written_at = ?2 WHERE id = 1";

/// Numbers of one transaction: read after its begin, written back once before its commit.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    next: i64,
    /// The first of this transaction.
    first: i64,
    /// The row as this engine wrote it last.
    written: (i64, i64),
}

impl Sequence {
    /// Returns whether the last transaction that wrote was this engine's.
    pub(crate) fn read(&mut self, db: &Db) -> Result<bool, StoreFailure> {
        let row: Option<(i64, i64)> = db.first(READ, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let row = row.ok_or_else(|| {
            StoreFailure::new(FailureClass::Permanent, "the row of table sequence is missing")
        })?;
        self.next = row.0;
        self.first = row.0;
        Ok(row == self.written)
    }

    /// Each transaction that writes takes a number, so that no two leave the same row.
    pub(crate) fn write(&mut self, db: &Db, now: Timestamp) -> Result<(), StoreFailure> {
        if self.next == self.first {
            self.take();
        }
        self.written = (self.next, micros(now));
        db.execute(WRITE, self.written).map(|_| ())
    }

    /// A number that was never given before.
    pub(crate) fn take(&mut self) -> i64 {
        let number = self.next;
        self.next += 1;
        number
    }
}
