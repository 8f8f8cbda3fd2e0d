//! Queries on a mailbox whose messages are all in the working set.

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{ClaimBound, QueuedMessage},
    store::MessageKind,
};

use crate::{record::Message, tracked_rows::TrackedRows};

pub(in crate::tables) type Messages = TrackedRows<(u64, Timestamp, u64), Message>;

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

    /// The number of the oldest hidden queue message: younger ones wait behind it.
    pub(in crate::tables) fn held_from(self, now: Timestamp) -> Option<u64> {
        self.queued().filter(|message| message.holds_back(now)).map(|message| message.number).min()
    }

    pub(in crate::tables) fn visible(self, now: Timestamp, bound: ClaimBound) -> Visible {
        let hidden = self.held_from(now);
        let mut found = Visible { are_all: true, ..Visible::default() };
        let mut bytes = 0_usize;
        for Message { queued, bytes: size, .. } in self.all().filter(|message| message.queued.is_visible(now))
        {
            if queued.waits_behind(hidden) {
                found.are_all = false;
                continue;
            }
            bytes = bytes.saturating_add(*size);
            if !bound.admits(found.numbers.len(), bytes) {
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
        self.queued().find(|message| message.kind == kind && message.is_visible(now))
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

/// See [`QueuedMessage::is_visible`].
pub(in crate::tables) fn is_shown(message: &QueuedMessage, now: Timestamp) -> bool {
    message.is_visible(now)
}
