//! What operators ask for: deleting, pruning, dead letters.

mod dead_letters;
mod deletion;
mod prune;
mod queued_work;
mod removal;

pub use self::queued_work::WorkRows;
