//! [`Turn`]: what one turn decided.

use crate::{ErrorDetails, Event, ParentLink, WorkItem};

/// What one turn decided. The shell commits all of it in one round, or none of it.
#[derive(Debug, Clone)]
pub struct Turn {
    /// New events, numbered, in the order in which they are stored. A terminal event is the last one.
    pub delta: Vec<Event>,
    /// `ActivityExecute` items to hand out.
    pub activities: Vec<WorkItem>,
    /// Timers, child and detached starts, child cancellations. The message to the parent is not among them: the
    /// shell makes it from `outcome` and `parent`, because an old link may need a look into the store.
    pub messages: Vec<WorkItem>,
    /// Schedule ids of activities to delete from the worker queue.
    pub cancelled_activities: Vec<u64>,
    /// Schedule ids of activities to ask to stop; their outcome is awaited.
    pub stopped_activities: Vec<u64>,
    /// Schedule ids of timers to delete from the orchestrator queue.
    pub cancelled_timers: Vec<u64>,
    /// How the execution stands now.
    pub outcome: Outcome,
    /// Who is told when the execution ended.
    pub parent: Option<ParentLink>,
}

/// How an execution stands after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It waits for something.
    Running,
    /// It returned.
    Completed {
        /// What it returned.
        output: String,
    },
    /// It failed or was cancelled.
    Failed {
        /// Why.
        details: ErrorDetails,
    },
    /// It ended and the next execution begins.
    ContinuedAsNew(Continuation),
}

/// What one execution leaves to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// The next input.
    pub input: String,
    /// The handler version asked for.
    pub version: Option<String>,
    /// Unread queue messages (name, data), in order of arrival.
    pub carried: Vec<(String, String)>,
    /// The custom status as it stands.
    pub custom_status: Option<String>,
}
