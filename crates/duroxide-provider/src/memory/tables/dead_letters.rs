//! Rows that no node could process.

use std::collections::BTreeSet;

use super::{
    MemoryTables,
    table::{Index, Table, refile},
};
use crate::{
    DeadLetter, DeadLetterQueue,
    rules::{DeadLetterRow, DeadLetterTable, Origin, Rows},
};

pub(in crate::memory) type DeadLetters = Table<u64, DeadLetterRow, ByInstance>;

/// The dead letters of each instance.
#[derive(Debug, Clone, Default)]
pub(in crate::memory) struct ByInstance(BTreeSet<(String, u64)>);

impl Index<u64, DeadLetterRow> for ByInstance {
    fn file(&mut self, number: &u64, before: Option<&DeadLetterRow>, after: Option<&DeadLetterRow>) {
        let of_instance = |row: &DeadLetterRow| Some((row.instance_id.clone()?, *number));
        refile(&mut self.0, before.and_then(of_instance), after.and_then(of_instance));
    }
}

impl DeadLetters {
    pub(in crate::memory) fn of(&self, id: &str) -> Vec<u64> {
        let of_instance = (id.to_owned(), 0)..=(id.to_owned(), u64::MAX);
        self.index().0.range(of_instance).map(|(_, number)| *number).collect()
    }

    /// The dead letters as they are shown, oldest first.
    pub(in crate::memory) fn shown(&self) -> impl Iterator<Item = DeadLetter> {
        self.iter().map(|(number, row)| show(*number, row))
    }

    pub(in crate::memory) fn shown_one(&self, number: u64) -> Option<DeadLetter> {
        self.get(&number).map(|row| show(number, row))
    }
}

fn show(number: u64, row: &DeadLetterRow) -> DeadLetter {
    DeadLetter {
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
    }
}

impl DeadLetterTable for MemoryTables {
    fn insert_dead_letter(&mut self, row: &DeadLetterRow) -> Rows<u64> {
        self.last_dead_letter += 1;
        self.dead_letters.put(self.last_dead_letter, row.clone());
        Ok(self.last_dead_letter)
    }

    fn dead_letter(&mut self, number: u64) -> Rows<Option<DeadLetterRow>> {
        Ok(self.dead_letters.get(&number).cloned())
    }

    fn delete_dead_letter(&mut self, number: u64) -> Rows<()> {
        self.dead_letters.remove(&number);
        Ok(())
    }

    fn delete_dead_letters_of(&mut self, ids: &[String]) -> Rows<()> {
        let letters: Vec<u64> = ids.iter().flat_map(|id| self.dead_letters.of(id)).collect();
        self.dead_letters.remove_all(&letters);
        Ok(())
    }
}
