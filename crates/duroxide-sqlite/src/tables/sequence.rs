//! The counter from which all numbers are drawn.

use duroxide_core::Timestamp;
use duroxide_provider::store::{FailureClass, StoreFailure};

use crate::db::{Db, micros, unsigned};

const READ: &str = "SELECT next FROM sequence WHERE id = 1";
const WRITE: &str = "UPDATE sequence SET next = ?1, written_at = ?2 WHERE id = 1";

/// Read when another connection may have taken numbers, written back once before each commit.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    next: i64,
}

impl Sequence {
    pub(crate) fn read(&mut self, db: &Db) -> Result<(), StoreFailure> {
        let next: Option<i64> = db.value(READ, [])?;
        self.next = next.ok_or_else(|| {
            StoreFailure::new(FailureClass::Permanent, "the row of table sequence is missing")
        })?;
        Ok(())
    }

    pub(crate) fn write(&self, db: &Db, now: Timestamp) -> Result<(), StoreFailure> {
        db.execute(WRITE, (self.next, micros(now))).map(|_| ())
    }

    /// A number that was never drawn before.
    pub(crate) fn take(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        unsigned(number)
    }
}
