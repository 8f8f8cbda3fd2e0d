//! Rows that nobody could process.

use std::collections::BTreeSet;

use super::table::{Index, Table, refile};
use crate::{
    DeadLetter, DeadLetterQueue,
    rules::{DeadLetterRow, Origin},
};

pub(super) type DeadLetters = Table<u64, DeadLetterRow, ByInstance>;

/// The dead letters of each instance.
#[derive(Debug, Clone, Default)]
pub(super) struct ByInstance(BTreeSet<(String, u64)>);

impl Index<u64, DeadLetterRow> for ByInstance {
    fn file(&mut self, number: &u64, before: Option<&DeadLetterRow>, after: Option<&DeadLetterRow>) {
        let of_instance = |row: &DeadLetterRow| Some((row.instance_id.clone()?, *number));
        refile(&mut self.0, before.and_then(of_instance), after.and_then(of_instance));
    }
}

impl DeadLetters {
    pub(super) fn of(&self, id: &str) -> Vec<u64> {
        let of_instance = (id.to_owned(), 0)..=(id.to_owned(), u64::MAX);
        self.index().0.range(of_instance).map(|(_, number)| *number).collect()
    }

    /// The dead letters as they are shown, oldest first.
    pub(super) fn shown(&self) -> impl Iterator<Item = DeadLetter> {
        self.iter().map(|(number, row)| DeadLetter {
            id: number.to_string(),
            queue: match row.origin {
                Origin::Message { .. } => DeadLetterQueue::Orchestrator,
                Origin::Activity { .. } => DeadLetterQueue::Worker,
            },
            instance_id: row.instance_id.clone(),
            payload: row.payload.clone(),
            reason: row.reason.clone(),
            attempt_count: row.attempts,
            dead_lettered_at_ms: row.dead_lettered_at.as_millis(),
        })
    }
}
