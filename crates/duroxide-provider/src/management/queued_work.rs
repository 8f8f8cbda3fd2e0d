//! [`QueuedWork`]: the queued rows of one instance.

use duroxide_core::Timestamp;
use serde::Serialize;

use crate::{DeadLetter, store::InstanceNeeds};

/// The lock, messages, activities and dead letters of one instance. All times are in milliseconds since the epoch, on the
/// store's clock. Only the first messages of a long mailbox are shown and judged; `messages_total` counts all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct QueuedWork {
    /// When the store was read.
    pub now_ms: u64,
    /// The capability that the next claim needs.
    pub needs: InstanceNeeds,
    /// The lock on the instance, if a node runs a turn of it.
    pub lock: Option<WorkLock>,
    /// Since when the oldest message waits that a node could take now; `None` if the instance is locked, or no message is
    /// visible.
    pub ready_since_ms: Option<u64>,
    /// The highest attempt count among the messages that are visible or that the lock holds.
    pub attempts: u32,
    /// The messages, in the order in which they arrived or are due: at most [`Self::LIMIT`], and no more after
    /// [`Self::BYTES_LIMIT`].
    pub messages: Vec<QueuedMessageInfo>,
    /// How many messages there are.
    pub messages_total: u64,
    /// The activities by execution and id, at most [`Self::LIMIT`].
    pub activities: Vec<QueuedActivityInfo>,
    /// How many activities there are.
    pub activities_total: u64,
    /// The owners of the sessions of the activities shown, by session. Free sessions are left out.
    pub sessions: Vec<SessionLease>,
    /// Dead letters of the instance, oldest first: at most [`Self::LIMIT`].
    pub dead_letters: Vec<DeadLetter>,
}

impl QueuedWork {
    /// The number of messages, of activities and of dead letters that are shown.
    pub const LIMIT: usize = 100;
    /// The messages end with the one whose JSON goes beyond this many bytes in total.
    pub const BYTES_LIMIT: usize = 1 << 20;

    /// The answer for an id that has dead letters and no other row.
    pub fn of_nobody(now: Timestamp, dead_letters: Vec<DeadLetter>) -> Option<Self> {
        let is_empty = dead_letters.is_empty();
        (!is_empty).then(|| Self { now_ms: now.as_millis(), dead_letters, ..Self::default() })
    }

    /// Adds a message, if there is room for it; returns whether there is room for another.
    pub fn push_message(&mut self, message: QueuedMessageInfo) -> bool {
        if self.has_room() {
            self.messages.push(message);
        }
        self.has_room()
    }

    fn has_room(&self) -> bool {
        let bytes: usize = self.messages.iter().map(|message| message.data.len()).sum();
        self.messages.len() < Self::LIMIT && bytes <= Self::BYTES_LIMIT
    }
}

/// The right of a node to run a turn or an activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkLock {
    /// The name of the node; `None` if it never joined the store.
    pub node: Option<String>,
    /// When the lease ends.
    pub until_ms: u64,
}

/// The right of a worker to run the activities of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionLease {
    /// The id of the session.
    pub session_id: String,
    /// The worker that holds it: the `worker_node_id` of a node, else `work-{slot}-{node}`.
    pub owner: String,
    /// When the lease ends.
    pub until_ms: u64,
}

/// A message in the mailbox of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueuedMessageInfo {
    /// The JSON of the work item.
    pub data: String,
    /// When it was enqueued.
    pub enqueued_at_ms: u64,
    /// When it becomes or became visible; `None` if it was visible at once.
    pub visible_at_ms: Option<u64>,
    /// How often it was fetched.
    pub attempts: u32,
}

/// An activity in the worker queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueuedActivityInfo {
    /// The execution that scheduled it.
    pub execution_id: u64,
    /// The event id of the schedule.
    pub activity_id: u64,
    /// Its name.
    pub name: String,
    /// Its routing tag.
    pub tag: Option<String>,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// How often it was fetched.
    pub attempts: u32,
    /// Until when it is hidden from all nodes, because one gave it back.
    pub hidden_until_ms: Option<u64>,
    /// The lock of the node that runs it.
    pub lock: Option<WorkLock>,
    /// Whether it was asked to stop.
    pub stop_requested: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> QueuedMessageInfo {
        QueuedMessageInfo { data: "x".repeat(bytes), enqueued_at_ms: 1, visible_at_ms: None, attempts: 0 }
    }

    #[test]
    fn messages_are_bounded_by_number_and_by_bytes() {
        let mut many = QueuedWork::default();
        while many.push_message(message(1)) {}
        assert_eq!(many.messages.len(), QueuedWork::LIMIT);
        assert!(!many.push_message(message(1)));
        assert_eq!(many.messages.len(), QueuedWork::LIMIT);

        let mut large = QueuedWork::default();
        assert!(large.push_message(message(QueuedWork::BYTES_LIMIT)));
        assert!(!large.push_message(message(1)), "the one that goes beyond the limit is the last");
        assert_eq!(large.messages.len(), 2);
    }
}
