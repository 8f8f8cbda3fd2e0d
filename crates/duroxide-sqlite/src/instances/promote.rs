//! What has become due: timers, hidden rows, ended leases, orphans whose time ran out.

use duroxide_provider::store::{DeadLetterNote, DeadLetterReason, StoreFailure};

use super::InstanceRow;
use crate::{
    SqliteEngine,
    db::micros,
    mailbox::{Message, message_columns},
};

/// What is due, and whether nothing has to be found out about it: it is free, waited on its route for a message, and that
/// message is visible now. A queue message may be held back by an older one, so those are looked at closely.
const DUE: &str = "SELECT id, known AND lock_token IS NULL AND coalesce(route, 0) <> 0
        AND status IS NOT 'ContinuedAsNew'
        AND EXISTS (SELECT 1 FROM message WHERE message.instance = instance.id
            AND due_at <= ?1 AND hidden_until <= ?1 AND kind <> 2)
    FROM instance WHERE wake_at <= ?1 ORDER BY wake_at, id";
const ORPHANS: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM message WHERE instance = ?1 AND max(enqueued_at, due_at) <= ?2
    ORDER BY max(enqueued_at, due_at), due_at, seq"
);

impl SqliteEngine {
    pub(crate) fn promote_instances(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        let mut notes = Vec::new();
        let due: Vec<(i64, bool)> =
            self.db.all(DUE, [micros(self.now)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (id, is_plain) in due {
            if is_plain {
                self.stand_up(id)?;
                continue;
            }
            let Some(row) = self.instance(id)? else { continue };
            if !row.known && !self.has_start(id)? {
                notes.extend(self.bury_orphans(&row)?);
            }
            self.settle(&row)?;
        }
        Ok(notes)
    }

    /// Moves messages that waited too long for an unknown instance to the dead letters (16.11).
    fn bury_orphans(&mut self, row: &InstanceRow) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        let ttl = i64::try_from(self.orphan_message_ttl.as_micros()).unwrap_or(i64::MAX);
        self.bury_older_than(row, micros(self.now).saturating_sub(ttl))
    }

    /// Moves the messages of an unknown instance to the dead letters that were enqueued or became due by this time.
    pub(super) fn bury_older_than(
        &mut self,
        row: &InstanceRow,
        time: i64,
    ) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        let mut notes = Vec::new();
        for message in self.db.all(ORPHANS, (row.id, time), Message::read)? {
            self.delete_message(row.id, &message)?;
            let reason = DeadLetterReason::NoInstance;
            notes.push(self.bury_message(&row.instance_id, &message, reason, message.attempt_count)?);
        }
        Ok(notes)
    }
}
