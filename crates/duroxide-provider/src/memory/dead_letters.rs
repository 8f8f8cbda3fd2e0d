use std::collections::{BTreeMap, BTreeSet};

use duroxide_core::{Timestamp, WorkItem};

use super::{
    mailbox::Message,
    record::{Changes, DeadLetterRecord, UndeliveredRecord},
    touched::{Touch, Touched},
};
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
    touched: Touched<u64>,
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
    /// Keeps a row; returns its number.
    pub(super) fn insert(
        &mut self,
        undelivered: Undelivered,
        reason: String,
        attempt_count: u32,
        now: Timestamp,
    ) -> u64 {
        self.last_row += 1;
        self.touched.add(self.last_row);
        self.put(self.last_row, undelivered, reason, attempt_count, now.as_millis());
        self.last_row
    }

    fn put(
        &mut self,
        number: u64,
        undelivered: Undelivered,
        reason: String,
        attempt_count: u32,
        dead_lettered_at_ms: u64,
    ) {
        let (queue, instance, payload) = match &undelivered {
            Undelivered::Message(row) => (DeadLetterQueue::Orchestrator, &row.instance, &row.data),
            Undelivered::Activity(row) => (DeadLetterQueue::Worker, &row.instance, &row.data),
        };
        self.by_instance.entry(instance.clone()).or_default().insert(number);
        let shown = DeadLetter {
            id: number.to_string(),
            queue,
            instance_id: Some(instance.clone()),
            payload: payload.clone(),
            reason,
            attempt_count,
            dead_lettered_at_ms,
        };
        self.rows.insert(number, Letter { undelivered, shown });
    }

    /// Brings back a dead letter that was kept elsewhere.
    pub(super) fn restore(&mut self, record: DeadLetterRecord) {
        self.last_row = self.last_row.max(record.number);
        let DeadLetterRecord { number, undelivered, reason, attempt_count, dead_lettered_at_ms } = record;
        self.put(number, Undelivered::restore(undelivered), reason, attempt_count, dead_lettered_at_ms);
    }

    /// Numbers that were used before are not used again.
    pub(super) fn continue_numbers_of(&mut self, before: &Self) {
        self.last_row = self.last_row.max(before.last_row);
    }

    pub(super) fn forget_changes(&mut self) {
        self.touched.forget();
    }

    /// Adds what changed since this was last called.
    pub(super) fn take_changes(&mut self, changes: &mut Changes) {
        for (number, touch) in self.touched.take() {
            match (touch, self.rows.get(&number)) {
                (Touch::Removed, _) | (_, None) => changes.removed_dead_letters.push(number),
                (_, Some(letter)) => changes.added_dead_letters.push(letter.record(number)),
            }
        }
    }

    /// Takes a dead letter out, as the row it goes back into its queue as.
    pub(super) fn take(&mut self, id: &str) -> Option<Undelivered> {
        let row = id.parse().ok()?;
        let letter = self.rows.remove(&row)?;
        self.touched.remove(row);
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
            self.touched.remove(row);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &DeadLetter> {
        self.rows.values().map(|letter| &letter.shown)
    }
}

impl Letter {
    fn record(&self, number: u64) -> DeadLetterRecord {
        DeadLetterRecord {
            number,
            undelivered: self.undelivered.record(),
            reason: self.shown.reason.clone(),
            attempt_count: self.shown.attempt_count,
            dead_lettered_at_ms: self.shown.dead_lettered_at_ms,
        }
    }
}

impl Undelivered {
    fn record(&self) -> UndeliveredRecord {
        match self {
            Self::Message(row) => UndeliveredRecord::Message {
                instance: row.instance.clone(),
                kind: row.kind,
                key: row.key.clone(),
                start: row.start.clone(),
                data: row.data.clone(),
            },
            Self::Activity(row) => UndeliveredRecord::Activity(row.clone()),
        }
    }

    fn restore(record: UndeliveredRecord) -> Self {
        match record {
            UndeliveredRecord::Message { instance, kind, key, start, data } => {
                let visible = Visibility::Now;
                Self::Message(MessageRow { instance, kind, key, visible, start, data, item: None })
            }
            UndeliveredRecord::Activity(row) => Self::Activity(row),
        }
    }

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
