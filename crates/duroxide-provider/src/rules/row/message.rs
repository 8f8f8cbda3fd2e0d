//! Messages in mailboxes.

use std::sync::Arc;

use duroxide_core::{Timestamp, WorkItem};
use serde::{Deserialize, Serialize};

use crate::store::{Arrival, MessageKind};

/// `due_at` of a message that was visible at once. It is part of the key of the table, in front of all due times, and a clock that is
/// set back does not hide the message.
pub const VISIBLE_AT_ONCE: Timestamp = Timestamp::ZERO;
/// `hidden_until` of a message or an activity that no abandon hides. Stores have an index of the rows with a later time.
pub const NOT_HIDDEN: Timestamp = Timestamp::ZERO;

/// A message in the mailbox of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedMessage {
    /// Its key. Messages are numbered in the order of their arrival.
    pub number: u64,
    /// When it becomes visible by itself, or [`VISIBLE_AT_ONCE`].
    pub due_at: Timestamp,
    /// The kind, as far as a store distinguishes it.
    pub kind: MessageKind,
    /// Its idempotency key.
    pub key: Option<String>,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// Until when an abandon hides it, or [`NOT_HIDDEN`].
    pub hidden_until: Timestamp,
    /// How often it was claimed, without the claim of a present lock.
    pub attempts: u32,
    /// The mark of an [`Extent::Marked`](super::Extent::Marked).
    pub mark: Option<u64>,
    /// Its JSON. Empty if `item` is set and the tables keep the JSON elsewhere.
    pub data: String,
    /// The decoded message, if it is at hand.
    #[serde(skip)]
    pub item: Option<Arc<WorkItem>>,
}

impl QueuedMessage {
    /// Its position in the mailbox: by due time, then by number.
    pub fn position(&self) -> (Timestamp, u64) {
        (self.due_at, self.number)
    }

    /// Whether the message is visible: due, and not hidden.
    pub fn is_visible(&self, now: Timestamp) -> bool {
        self.visible_from() <= now
    }

    /// From when on the message is visible: it is due, and no longer hidden.
    pub fn visible_from(&self) -> Timestamp {
        self.due_at.max(self.hidden_until)
    }

    /// Whether this is a hidden queue message. Younger queue messages of its instance wait behind it, or a backoff would break
    /// their order.
    pub fn holds_back(&self, now: Timestamp) -> bool {
        self.kind == MessageKind::Queue && self.hidden_until > now
    }

    /// Whether this queue message waits behind the oldest hidden one, which has this number.
    pub fn waits_behind(&self, hidden: Option<u64>) -> bool {
        self.kind == MessageKind::Queue && hidden.is_some_and(|hidden| hidden < self.number)
    }

    /// When it was enqueued or became due, whichever is later.
    pub fn waits_since(&self) -> Timestamp {
        self.enqueued_at.max(self.due_at)
    }

    /// The key by which the messages of a claim are sorted for delivery.
    pub fn arrival(&self) -> Arrival {
        Arrival { number: self.number, enqueued_at: self.enqueued_at, due_at: self.due_at }
    }

    /// Whether clients send such messages. Messages of the runtime have a key or a due time.
    pub fn is_from_client(&self) -> bool {
        self.key.is_none() && self.due_at == VISIBLE_AT_ONCE && !self.is_start()
    }

    /// Whether the message can begin an execution.
    pub fn is_start(&self) -> bool {
        is_start(self.kind)
    }
}

/// Until when a row is hidden. A time that has passed hides nothing, whether or not it is still stored.
pub fn still_hidden(until: Timestamp, now: Timestamp) -> Timestamp {
    if until > now { until } else { NOT_HIDDEN }
}

/// Whether a message of this kind can begin an execution.
pub const fn is_start(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Start | MessageKind::ContinueAsNew)
}

/// Messages that a claim may take.
#[derive(Debug, Clone, Default)]
pub struct VisibleMessages {
    /// The messages, by position.
    pub messages: Vec<QueuedMessage>,
    /// Whether these are all messages that have become due and are not hidden: no bound left one out, and no queue
    /// message waits behind a hidden one.
    pub are_all: bool,
}

/// How much of a mailbox a claim reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimBound {
    /// Messages, at most.
    pub messages: usize,
    /// Bytes of JSON, at most; the first message is always taken.
    pub bytes: usize,
}

impl ClaimBound {
    /// Whether a claim with this many messages takes another one, with which it has this many bytes.
    pub fn admits(self, taken: usize, bytes_with_it: usize) -> bool {
        taken < self.messages && (taken == 0 || bytes_with_it <= self.bytes)
    }
}
