//! Arguments and results of the management calls.

mod dead_letter;
mod instance_query;
mod queued_work;
mod stranded;
pub(crate) mod summary;

pub use self::{
    dead_letter::{DeadLetter, DeadLetterQueue, RawEvent},
    instance_query::{InstancePage, InstanceQuery},
    queued_work::{QueuedActivityInfo, QueuedMessageInfo, QueuedWork, SessionLease, WorkLock},
    stranded::{MissingCapability, StrandedWork},
    summary::{InstanceCount, InstanceSummary, LaneSummary, QueueSummary, RouteSummary, SummaryRequest},
};
pub(crate) use self::{instance_query::scan, summary::scan as summary_scan};

use serde::Serialize;

/// The management record of an instance.
#[derive(Debug, Clone, Serialize)]
pub struct InstanceInfo {
    /// The id, unique among all instances of the store.
    pub instance_id: String,
    /// The registered name of the orchestration.
    pub orchestration_name: String,
    /// The handler version of the current execution.
    pub orchestration_version: String,
    /// The number of the current execution, from 1.
    pub current_execution_id: u64,
    /// The current execution's status.
    pub status: String,
    /// The current execution's output.
    pub output: Option<String>,
    /// When it was created, in milliseconds since the epoch.
    pub created_at: u64,
    /// When it last changed, in milliseconds since the epoch.
    pub updated_at: u64,
    /// The parent, if this is a child.
    pub parent_instance_id: Option<String>,
}

/// The management record of an execution.
#[derive(Debug, Clone, Serialize)]
pub struct ExecutionInfo {
    /// Its number.
    pub execution_id: u64,
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`.
    pub status: String,
    /// The result or the error; `None` while it runs.
    pub output: Option<String>,
    /// When it began, in milliseconds since the epoch.
    pub started_at: u64,
    /// When it ended, in milliseconds since the epoch.
    pub completed_at: Option<u64>,
    /// Events in its history.
    pub event_count: usize,
}

/// Counts over the whole store.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SystemMetrics {
    /// The number of instances.
    pub total_instances: u64,
    /// The number of executions.
    pub total_executions: u64,
    /// Instances whose current execution runs.
    pub running_instances: u64,
    /// Instances whose current execution completed.
    pub completed_instances: u64,
    /// Instances whose current execution failed.
    pub failed_instances: u64,
    /// The number of events.
    pub total_events: u64,
}

/// Unlocked rows in the queues.
#[derive(Debug, Clone, Default, Serialize)]
pub struct QueueDepths {
    /// Messages to instances.
    pub orchestrator_queue: usize,
    /// Activities.
    pub worker_queue: usize,
    /// Always 0: timers are in the orchestrator queue.
    pub timer_queue: usize,
}

/// Which instances a bulk call visits. Criteria are ANDed.
#[derive(Debug, Clone, Default)]
pub struct InstanceFilter {
    /// Only these.
    pub instance_ids: Option<Vec<String>>,
    /// Only instances that ended before this time, in milliseconds since the epoch.
    pub completed_before: Option<u64>,
    /// At most this many; `None` means 1000.
    pub limit: Option<u32>,
}

/// Which executions a prune keeps. The current one and running ones always stay.
#[derive(Debug, Clone, Default)]
pub struct PruneOptions {
    /// Keep this many of the newest.
    pub keep_last: Option<u32>,
    /// Remove only executions that ended before this time, in milliseconds since the epoch.
    pub completed_before: Option<u64>,
}

/// Counts of the rows that a delete removed.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DeleteInstanceResult {
    /// The number of instances.
    pub instances_deleted: u64,
    /// The number of executions.
    pub executions_deleted: u64,
    /// The number of events.
    pub events_deleted: u64,
    /// Queue rows.
    pub queue_messages_deleted: u64,
}

/// Counts of the rows that a prune removed.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PruneResult {
    /// Instances visited.
    pub instances_processed: u64,
    /// Executions removed.
    pub executions_deleted: u64,
    /// Events removed.
    pub events_deleted: u64,
}

/// An instance with all its descendants.
#[derive(Debug, Clone, Serialize)]
pub struct InstanceTree {
    /// The instance asked for.
    pub root_id: String,
    /// The root and its descendants; the root comes first.
    pub all_ids: Vec<String>,
}

impl InstanceTree {
    /// Whether there are no descendants.
    pub fn is_root_only(&self) -> bool {
        self.all_ids.len() == 1
    }

    /// How many instances there are.
    pub fn size(&self) -> usize {
        self.all_ids.len()
    }
}
