//! Applies the rows that callers have written in transactions of their own.

use super::{DeadLetterRow, Origin, Rows, Rules, Tables};
use crate::{
    DeadLetterQueue,
    store::{DeadLetterNote, DeadLetterReason, IntakeRow},
};

impl<T: Tables> Rules<T> {
    /// Applies rows of the intake in their order. An invalid row becomes a dead letter; the rows behind it are applied. A
    /// start of an instance that exists does nothing.
    ///
    /// # Errors
    /// If the store failed in the middle.
    pub fn take_in(&mut self, rows: &[IntakeRow]) -> Rows<Vec<DeadLetterNote>> {
        let mut notes = Vec::new();
        for row in rows {
            match row.message() {
                Ok(message) if message.start.is_some() => drop(self.start_if_new(&message)?),
                Ok(message) => drop(self.enqueue(&message)?),
                Err(invalid) => notes.push(self.refuse_intake(row, invalid.to_string())?),
            }
        }
        Ok(notes)
    }

    /// Makes a dead letter of a row of the intake.
    ///
    /// # Errors
    /// If the store failed in the middle.
    pub fn refuse_intake(&mut self, row: &IntakeRow, error: String) -> Rows<DeadLetterNote> {
        let (instance, reason) = (Some(row.instance_id.clone()), DeadLetterReason::RefusedIntake { error });
        let id = self.tables.insert_dead_letter(&DeadLetterRow {
            instance_id: instance.clone(),
            // Rows are plain texts, for which `serde_json` cannot fail.
            payload: serde_json::to_string(row).unwrap_or_default(),
            reason: reason.to_string(),
            attempts: 0,
            dead_lettered_at: self.now,
            origin: Origin::Message { kind: row.message_kind(), key: None },
        })?;
        Ok(DeadLetterNote { id, queue: DeadLetterQueue::Orchestrator, instance, reason })
    }
}
