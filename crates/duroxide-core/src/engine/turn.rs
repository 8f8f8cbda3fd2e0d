//! [`Turn`]: the result of one turn.

use crate::{ErrorDetails, Event, ParentLink, WorkItem};

/// The result of one turn. The runtime commits all of it in one round, or nothing.
#[derive(Debug, Clone)]
pub struct Turn {
    /// New events, numbered, in the order in which they are stored. A terminal event is the last one.
    pub delta: Vec<Event>,
    /// `ActivityExecute` items to enqueue.
    pub activities: Vec<WorkItem>,
    /// Timers, child and detached starts, child cancellations. The runtime adds the message to the parent, made from
    /// `outcome` and `parent`, because an old link may need a read of the store.
    pub messages: Vec<WorkItem>,
    /// Schedule ids of activities to delete from the worker queue.
    pub cancelled_activities: Vec<u64>,
    /// Schedule ids of activities to ask to stop; their outcome is awaited.
    pub stopped_activities: Vec<u64>,
    /// Schedule ids of timers to delete from the orchestrator queue.
    pub cancelled_timers: Vec<u64>,
    /// The state of the execution after the turn.
    pub outcome: Outcome,
    /// The parent's call, which is notified of the end.
    pub parent: Option<ParentLink>,
}

impl Turn {
    /// Both turns as one, to be committed together. `later` is the next turn of the same execution.
    #[must_use]
    pub fn followed_by(mut self, later: Self) -> Self {
        // Work of the first turn that the second one dropped is never enqueued.
        let gone = |item: &WorkItem| match item {
            WorkItem::ActivityExecute { id, .. } => later.cancelled_activities.contains(id),
            WorkItem::TimerFired { id, .. } => later.cancelled_timers.contains(id),
            WorkItem::StartOrchestration { .. }
            | WorkItem::ActivityCompleted { .. }
            | WorkItem::ActivityFailed { .. }
            | WorkItem::ExternalRaised { .. }
            | WorkItem::QueueMessage { .. }
            | WorkItem::SubOrchCompleted { .. }
            | WorkItem::SubOrchFailed { .. }
            | WorkItem::CancelInstance { .. }
            | WorkItem::ContinueAsNew { .. } => false,
        };
        self.activities.retain(|item| !gone(item));
        self.messages.retain(|item| !gone(item));
        self.stopped_activities.retain(|id| !later.cancelled_activities.contains(id));
        self.delta.extend(later.delta);
        self.activities.extend(later.activities);
        self.messages.extend(later.messages);
        self.cancelled_activities.extend(later.cancelled_activities);
        self.stopped_activities.extend(later.stopped_activities);
        self.cancelled_timers.extend(later.cancelled_timers);
        Self { outcome: later.outcome, parent: later.parent, ..self }
    }
}

/// The state of an execution after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The code waits for calls.
    Running,
    /// The code returned.
    Completed {
        /// The returned value.
        output: String,
    },
    /// The execution failed or was cancelled.
    Failed {
        /// Why.
        details: ErrorDetails,
    },
    /// The execution ended and the next one begins.
    ContinuedAsNew(Continuation),
}

/// The values that the next execution inherits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// The next input.
    pub input: String,
    /// The handler version asked for.
    pub version: Option<String>,
    /// Unread queue messages (name, data), in order of arrival.
    pub carried: Vec<(String, String)>,
    /// The current custom status.
    pub custom_status: Option<String>,
}
