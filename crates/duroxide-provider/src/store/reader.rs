//! `StoreReader`: the reads of clients and operators.

pub mod methods;

use std::collections::BTreeMap;

use duroxide_core::{INITIAL_EXECUTION_ID, KvEntry, SystemStats, Timestamp};
use serde::Serialize;

use super::{EventRow, StoreFailure, StoreSnapshot, StoredNode};
use crate::{
    DeadLetter, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceQuery, InstanceSummary, QueueDepths,
    QueueSummary, QueuedWork, ScheduledActivityIdentifier, SummaryRequest, SystemMetrics, VersionTriple,
};

/// Reads of a store. Each call sees one consistent state. Nothing here decodes an event.
///
/// An instance is *known* if it has a row with a name, or history. It is *pending* while it is not known and its start is
/// queued, visible or not. Any other mailbox (messages for an instance that was never started) is invisible to every
/// read; a pending instance is visible only to the reads that mention it.
pub trait StoreReader {
    /// Whether a read of many costs about as much as a read of one, as over a network. Then callers share their reads;
    /// otherwise each caller would wait for the reads of the others.
    fn reads_many_at_once(&self) -> bool {
        false
    }

    /// The history of an execution (`None`: of the current one); empty if unknown.
    fn history(&mut self, instance: &str, execution_id: Option<u64>) -> Result<Vec<EventRow>, StoreFailure>;

    /// History of an execution and the key-value state that earlier executions left, in one state.
    fn load(&mut self, instance: &str, execution_id: u64) -> Result<StoredExecution, StoreFailure>;

    /// Like [`Self::load`] for several executions, in their order. A store with a cost per call reads all at once.
    fn load_all(&mut self, executions: &[(String, u64)]) -> Result<Vec<StoredExecution>, StoreFailure> {
        executions.iter().map(|(instance, execution_id)| self.load(instance, *execution_id)).collect()
    }

    /// The status of an instance: one row and at most one event.
    fn status(&mut self, instance: &str) -> Result<Option<StoredStatus>, StoreFailure>;

    /// The statuses of several instances, in their order. A store that pays for each call reads all at once.
    fn statuses(&mut self, instances: &[String]) -> Result<Vec<Option<StoredStatus>>, StoreFailure> {
        instances.iter().map(|instance| self.status(instance)).collect()
    }

    /// Like [`Self::status`]; a pending instance is at its first execution.
    fn status_or_pending(&mut self, instance: &str) -> Result<Option<StoredStatus>, StoreFailure>;

    /// Name, version and parent of an instance.
    fn descriptor(&mut self, instance: &str) -> Result<Option<StoredDescriptor>, StoreFailure>;

    /// Like [`Self::descriptor`] for several instances, in their order. A store with a cost per call reads all at once.
    fn descriptors(&mut self, instances: &[String]) -> Result<Vec<Option<StoredDescriptor>>, StoreFailure> {
        instances.iter().map(|instance| self.descriptor(instance)).collect()
    }

    /// The last event id of an execution; `None` if it has no events.
    fn last_event_id(&mut self, instance: &str, execution_id: u64) -> Result<Option<u64>, StoreFailure>;

    /// The custom status and its version; `None` if it was never set.
    fn custom_status(&mut self, instance: &str) -> Result<Option<(Option<String>, u64)>, StoreFailure>;

    /// One value, changes of the current execution included.
    fn kv_value(&mut self, instance: &str, key: &str) -> Result<Option<String>, StoreFailure>;

    /// All values, changes of the current execution included.
    fn kv_values(&mut self, instance: &str) -> Result<BTreeMap<String, String>, StoreFailure>;

    /// Sizes of the current execution. `queue_pending_count` is left 0: it is in the first event.
    fn stats(&mut self, instance: &str) -> Result<Option<SystemStats>, StoreFailure>;

    /// Known instances, newest first; with a status, only those whose current execution has it.
    fn instances(&mut self, status: Option<&str>) -> Result<Vec<String>, StoreFailure>;

    /// Known and pending instances that the query's criteria select, newest first: at most `max` of those whose row is
    /// numbered below `below`. Ignores limit and cursor of the query. A pending instance is shown by
    /// [`pending_info`](super::pending_info).
    fn select_instances(
        &mut self,
        query: &InstanceQuery,
        below: Option<u64>,
        max: usize,
    ) -> Result<Vec<SelectedInstance>, StoreFailure>;

    /// The ids that a bulk delete (ended roots) or, with `running_too`, a bulk prune visits, in the order of their rows.
    fn bulk_selection(
        &mut self,
        filter: &InstanceFilter,
        running_too: bool,
    ) -> Result<Vec<String>, StoreFailure>;

    /// Whether at least this many visible-at-once messages without an idempotency key, other than starts, are queued
    /// for an instance or a mailbox: messages of clients.
    fn mailbox_holds(&mut self, instance: &str, at_least: u64) -> Result<bool, StoreFailure>;

    /// The executions of an instance, ascending.
    fn executions(&mut self, instance: &str) -> Result<Vec<u64>, StoreFailure>;

    /// The current execution; `None` for an unknown instance.
    fn current_execution(&mut self, instance: &str) -> Result<Option<u64>, StoreFailure>;

    /// The management record of an instance.
    fn instance_info(&mut self, instance: &str) -> Result<Option<InstanceInfo>, StoreFailure>;

    /// The management record of an execution.
    fn execution_info(
        &mut self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Option<ExecutionInfo>, StoreFailure>;

    /// Counts over the whole store.
    fn system_metrics(&mut self) -> Result<SystemMetrics, StoreFailure>;

    /// How many instances are pending.
    fn pending_instances(&mut self) -> Result<u64, StoreFailure>;

    /// Unlocked rows in the queues.
    fn queue_depths(&mut self) -> Result<QueueDepths, StoreFailure>;

    /// The direct children of an instance, in order of creation.
    fn children(&mut self, instance: &str) -> Result<Vec<String>, StoreFailure>;

    /// The versions that the current executions of running instances are pinned to, in order of creation. Histories are
    /// read only where no pin is stored.
    fn running_versions(&mut self) -> Result<Vec<RunningVersion>, StoreFailure>;

    /// Dead letters, oldest first.
    fn dead_letters(&mut self, limit: Option<u32>) -> Result<Vec<DeadLetter>, StoreFailure>;

    /// The nodes that have joined and not ended, in the order of their numbers.
    fn nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure>;

    /// Ready instances on the routes that `wanted` picks, longest ready first, at most `max`.
    fn ready_instances(
        &mut self,
        wanted: &dyn Fn(&InstanceNeeds) -> bool,
        max: usize,
    ) -> Result<Vec<ReadyInstance>, StoreFailure>;

    /// Ready activities in the lanes that `wanted` picks by name and tag, lowest first, at most `max`. Whether a session
    /// is held plays no part.
    fn ready_activities(
        &mut self,
        wanted: &dyn Fn(&str, Option<&str>) -> bool,
        max: usize,
    ) -> Result<Vec<ReadyActivity>, StoreFailure>;

    /// The queued rows of an instance or a mailbox, by index. `now` is the caller's time; a store with a clock of its own
    /// uses that.
    fn queued_work(&mut self, instance: &str, now: Timestamp) -> Result<Option<QueuedWork>, StoreFailure>;

    /// Counts of known instances, in one pass over them. An instance without a stored name counts under an empty one.
    fn instance_summary(&mut self, request: &SummaryRequest) -> Result<InstanceSummary, StoreFailure>;

    /// Counts of ready, locked and delayed items, read from their indexes. `now` as with [`Self::queued_work`].
    fn queue_summary(&mut self, now: Timestamp) -> Result<QueueSummary, StoreFailure>;

    /// Everything, for invariant checks and comparisons. Not for production use.
    fn snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure>;
}

/// The capability that an instance needs of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct InstanceNeeds {
    /// The orchestration, if known.
    pub name: Option<String>,
    /// Its version, if one was asked for or recorded.
    pub version: Option<String>,
    /// The version it is pinned to.
    pub pinned: Option<VersionTriple>,
}

/// The duroxide version that a running execution is pinned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunningVersion {
    /// Stored by the round that began the execution.
    Pinned(VersionTriple),
    /// Not stored, as in stores of older versions. The first event carries the version.
    Unpinned {
        /// The first event.
        first_event: String,
    },
}

/// An instance that can be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyInstance {
    /// Its id.
    pub instance: String,
    /// The capability that the items need.
    pub needs: InstanceNeeds,
    /// Since when its oldest message has waited: it was enqueued or became due then, whichever is later.
    pub since: Timestamp,
    /// Whether a cancellation is among its messages.
    pub cancel_requested: bool,
}

/// An activity that can be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyActivity {
    /// Which one it is.
    pub id: ScheduledActivityIdentifier,
    /// Its name.
    pub name: String,
    /// The tag; `None` for an activity without one.
    pub tag: Option<String>,
}

/// An instance that a query selected.
#[derive(Debug, Clone)]
pub struct SelectedInstance {
    /// The number of its row. Later rows have higher ones, and none is used twice.
    pub row: u64,
    /// The instance.
    pub info: InstanceInfo,
}

/// A stored execution.
#[derive(Debug, Clone, Default)]
pub struct StoredExecution {
    /// Its events, in order.
    pub events: Vec<EventRow>,
    /// The key-value state that earlier executions left.
    pub kv: BTreeMap<String, KvEntry>,
}

/// The status of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredStatus {
    /// The current execution.
    pub execution_id: u64,
    /// The last event, if the stored status is Completed or Failed.
    pub terminal_event: Option<String>,
    /// The custom status, if the code has set one.
    pub custom_status: Option<String>,
    /// How often it was set.
    pub custom_status_version: u64,
}

impl StoredStatus {
    /// The status of a pending instance.
    pub const PENDING: Self = Self {
        execution_id: INITIAL_EXECUTION_ID,
        terminal_event: None,
        custom_status: None,
        custom_status_version: 0,
    };
}

/// Name, version and parent of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDescriptor {
    /// The first event of the current execution, which holds name, version and parent.
    pub first_event: String,
}
