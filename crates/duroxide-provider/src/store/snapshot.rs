//! The whole content of a store as plain values, in the same order for every engine.

mod copy;

use std::collections::BTreeMap;

use duroxide_core::{KvEntry, Timestamp};

pub use self::copy::CopySource;
use super::EventRow;
use crate::{DeadLetter, VersionTriple, rules::Lease};

/// The whole content of a store. Two engines that were given the same operations have equal snapshots (apart
/// from tokens).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StoreSnapshot {
    /// When it was taken, by the time of the last transaction.
    pub taken_at: Timestamp,
    /// Instances and mailboxes, by id.
    pub instances: Vec<InstanceSnapshot>,
    /// Dead letters, oldest first.
    pub dead_letters: Vec<DeadLetter>,
}

/// One instance or mailbox.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InstanceSnapshot {
    /// Its id.
    pub instance: String,
    /// Its orchestration name; `None` for a mailbox.
    pub name: Option<String>,
    /// Its handler version.
    pub version: Option<String>,
    /// The id of the parent; `None` for a root.
    pub parent: Option<String>,
    /// The current execution.
    pub execution_id: u64,
    /// The instance lock, live or not.
    pub lock: Option<LockSnapshot>,
    /// The custom status and its version.
    pub custom_status: Option<(Option<String>, u64)>,
    /// Executions, ascending.
    pub executions: Vec<ExecutionSnapshot>,
    /// Messages, by due time, then by number.
    pub messages: Vec<MessageSnapshot>,
    /// Activities, lowest first.
    pub activities: Vec<ActivitySnapshot>,
    /// The key-value state left by earlier executions.
    pub kv: BTreeMap<String, KvEntry>,
    /// The key-value changes of the current execution; `None` marks a removed key.
    pub kv_changes: BTreeMap<String, Option<KvEntry>>,
}

/// A lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockSnapshot {
    /// The token of the lock's holder.
    pub token: String,
    /// When its lease ends.
    pub until: Timestamp,
}

impl From<&Lease> for LockSnapshot {
    fn from(lease: &Lease) -> Self {
        Self { token: lease.token.clone(), until: lease.until }
    }
}

/// One execution.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExecutionSnapshot {
    /// Its number.
    pub execution_id: u64,
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`.
    pub status: String,
    /// The result or the error; `None` while it runs.
    pub output: Option<String>,
    /// The pinned version.
    pub pinned: Option<VersionTriple>,
    /// Rounds committed.
    pub turns: u64,
    /// Its events, in order.
    pub events: Vec<EventRow>,
}

/// One queued message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSnapshot {
    /// When it becomes visible by itself; 0 = at once.
    pub due_at_ms: u64,
    /// Until when an abandon hides it; 0 = not hidden.
    pub hidden_until: Timestamp,
    /// How often it was fetched.
    pub attempt_count: u32,
    /// Whether the instance lock holds it.
    pub locked: bool,
    /// Its idempotency key.
    pub key: Option<String>,
    /// Its JSON.
    pub data: String,
}

/// One queued activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivitySnapshot {
    /// The execution that scheduled it.
    pub execution_id: u64,
    /// The event id of the schedule.
    pub activity_id: u64,
    /// Until when an abandon hides it; 0 = not hidden.
    pub hidden_until: Timestamp,
    /// How often it was fetched.
    pub attempt_count: u32,
    /// Whether it was ever claimed.
    pub claimed: bool,
    /// Whether it was asked to stop.
    pub stop_requested: bool,
    /// Its lock, live or not.
    pub lock: Option<LockSnapshot>,
    /// Its JSON.
    pub data: String,
}
