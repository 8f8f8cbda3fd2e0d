//! Promotes due rows: timers, hidden rows, ended leases, messages that waited too long for their instance.

use duroxide_core::Timestamp;

use crate::rules::{InstanceRow, Rows, Rules, Tables};
use crate::store::{DeadLetterNote, DeadLetterReason};

impl<T: Tables> Rules<T> {
    pub(in crate::rules) fn promote_instances(&mut self) -> Rows<Vec<DeadLetterNote>> {
        let mut notes = Vec::new();
        for due in self.tables.due_instances(self.now)? {
            if due.is_plainly_ready {
                self.wake(due.number)?;
                continue;
            }
            let Some(row) = self.tables.instance(due.number)? else { continue };
            if !row.known && !self.tables.has_start(row.number)? {
                notes.extend(self.dead_letter_orphans(&row)?);
            }
            self.settle(row)?;
        }
        Ok(notes)
    }

    /// Makes dead letters of messages that waited too long for an unknown instance (16.11).
    fn dead_letter_orphans(&mut self, row: &InstanceRow) -> Rows<Vec<DeadLetterNote>> {
        let ttl = u64::try_from(self.options.orphan_message_ttl.as_micros()).unwrap_or(u64::MAX);
        let Some(oldest) = self.now.as_micros().checked_sub(ttl) else { return Ok(Vec::new()) };
        let orphans = self.tables.messages_waiting_since(row.number, Timestamp::from_micros(oldest))?;
        orphans
            .into_iter()
            .map(|message| self.dead_letter_message(row, message, DeadLetterReason::NoInstance))
            .collect()
    }
}
