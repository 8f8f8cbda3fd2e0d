//! Transactions, and the numbers that order rows.

use duroxide_core::Timestamp;

use crate::rules::Rows;

/// Transactions, and the numbers that order rows.
pub trait Transactions {
    /// Opens a write transaction.
    fn begin(&mut self) -> Rows<()>;

    /// Ends the transaction; everything written in it becomes durable and visible. `now` is its time.
    fn commit(&mut self, now: Timestamp) -> Rows<()>;

    /// Ends the transaction without effect. Also called after a failed `begin` or `commit`.
    fn rollback(&mut self);

    /// Draws the next number. None is drawn twice, not even after a rollback.
    fn next_number(&mut self) -> Rows<u64>;
}
