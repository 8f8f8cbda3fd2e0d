//! Rows that no node could process.

use duroxide_core::WorkItem;

use super::ModelEngine;
use crate::{
    DeadLetter, DeadLetterQueue,
    store::{ActivityRow, Answer, DeadLetterNote, DeadLetterReason, MessageRow, Refusal, Visibility},
};

/// A row that was taken out of its queue.
#[derive(Debug, Clone)]
pub(super) enum Undelivered {
    Message(MessageRow),
    Activity(ActivityRow),
}

#[derive(Debug, Clone)]
pub(super) struct Letter {
    undelivered: Undelivered,
    pub(super) shown: DeadLetter,
}

impl ModelEngine {
    /// Keeps a row as a dead letter; returns its number.
    pub(super) fn bury(&mut self, undelivered: Undelivered, reason: &str, attempts: u32) -> u64 {
        self.last_dead_letter += 1;
        let (queue, instance, payload) = match &undelivered {
            Undelivered::Message(row) => (DeadLetterQueue::Orchestrator, &row.instance, &row.data),
            Undelivered::Activity(row) => (DeadLetterQueue::Worker, &row.instance, &row.data),
        };
        let shown = DeadLetter {
            id: self.last_dead_letter.to_string(),
            queue,
            instance_id: Some(instance.clone()),
            payload: payload.clone(),
            reason: reason.to_owned(),
            attempt_count: attempts,
            dead_lettered_at_ms: self.now.as_millis(),
        };
        self.dead_letters.insert(self.last_dead_letter, Letter { undelivered, shown });
        self.last_dead_letter
    }

    /// Moves a message from its mailbox to the dead letters.
    pub(super) fn dead_letter_message(
        &mut self,
        instance: u64,
        number: u64,
        reason: DeadLetterReason,
    ) -> DeadLetterNote {
        let row = self.instances.get_mut(&instance).unwrap();
        let (id, message) = (row.id.clone(), row.remove(number));
        let undelivered = Undelivered::Message(MessageRow {
            instance: id.clone(),
            kind: message.kind,
            key: message.key,
            visible: Visibility::Now,
            start: message.start,
            data: message.data,
            item: None,
            mailbox_max: None,
        });
        let letter = self.bury(undelivered, &reason.to_string(), message.attempts);
        DeadLetterNote { id: letter, queue: DeadLetterQueue::Orchestrator, instance: Some(id), reason }
    }

    pub(super) fn take_dead_letter(&mut self, id: &str) -> Result<Undelivered, Refusal> {
        let letter = id.parse().ok().and_then(|number: u64| self.dead_letters.remove(&number));
        letter.map(|letter| letter.undelivered).ok_or(Refusal::DeadLetterNotFound { id: id.to_owned() })
    }

    /// Puts a dead letter back, read again from its payload; a timer is due at once.
    pub(super) fn retry_dead_letter(&mut self, id: &str) -> Result<Answer, Refusal> {
        match self.take_dead_letter(id)? {
            Undelivered::Message(row) => {
                let item = serde_json::from_str::<WorkItem>(&row.data).ok();
                let read = item.and_then(|item| MessageRow::new(item, None).ok());
                self.enqueue(&MessageRow { visible: Visibility::Now, ..read.unwrap_or(row) });
            }
            Undelivered::Activity(row) => {
                let item = serde_json::from_str::<WorkItem>(&row.data).ok();
                let read = item.and_then(|item| ActivityRow::new(item).ok());
                self.enqueue_activity(&read.unwrap_or(row));
            }
        }
        Ok(Answer::Done)
    }
}
