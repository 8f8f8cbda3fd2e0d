//! Questions about a mailbox, all of whose messages are in the working set.

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{BatchBound, QueuedMessage},
    store::MessageKind,
};

use crate::{cache::Cache, record::Message};

pub(in crate::tables) type Messages = Cache<(u64, Timestamp, u64), Message>;

/// All messages of one instance, by position.
#[derive(Clone, Copy)]
pub(in crate::tables) struct WholeMailbox<'a> {
    messages: &'a Messages,
    instance: u64,
}

/// Which messages a claim may take.
#[derive(Debug, Default)]
pub(in crate::tables) struct Visible {
    pub(in crate::tables) numbers: Vec<(Timestamp, u64)>,
    pub(in crate::tables) are_all: bool,
}

impl<'a> WholeMailbox<'a> {
    pub(in crate::tables) fn new(messages: &'a Messages, instance: u64) -> Self {
        Self { messages, instance }
    }

    pub(in crate::tables) fn all(self) -> impl DoubleEndedIterator<Item = &'a Message> {
        let from = (self.instance, Timestamp::ZERO, 0);
        self.messages.range(from..=(self.instance, Timestamp::MAX, u64::MAX))
    }

    pub(in crate::tables) fn queued(self) -> impl DoubleEndedIterator<Item = &'a QueuedMessage> {
        self.all().map(|message| &message.queued)
    }

    /// The number from which on queue messages wait behind a hidden one.
    pub(in crate::tables) fn held_from(self, now: Timestamp) -> Option<u64> {
        let hidden = self.queued().filter(|message| message.hidden_until > now);
        hidden.filter(|message| message.kind == MessageKind::Queue).map(|message| message.number).min()
    }

    pub(in crate::tables) fn visible(self, now: Timestamp, bound: BatchBound) -> Visible {
        let held_from = self.held_from(now).unwrap_or(u64::MAX);
        let mut found = Visible { are_all: true, ..Visible::default() };
        let mut bytes = 0_usize;
        for Message { queued, bytes: size, .. } in self.all().filter(|message| is_shown(&message.queued, now))
        {
            if queued.kind == MessageKind::Queue && queued.number >= held_from {
                found.are_all = false;
                continue;
            }
            bytes = bytes.saturating_add(*size);
            let is_first = found.numbers.is_empty();
            if found.numbers.len() >= bound.messages || (bytes > bound.bytes && !is_first) {
                found.are_all = false;
                break;
            }
            found.numbers.push(queued.position());
        }
        found
    }

    pub(in crate::tables) fn first_visible_start(
        self,
        kind: MessageKind,
        now: Timestamp,
    ) -> Option<&'a QueuedMessage> {
        self.queued().find(|message| message.kind == kind && is_shown(message, now))
    }

    /// By kind, then by position.
    pub(in crate::tables) fn first_start(self) -> Option<&'a QueuedMessage> {
        let starts = self.queued().filter(|message| message.is_start());
        starts.min_by_key(|message| (message.kind, message.position()))
    }

    pub(in crate::tables) fn next_visible(self, now: Timestamp) -> Option<Timestamp> {
        let times = self.queued().flat_map(|message| [message.due_at, message.hidden_until]);
        times.filter(|time| *time > now).min()
    }

    pub(in crate::tables) fn waiting_since(self, time: Timestamp) -> Vec<&'a QueuedMessage> {
        let mut messages: Vec<_> = self.queued().filter(|message| message.waits_since() <= time).collect();
        messages.sort_by_key(|message| (message.waits_since(), message.position()));
        messages
    }
}

/// Whether it is due and not hidden.
pub(in crate::tables) fn is_shown(message: &QueuedMessage, now: Timestamp) -> bool {
    message.due_at <= now && message.hidden_until <= now
}
