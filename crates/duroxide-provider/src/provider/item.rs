//! The answer to a fetch of an instance, and the parts of a round besides its events.

use std::{collections::HashMap, time::Duration};

use duroxide_core::{Event, KvEntry, WorkItem};
use semver::Version;

/// One instance's locked messages, with everything needed to run a turn on them.
#[derive(Debug, Clone)]
pub struct OrchestrationItem {
    /// The id of the instance.
    pub instance: String,
    /// The registered name of the orchestration.
    pub orchestration_name: String,
    /// Its current execution.
    pub execution_id: u64,
    /// Its handler version; `unknown` if the start asked for none.
    pub version: String,
    /// The current execution's history; with `history_error`, the events before the undecodable one.
    pub history: Vec<Event>,
    /// The locked messages, in order.
    pub messages: Vec<WorkItem>,
    /// Why the history could not be decoded.
    pub history_error: Option<String>,
    /// The key-value state left by earlier executions.
    pub kv_snapshot: HashMap<String, KvEntry>,
}

/// The columns of an execution that a round writes besides the events.
#[derive(Debug, Clone, Default)]
pub struct ExecutionMetadata {
    /// `Completed`, `Failed`, `ContinuedAsNew`, or `None` while it runs.
    pub status: Option<String>,
    /// The result, the failure's text, or the next input.
    pub output: Option<String>,
    /// The orchestration's name; given with the first round.
    pub orchestration_name: Option<String>,
    /// The handler version; given with the first round.
    pub orchestration_version: Option<String>,
    /// The parent; used only when the instance is created.
    pub parent_instance_id: Option<String>,
    /// The duroxide version that started the execution; given with OrchestrationStarted.
    pub pinned_duroxide_version: Option<Version>,
    /// Activities that are asked to stop. A provider that does not know this field ignores it: the activities then run
    /// to their end, and their outcome is delivered as always.
    pub stop_activities: Vec<ActivityStop>,
}

/// Asks an activity of the round's execution to stop, and to deliver its outcome.
///
/// Without a lock, the row of the activity is deleted and one of the two messages is queued instead, in the round's
/// transaction. With a lock, the row keeps the request: the holder learns of it from its next
/// [`renew_work_item`](crate::Provider::renew_work_item), a later claim from
/// [`WorkClaim::stop_requested`](crate::WorkClaim::stop_requested). A missing row is no error: its completion is already
/// queued.
#[derive(Debug, Clone)]
pub struct ActivityStop {
    /// The event id of the schedule.
    pub activity_id: u64,
    /// Queued if the activity was never claimed.
    pub never_started: WorkItem,
    /// Queued if an earlier claim was abandoned or lost.
    pub interrupted: WorkItem,
}

/// Identifies an activity by the event that scheduled it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledActivityIdentifier {
    /// The id of the instance.
    pub instance: String,
    /// The number of the execution, from 1.
    pub execution_id: u64,
    /// The event id of the schedule.
    pub activity_id: u64,
}

/// How a worker takes session activities.
#[derive(Debug, Clone)]
pub struct SessionFetchConfig {
    /// The owner of the sessions that the fetch claims.
    pub owner_id: String,
    /// For how long a claimed session is leased.
    pub lock_timeout: Duration,
}
