//! The messages of an instance.

use std::time::Duration;

use duroxide_core::Timestamp;

use super::instance::Instance;
use crate::store::{
    MessageKind, MessageRow, MessageSnapshot, StartTarget, Visibility,
    bounds::{CLAIM_BYTES_MAX, CLAIM_MESSAGES_MAX},
};

#[derive(Debug, Clone)]
pub(super) struct Message {
    /// Messages are numbered as they arrive.
    pub(super) number: u64,
    /// Zero if it was visible at once.
    pub(super) due_at: Timestamp,
    pub(super) kind: MessageKind,
    pub(super) key: Option<String>,
    pub(super) start: Option<StartTarget>,
    pub(super) data: String,
    pub(super) attempts: u32,
    pub(super) enqueued_at: Timestamp,
    pub(super) hidden_until: Timestamp,
    /// Whether the lock of its instance, live or not, holds it.
    pub(super) locked: bool,
}

impl Message {
    pub(super) fn is_start(&self) -> bool {
        matches!(self.kind, MessageKind::Start | MessageKind::ContinueAsNew)
    }

    /// Since when it has waited.
    pub(super) fn age(&self) -> Timestamp {
        self.enqueued_at.max(self.due_at)
    }

    fn is_shown(&self, now: Timestamp) -> bool {
        self.due_at <= now && self.hidden_until <= now
    }

    pub(super) fn snapshot(&self, now: Timestamp) -> MessageSnapshot {
        MessageSnapshot {
            due_at_ms: self.due_at.as_millis(),
            hidden_until: if self.hidden_until > now { self.hidden_until } else { Timestamp::ZERO },
            attempt_count: self.attempts,
            locked: self.locked,
            key: self.key.clone(),
            data: self.data.clone(),
        }
    }
}

impl Instance {
    /// Inserts a message, unless one with its key is queued.
    pub(super) fn insert(&mut self, row: &MessageRow, number: u64, now: Timestamp) {
        if row.key.is_some() && self.messages.iter().any(|message| message.key == row.key) {
            return;
        }
        let due_at_ms = match row.visible {
            Visibility::Now => 0,
            Visibility::At(millis) => millis,
            Visibility::After(delay) => now.saturating_add(delay).as_millis_ceil(),
        };
        self.messages.push(Message {
            number,
            due_at: Timestamp::from_millis(due_at_ms),
            kind: row.kind,
            key: row.key.clone(),
            start: row.start.clone(),
            data: row.data.clone(),
            attempts: 0,
            enqueued_at: now,
            hidden_until: Timestamp::ZERO,
            locked: false,
        });
        self.messages.sort_by_key(|message| (message.due_at, message.number));
    }

    /// Whether a claim may take a message. A queue message waits behind an older hidden one.
    fn is_visible(&self, message: &Message, now: Timestamp) -> bool {
        let is_queue = |message: &Message| message.kind == MessageKind::Queue;
        let waits_behind =
            |older: &Message| is_queue(older) && older.number < message.number && older.hidden_until > now;
        message.is_shown(now) && !(is_queue(message) && self.messages.iter().any(waits_behind))
    }

    pub(super) fn visible(&self, now: Timestamp) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |message| self.is_visible(message, now))
    }

    /// The numbers of the messages that a claim takes, in the order of delivery.
    pub(super) fn claimable(&self, now: Timestamp, whole_mailbox: bool) -> Vec<u64> {
        let mut taken: Vec<&Message> = Vec::new();
        let mut bytes = 0;
        for message in self.visible(now) {
            bytes += message.data.len();
            let is_full = taken.len() == CLAIM_MESSAGES_MAX || (bytes > CLAIM_BYTES_MAX && !taken.is_empty());
            if is_full && !whole_mailbox {
                break;
            }
            taken.push(message);
        }
        for kind in [MessageKind::Start, MessageKind::ContinueAsNew] {
            let start = self.visible(now).find(|message| message.kind == kind);
            let is_taken = |start: &&Message| taken.iter().any(|message| message.number == start.number);
            taken.extend(start.filter(|start| !is_taken(start)));
        }
        let mut order: Vec<_> =
            taken.iter().map(|message| (visible_since(message, &taken), message.number)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, number)| number).collect()
    }

    /// Whether it can be claimed as far as its messages are concerned.
    pub(super) fn has_work(&self, now: Timestamp) -> bool {
        self.visible(now).any(|message| self.is_known() || message.is_start())
    }

    pub(super) fn has_start(&self) -> bool {
        self.messages.iter().any(Message::is_start)
    }

    /// The start that is first in line, visible or not: clients' starts before those of successors.
    pub(super) fn first_start(&self) -> Option<&Message> {
        self.messages.iter().filter(|message| message.is_start()).min_by_key(|message| message.kind)
    }

    /// Name and version of the first visible message of this kind.
    pub(super) fn target_of(&self, kind: MessageKind, now: Timestamp) -> Option<&StartTarget> {
        self.visible(now).find(|message| message.kind == kind)?.start.as_ref()
    }

    pub(super) fn holds_only_queue_messages(&self) -> bool {
        !self.messages.is_empty() && self.messages.iter().all(|message| message.kind == MessageKind::Queue)
    }

    /// When to decide about it again: its lease ends, a message becomes visible, or one has waited too long for its
    /// instance.
    pub(super) fn look_at(&self, now: Timestamp, orphan_ttl: Duration) -> Option<Timestamp> {
        if self.ready.is_some() {
            return None;
        }
        if let Some(lock) = self.lock.as_ref().filter(|lock| lock.is_live(now)) {
            return Some(lock.until);
        }
        let shown = self.messages.iter().flat_map(|message| [message.due_at, message.hidden_until]);
        let too_old = self.messages.iter().map(|message| message.age().saturating_add(orphan_ttl));
        let too_old = too_old.filter(|_| self.is_orphaned());
        shown.filter(|at| *at > now).chain(too_old).min()
    }

    /// Numbers of messages, those that have waited longest first.
    pub(super) fn by_age(&self) -> Vec<u64> {
        let mut messages: Vec<&Message> = self.messages.iter().collect();
        messages.sort_by_key(|message| message.age());
        messages.into_iter().map(|message| message.number).collect()
    }

    pub(super) fn message(&mut self, number: u64) -> &mut Message {
        self.messages.iter_mut().find(|message| message.number == number).unwrap()
    }

    pub(super) fn remove(&mut self, number: u64) -> Message {
        let index = self.messages.iter().position(|message| message.number == number).unwrap();
        self.messages.remove(index)
    }

    /// Gives messages to a new lock, and counts the attempt.
    pub(super) fn hold(&mut self, numbers: &[u64]) {
        for message in &mut self.messages {
            message.locked = numbers.contains(&message.number);
            message.attempts += u32::from(message.locked);
        }
    }

    /// Gives back the messages that the lock holds.
    pub(super) fn release(&mut self, hidden_until: Timestamp, ignore_attempt: bool) {
        for message in self.messages.iter_mut().filter(|message| message.locked) {
            message.locked = false;
            message.hidden_until = hidden_until;
            message.attempts = message.attempts.saturating_sub(u32::from(ignore_attempt));
        }
    }

    /// How many messages clients have sent. Messages of the runtime have a key or a due time.
    pub(super) fn sent_by_clients(&self) -> usize {
        let is_from_client = |message: &&Message| {
            message.key.is_none() && message.due_at == Timestamp::ZERO && !message.is_start()
        };
        self.messages.iter().filter(is_from_client).count()
    }
}

/// When a message of a claim became visible: it was due, it was enqueued, and so were all messages of the claim that came
/// before it. A clock that was set back in between does not count.
fn visible_since(message: &Message, taken: &[&Message]) -> Timestamp {
    let came_before = taken.iter().filter(|other| other.number <= message.number);
    came_before.map(|other| other.enqueued_at).fold(message.due_at, Timestamp::max)
}
