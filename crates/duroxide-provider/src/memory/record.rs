//! The rows of a memory engine as plain values, for an engine that keeps them elsewhere too.

use std::collections::BTreeMap;

use duroxide_core::KvEntry;
use serde::{Deserialize, Serialize};

pub use crate::rules::{
    DeadLetterRow, ExecutionRow, Extent, InstanceLock, InstanceRow, Lane, Lease, Origin, QueuedActivity,
    QueuedMessage, Readiness, Route,
};
use crate::{
    rules::LaneId,
    store::{ActivityRow, EventRow},
};

/// An instance, or the mailbox of one that was never started. Its executions and queue items are records of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceRecord {
    /// The row, without its route.
    #[serde(flatten)]
    pub row: InstanceRow,
    /// The route, which a claim must accept.
    pub route: Option<Route>,
    /// The custom status and its version.
    pub custom_status: Option<(Option<String>, u64)>,
    /// The key-value state left by earlier executions.
    pub kv: BTreeMap<String, KvEntry>,
    /// The key-value changes of the current execution; `None` marks a removed key.
    pub kv_changes: BTreeMap<String, Option<KvEntry>>,
}

impl InstanceRecord {
    /// The record of an instance that has no key-values and no custom status.
    pub fn of_row(row: InstanceRow) -> Self {
        let (kv, kv_changes) = (BTreeMap::new(), BTreeMap::new());
        Self { row, route: None, custom_status: None, kv, kv_changes }
    }
}

/// An execution, without its events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionRecord {
    /// The id of the instance.
    pub instance: String,
    /// Its number.
    pub execution_id: u64,
    /// The row.
    #[serde(flatten)]
    pub row: ExecutionRow,
}

/// A queued message of an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageRecord {
    /// The instance it is for.
    pub instance: String,
    /// The row.
    #[serde(flatten)]
    pub row: QueuedMessage,
}

/// A queued activity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActivityRecord {
    /// The row. The number of its instance and its lane are found anew when it is loaded.
    #[serde(flatten)]
    pub row: QueuedActivity,
    /// The work item.
    pub activity: ActivityRow,
}

impl ActivityRecord {
    /// The record of an activity that was never claimed. Loading it fills in instance and lane.
    pub fn new(number: u64, activity: ActivityRow) -> Self {
        Self { row: QueuedActivity::new(number, 0, LaneId::default(), &activity), activity }
    }
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadLetterRecord {
    /// Its number.
    pub number: u64,
    /// The row, without the lane of an activity.
    #[serde(flatten)]
    pub row: DeadLetterRow,
    /// The lane of an activity.
    pub lane: Option<Lane>,
}

/// An instance with everything that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredInstance {
    /// The instance itself.
    pub instance: InstanceRecord,
    /// Its executions with their events.
    pub executions: Vec<(ExecutionRecord, Vec<EventRow>)>,
    /// Its messages.
    pub messages: Vec<MessageRecord>,
    /// Its activities.
    pub activities: Vec<ActivityRecord>,
}

/// Everything an engine stores. Sessions and nodes are not among it: they end with the process that uses the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Records {
    /// Instances and mailboxes.
    pub instances: Vec<StoredInstance>,
    /// Dead letters.
    pub dead_letters: Vec<DeadLetterRecord>,
}

/// The rows that an operation or a claim changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Events appended to an execution: instance, execution, events.
    pub appended: Vec<(String, u64, Vec<EventRow>)>,
    /// New instances.
    pub added_instances: Vec<InstanceRecord>,
    /// Instances that changed.
    pub changed_instances: Vec<InstanceRecord>,
    /// Executions that changed.
    pub executions: Vec<ExecutionRecord>,
    /// Executions that were pruned: instance and execution.
    pub removed_executions: Vec<(String, u64)>,
    /// Deleted instances, with all their rows, in the order of their removal. A new instance of the same id is another
    /// one.
    pub removed_instances: Vec<String>,
    /// Changed messages.
    pub messages: RowChanges<MessageRecord>,
    /// Changed activities.
    pub activities: RowChanges<ActivityRecord>,
    /// Dead letters that were added.
    pub added_dead_letters: Vec<DeadLetterRecord>,
    /// The numbers of deleted dead letters.
    pub removed_dead_letters: Vec<u64>,
}

/// Changed rows of one queue.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChanges<R> {
    /// New rows.
    pub added: Vec<R>,
    /// Rows that were locked, unlocked, hidden or counted.
    pub changed: Vec<R>,
    /// Deleted rows: instance and number.
    pub removed: Vec<(String, u64)>,
}

impl<R> Default for RowChanges<R> {
    fn default() -> Self {
        Self { added: Vec::new(), changed: Vec::new(), removed: Vec::new() }
    }
}

impl<R> RowChanges<R> {
    /// Adds the current row, if it still exists.
    pub(super) fn add(&mut self, was_there: bool, now: Option<R>, id: impl FnOnce() -> (String, u64)) {
        match now {
            Some(row) if was_there => self.changed.push(row),
            Some(row) => self.added.push(row),
            None => self.removed.push(id()),
        }
    }
}
