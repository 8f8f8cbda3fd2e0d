//! Dead letters.

use crate::rules::{DeadLetterRow, Rows};

/// The table of dead letters.
pub trait DeadLetterTable {
    /// Inserts a dead letter; returns its number, counted from 1 and never reused.
    fn insert_dead_letter(&mut self, row: &DeadLetterRow) -> Rows<u64>;

    /// Reads a dead letter.
    fn dead_letter(&mut self, number: u64) -> Rows<Option<DeadLetterRow>>;

    /// Deletes a dead letter.
    fn delete_dead_letter(&mut self, number: u64) -> Rows<()>;

    /// Deletes the dead letters of instances.
    fn delete_dead_letters_of(&mut self, ids: &[String]) -> Rows<()>;
}
