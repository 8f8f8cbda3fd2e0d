//! The rows of a memory engine as plain values, for an engine that keeps them elsewhere too.

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::{KvEntry, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    Losses, NodeId, VersionTriple,
    store::{ActivityRow, EventRow, MessageKind, StartTarget},
};

/// An instance, or the mailbox of one that was never started. Its executions and queue items are rows of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceRecord {
    /// Its id.
    pub instance: String,
    /// The number of its row. Later rows have higher ones.
    pub number: u64,
    /// Its orchestration name; `None` for a mailbox.
    pub name: Option<String>,
    /// Its handler version.
    pub version: Option<String>,
    /// Its parent.
    pub parent: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The current execution.
    pub execution_id: u64,
    /// The lock on its messages, live or not.
    pub lock: Option<LockRecord>,
    /// Whether it may be poison.
    pub suspect: bool,
    /// Its lost claims.
    #[serde(default)]
    pub losses: Losses,
    /// Its place among the ready instances.
    pub ready: Option<u64>,
    /// The custom status and its version.
    pub custom_status: Option<(Option<String>, u64)>,
    /// The key-value state left by earlier executions.
    pub kv: BTreeMap<String, KvEntry>,
    /// The key-value changes of the current execution; `None` marks a removed key.
    pub kv_changes: BTreeMap<String, Option<KvEntry>>,
}

/// One execution, without its events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionRecord {
    /// The instance.
    pub instance: String,
    /// Its number.
    pub execution_id: u64,
    /// Its status.
    pub status: String,
    /// Its output.
    pub output: Option<String>,
    /// The pinned version.
    pub pinned: Option<VersionTriple>,
    /// Rounds committed.
    pub turns: u64,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
}

/// A lock with its visibility deadline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LockRecord {
    /// Its token.
    pub token: String,
    /// When it ends.
    pub until: Timestamp,
    /// Its length when it was given or last renewed.
    pub lease: Duration,
    /// The node that holds it.
    pub node: Option<NodeId>,
}

/// A queued message of an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageRecord {
    /// The instance it is for.
    pub instance: String,
    /// Its number. Later messages have higher ones.
    pub number: u64,
    /// What the store knows of its kind.
    pub kind: MessageKind,
    /// Its idempotency key.
    pub key: Option<String>,
    /// For starts: which handler will be asked for.
    pub start: Option<StartTarget>,
    /// When it becomes visible by itself; 0 = at once.
    pub due_at_ms: u64,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// Until when an abandon hides it.
    pub hidden_until: Timestamp,
    /// How often it was fetched.
    pub attempt_count: u32,
    /// Whether the lock of its instance holds it.
    pub locked: bool,
    /// Its JSON.
    pub data: String,
}

/// A queued activity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActivityRecord {
    /// Its number. Lower ones are taken first.
    pub number: u64,
    /// The activity.
    #[serde(flatten)]
    pub row: ActivityRow,
    /// Until when an abandon hides it.
    pub hidden_until: Timestamp,
    /// How often it was fetched.
    pub attempt_count: u32,
    /// Whether it was ever claimed.
    #[serde(default)]
    pub claimed: bool,
    /// Whether it was asked to stop.
    #[serde(default)]
    pub stop_requested: bool,
    /// Its lost claims.
    #[serde(default)]
    pub losses: Losses,
    /// Its lock, live or not.
    pub lock: Option<LockRecord>,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadLetterRecord {
    /// Its number.
    pub number: u64,
    /// What could not be delivered.
    pub undelivered: UndeliveredRecord,
    /// Why.
    pub reason: String,
    /// How often it was fetched.
    pub attempt_count: u32,
    /// When it became a dead letter, in milliseconds since the epoch.
    pub dead_lettered_at_ms: u64,
}

/// A queue item that could not be delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum UndeliveredRecord {
    /// A message to an instance.
    Message {
        /// The instance.
        instance: String,
        /// What the store knows of its kind.
        kind: MessageKind,
        /// Its idempotency key.
        key: Option<String>,
        /// For starts: which handler would have been asked for.
        start: Option<StartTarget>,
        /// Its JSON.
        data: String,
    },
    /// An activity.
    Activity(ActivityRow),
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

/// What an operation or a claim changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Events appended to an execution: instance, execution, events.
    pub appended: Vec<(String, u64, Vec<EventRow>)>,
    /// Instances that may have changed. Some have not: compare them with what is stored.
    pub instances: Vec<InstanceRecord>,
    /// Executions that changed.
    pub executions: Vec<ExecutionRecord>,
    /// Executions that were pruned: instance and execution.
    pub removed_executions: Vec<(String, u64)>,
    /// Instances that are gone with everything that belonged to them, in the order of their removal.
    pub removed_instances: Vec<String>,
    /// Changed messages.
    pub messages: RowChanges<MessageRecord>,
    /// Changed activities.
    pub activities: RowChanges<ActivityRecord>,
    /// Dead letters that were added.
    pub added_dead_letters: Vec<DeadLetterRecord>,
    /// The numbers of dead letters that are gone.
    pub removed_dead_letters: Vec<u64>,
}

/// Changed rows of one queue.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChanges<R> {
    /// New rows.
    pub added: Vec<R>,
    /// Rows that were locked, unlocked, hidden or counted.
    pub changed: Vec<R>,
    /// Rows that are gone: instance and number.
    pub removed: Vec<(String, u64)>,
}

impl<R> Default for RowChanges<R> {
    fn default() -> Self {
        Self { added: Vec::new(), changed: Vec::new(), removed: Vec::new() }
    }
}
