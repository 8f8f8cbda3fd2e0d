//! Explains why an instance does not move.
//!
//! `gather` reads the store, `decide` finds the reasons in the facts, and `wording` writes them as sentences.

mod decide;
mod gather;
mod spelling;
#[cfg(test)]
mod tests;
mod wording;

use duroxide_provider::MissingCapability;
use serde::Serialize;

use super::{Client, ClientError};

/// The state of an instance and the reasons why it waits. [`Display`](std::fmt::Display) writes it as sentences.
///
/// Times are in milliseconds since the epoch, on the store's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The id of the instance.
    pub instance: String,
    /// Its orchestration name.
    pub name: String,
    /// Its handler version; `unknown` if the start asked for none and no node has begun it.
    pub version: String,
    /// Its current execution.
    pub execution_id: u64,
    /// The status of that execution, or `Pending` if no node has begun the instance.
    pub status: String,
    /// When the store was read.
    pub now_ms: u64,
    /// The findings, the most important first.
    pub findings: Vec<Finding>,
    /// How many more calls are open than `findings` has.
    pub more_calls: u64,
}

/// One reason for the state of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// The instance has completed.
    Completed {
        /// The time, in milliseconds since the epoch.
        at_ms: u64,
    },
    /// The instance has failed.
    Failed {
        /// Why.
        error: String,
        /// The time, in milliseconds since the epoch.
        at_ms: u64,
    },
    /// A message or an activity was fetched too often, and the instance failed.
    Poisoned {
        /// The poisoned item, and the reason if it is known.
        what: String,
        /// How often it was fetched.
        attempts: u32,
        /// When the instance failed.
        at_ms: u64,
    },
    /// The instance was cancelled.
    Cancelled {
        /// Why.
        reason: String,
        /// The time, in milliseconds since the epoch.
        at_ms: u64,
    },
    /// Its start, or that of its next execution, was accepted, and no node has begun it.
    StartQueued {
        /// When it was accepted.
        since_ms: u64,
    },
    /// A cancellation was requested, and the instance has not ended.
    CancelRequested {
        /// The time, in milliseconds since the epoch.
        since_ms: u64,
    },
    /// A node runs a turn of it.
    TurnRunning {
        /// The node, if its name is known.
        node: Option<String>,
        /// When the node's lease ends. Until then the node renews it, if it lives.
        lease_ends_ms: u64,
        /// Which attempt at these messages it is.
        attempt: u32,
    },
    /// Waits for a free slot of a node that can take it.
    Ready {
        /// Since this time, in milliseconds since the epoch.
        since_ms: u64,
        /// How often its messages were fetched before.
        attempts: u32,
    },
    /// A node gave its messages back.
    Hidden {
        /// When they are shown again.
        until_ms: u64,
        /// The nodes that have no handler for it.
        lacking_nodes: Vec<String>,
    },
    /// The instance has messages, and no live node can take it.
    NoNode {
        /// The capability that no live node has.
        missing: MissingCapability,
    },
    /// Its code waits for an external event.
    Event {
        /// The name of the event.
        name: String,
        /// Since this time, in milliseconds since the epoch.
        since_ms: u64,
        /// A raised event without a wait: the last one with a similar name, else the last one.
        last_raised: Option<String>,
    },
    /// Its code waits for a message of an event queue.
    Queue {
        /// The name of the queue.
        name: String,
        /// Since this time, in milliseconds since the epoch.
        since_ms: u64,
        /// A queue with unread messages: the last one with a similar name, else the last one.
        last_enqueued: Option<String>,
    },
    /// Its code waits for a timer.
    Timer {
        /// When the timer is due.
        due_ms: u64,
        /// When the timer was created.
        since_ms: u64,
    },
    /// An activity failed right before its code began to wait for a timer: the timer may be the pause before the next attempt.
    FailedBefore {
        /// The name of the activity.
        name: String,
        /// Why it failed.
        error: String,
        /// The time, in milliseconds since the epoch.
        at_ms: u64,
    },
    /// Its code waits for an activity.
    Activity {
        /// The name of the activity.
        name: String,
        /// The event that scheduled it.
        activity_id: u64,
        /// How often it was fetched; the running attempt counts.
        attempt: u32,
        /// The number of attempts after which it is poison, if the nodes announce it.
        max_attempts: Option<u32>,
        /// When it was scheduled.
        since_ms: u64,
        /// The state of the activity.
        state: ActivityState,
    },
    /// Its code waits for a child.
    Child {
        /// The child.
        instance: String,
        /// Its orchestration name.
        name: String,
        /// When it was called.
        since_ms: u64,
        /// The explanation of the child. `None` if the child does not exist, is more than three levels below the
        /// explained instance, or comes after many other children.
        explanation: Option<Box<Explanation>>,
    },
    /// Its code waits for a request to cancel the instance.
    AwaitsCancellation {
        /// Since this time, in milliseconds since the epoch.
        since_ms: u64,
    },
    /// A message for it, or an activity of it, could not be processed and became a dead letter.
    DeadLetter {
        /// The id of the dead letter.
        id: String,
        /// Why it became a dead letter.
        reason: String,
    },
    /// Its history cannot be decoded, so it is unknown what its code waits for.
    Unreadable {
        /// The decoding error.
        error: String,
    },
    /// The instance runs, has no message and waits for no call: only an event, a message or a cancellation wakes it.
    Nothing,
}

/// The state of an open activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActivityState {
    /// A node runs it.
    Running {
        /// The node, if its name is known.
        node: Option<String>,
        /// When the node's lease ends. Until then the node renews it, if it lives.
        lease_ends_ms: u64,
    },
    /// Waits for a free slot of a node that can take it.
    Waiting,
    /// The activity belongs to a session that a worker holds, so only that worker can take it.
    SessionHeld {
        /// The id of the session.
        session: String,
        /// The worker that holds it: the `worker_node_id` of a node, else `work-{slot}-{node}`.
        owner: String,
        /// When the worker's lease ends. Until then the worker renews it, if it lives and uses the session.
        lease_ends_ms: u64,
    },
    /// A node gave it back.
    Hidden {
        /// When it is shown again.
        until_ms: u64,
        /// The nodes that have no handler for it.
        lacking_nodes: Vec<String>,
    },
    /// No live node can take it.
    NoNode {
        /// The capability that no live node has.
        missing: MissingCapability,
    },
    /// The activity was asked to stop, and its outcome is awaited.
    StopRequested,
    /// The activity is not in the queue: its completion is queued, or it is a dead letter.
    NotQueued,
    /// The store does not show its queues.
    Unknown,
}

impl Client {
    /// Explains why an instance does not make progress: open calls, locks, and missing capabilities.
    ///
    /// Reads one history and, by index, the queued work of the instance, the nodes, and likewise up to ten children, at
    /// most three levels deep. With a store that does not show its queues (ours do) that part is left out.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use duroxide_runtime::{Client, ClientError};
    /// # use duroxide_store::MemoryProvider;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let client = Client::new(Arc::new(MemoryProvider::new()));
    /// client.start_orchestration("order-1", "Order", "teapot").await?;
    /// let why = client.explain("order-1").await?;
    /// assert!(why.to_string().contains("no live node runs orchestrations"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InstanceNotFound`, `ManagementNotAvailable`, or the store's error.
    pub async fn explain(&self, instance: &str) -> Result<Explanation, ClientError> {
        let mut children_left = gather::CHILDREN_MAX;
        let facts = gather::facts(self, instance, gather::LEVELS_MAX, &mut children_left).await?;
        let found = facts.map(decide::explain);
        found.ok_or_else(|| ClientError::InstanceNotFound { instance_id: instance.to_owned() })
    }
}
