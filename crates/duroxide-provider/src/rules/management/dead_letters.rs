//! Rows that no node could process. Nothing is ever deleted silently (16.10 to 16.12).

use duroxide_core::WorkItem;

use crate::rules::{
    DeadLetterRow, InstanceRow, Lane, Origin, QueuedActivity, QueuedMessage, Rows, Rules, Tables,
};
use crate::{
    DeadLetterQueue,
    store::{
        ActivityRow, Answer, ApplyError, DeadLetterNote, DeadLetterReason, MessageRow, Refusal, Visibility,
    },
};

impl<T: Tables> Rules<T> {
    /// Moves a message from its mailbox to the dead letters.
    pub(in crate::rules) fn dead_letter_message(
        &mut self,
        row: &InstanceRow,
        mut message: QueuedMessage,
        reason: DeadLetterReason,
    ) -> Rows<DeadLetterNote> {
        let id = self.tables.insert_dead_letter(&DeadLetterRow {
            instance_id: Some(row.id.clone()),
            payload: std::mem::take(&mut message.data),
            reason: reason.to_string(),
            attempts: message.attempts,
            dead_lettered_at: self.now,
            origin: Origin::Message { kind: message.kind, key: message.key.take() },
        })?;
        self.tables.delete_message(row.number, &message)?;
        let instance = Some(row.id.clone());
        Ok(DeadLetterNote { id, queue: DeadLetterQueue::Orchestrator, instance, reason })
    }

    /// Moves an activity from its queue to the dead letters; returns the number of the dead letter, and the instance.
    pub(in crate::rules) fn dead_letter_activity_row(
        &mut self,
        activity: &QueuedActivity,
        data: String,
        reason: String,
    ) -> Rows<(u64, Option<String>)> {
        let instance = self.tables.instance(activity.instance)?.map(|row| row.id);
        let id = self.tables.insert_dead_letter(&DeadLetterRow {
            instance_id: instance.clone(),
            payload: data,
            reason,
            attempts: activity.attempts,
            dead_lettered_at: self.now,
            origin: Origin::Activity {
                execution_id: activity.execution_id,
                activity_id: activity.activity_id,
                lane: activity.lane,
                session_id: activity.session_id.clone(),
            },
        })?;
        self.remove_activity(activity)?;
        Ok((id, instance))
    }

    /// Puts a dead letter back into its queue, visible, with no attempts. It is read again from its payload, which an
    /// operator may have mended.
    pub(in crate::rules) fn retry_dead_letter(&mut self, id: &str) -> Result<Answer, ApplyError> {
        let (number, letter) = self.dead_letter(id)?;
        self.tables.delete_dead_letter(number)?;
        let item = serde_json::from_str::<WorkItem>(&letter.payload).ok();
        let instance = letter.instance_id.unwrap_or_default();
        match letter.origin {
            Origin::Message { kind, key } => {
                let read = item.and_then(|item| MessageRow::new(item, None).ok());
                let (data, start, visible) = (letter.payload, None, Visibility::Now);
                let unread = || MessageRow {
                    instance,
                    kind,
                    key,
                    visible,
                    start,
                    data,
                    item: None,
                    mailbox_max: None,
                };
                // A retried timer is due at once.
                self.enqueue(&MessageRow { visible, ..read.unwrap_or_else(unread) })?;
            }
            Origin::Activity { execution_id, activity_id, lane, session_id } => {
                let read = item.and_then(|item| ActivityRow::new(item).ok());
                let Lane { tag, name } = self.tables.lane(lane)?.unwrap_or_default();
                let data = letter.payload;
                let unread = || ActivityRow {
                    instance,
                    execution_id,
                    activity_id,
                    name,
                    tag,
                    session_id,
                    data,
                    item: None,
                };
                self.enqueue_activity(&read.unwrap_or_else(unread))?;
            }
        }
        Ok(Answer::Done)
    }

    pub(in crate::rules) fn discard_dead_letter(&mut self, id: &str) -> Result<Answer, ApplyError> {
        let (number, _) = self.dead_letter(id)?;
        self.tables.delete_dead_letter(number)?;
        Ok(Answer::Done)
    }

    fn dead_letter(&mut self, id: &str) -> Result<(u64, DeadLetterRow), ApplyError> {
        let found = match id.parse::<u64>() {
            Ok(number) => self.tables.dead_letter(number)?.map(|letter| (number, letter)),
            Err(_) => None,
        };
        found.ok_or_else(|| Refusal::DeadLetterNotFound { id: id.to_owned() }.into())
    }
}
