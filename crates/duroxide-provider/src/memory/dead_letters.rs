use std::collections::{BTreeMap, BTreeSet};

use duroxide_core::{Timestamp, WorkItem};

use super::mailbox::Message;
use crate::{
    DeadLetter, DeadLetterQueue,
    store::{ActivityRow, MessageRow, Visibility},
};

/// Rows that nobody could process, numbered from 1.
#[derive(Debug, Clone, Default)]
pub(super) struct DeadLetters {
    rows: BTreeMap<u64, Letter>,
    by_instance: BTreeMap<String, BTreeSet<u64>>,
    last_row: u64,
}

/// A row that was taken out of its queue.
#[derive(Debug, Clone)]
pub(super) enum Undelivered {
    Message(MessageRow),
    Activity(ActivityRow),
}

#[derive(Debug, Clone)]
struct Letter {
    undelivered: Undelivered,
    shown: DeadLetter,
}

impl DeadLetters {
    pub(super) fn insert(
        &mut self,
        undelivered: Undelivered,
        reason: String,
        attempt_count: u32,
        now: Timestamp,
    ) {
        self.last_row += 1;
        let (queue, instance, payload) = match &undelivered {
            Undelivered::Message(row) => (DeadLetterQueue::Orchestrator, &row.instance, &row.data),
            Undelivered::Activity(row) => (DeadLetterQueue::Worker, &row.instance, &row.data),
        };
        self.by_instance.entry(instance.clone()).or_default().insert(self.last_row);
        let shown = DeadLetter {
            id: self.last_row.to_string(),
            queue,
            instance_id: Some(instance.clone()),
            payload: payload.clone(),
            reason,
            attempt_count,
            dead_lettered_at_ms: now.as_millis(),
        };
        self.rows.insert(self.last_row, Letter { undelivered, shown });
    }

    /// Takes a dead letter out, as the row it goes back into its queue as.
    pub(super) fn take(&mut self, id: &str) -> Option<Undelivered> {
        let row = id.parse().ok()?;
        let letter = self.rows.remove(&row)?;
        if let Some(instance) = &letter.shown.instance_id
            && let Some(rows) = self.by_instance.get_mut(instance)
        {
            rows.remove(&row);
            if rows.is_empty() {
                self.by_instance.remove(instance);
            }
        }
        Some(letter.undelivered.retried())
    }

    pub(super) fn remove_instance(&mut self, instance: &str) {
        for row in self.by_instance.remove(instance).unwrap_or_default() {
            self.rows.remove(&row);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &DeadLetter> {
        self.rows.values().map(|letter| &letter.shown)
    }
}

impl Undelivered {
    pub(super) fn message(instance: &str, message: Message) -> Self {
        Self::Message(MessageRow {
            instance: instance.to_owned(),
            kind: message.kind,
            key: message.key,
            visible: Visibility::Now,
            start: message.start,
            data: message.data,
            item: None,
        })
    }

    /// Reads the row again from its payload, which an operator may have mended; a timer is due at once.
    fn retried(self) -> Self {
        match self {
            Self::Message(row) => {
                let item = serde_json::from_str::<WorkItem>(&row.data).ok();
                let read = item.and_then(|item| MessageRow::new(item, None).ok());
                Self::Message(MessageRow { visible: Visibility::Now, ..read.unwrap_or(row) })
            }
            Self::Activity(row) => {
                let item = serde_json::from_str::<WorkItem>(&row.data).ok();
                Self::Activity(item.and_then(|item| ActivityRow::new(item).ok()).unwrap_or(row))
            }
        }
    }
}
