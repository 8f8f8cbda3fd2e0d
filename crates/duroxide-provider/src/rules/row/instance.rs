//! Instances, their locks and executions.

use std::time::Duration;

use duroxide_core::{INITIAL_EXECUTION_ID, Timestamp};
use serde::{Deserialize, Serialize};

use super::QueuedMessage;
use crate::{Losses, NodeId, VersionTriple};

/// Status of an execution that has not ended.
pub const RUNNING: &str = "Running";
/// Status of an execution whose successor begins, or waits to begin.
pub const CONTINUED_AS_NEW: &str = "ContinuedAsNew";

/// Whether an execution with this status has ended.
pub fn is_end_of_execution(status: &str) -> bool {
    status != RUNNING
}

/// Whether an instance has ended whose current execution has this status. One that continued as new goes on with its successor.
pub fn is_end_of_instance(status: &str) -> bool {
    is_end_of_execution(status) && status != CONTINUED_AS_NEW
}

/// An instance, or the mailbox of one that was never started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceRow {
    /// Its key. An instance that was deleted and started again has another number.
    pub number: u64,
    /// The id, unique among all instances of the store.
    pub id: String,
    /// Whether the instance was ever started. Every other row is a mailbox.
    pub known: bool,
    /// Its orchestration name.
    pub name: Option<String>,
    /// Its handler version.
    pub version: Option<String>,
    /// The instance that started it as a child.
    pub parent: Option<String>,
    /// The status of the current execution.
    pub status: Option<String>,
    /// The current execution.
    pub execution_id: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When a round last changed it.
    pub updated_at: Timestamp,
    /// The lock of the last claim. It stays after its lease ended, until the next claim.
    pub lock: Option<InstanceLock>,
    /// Whether the instance may be poison: a lease on it ended, or it was abandoned with the attempt counted.
    pub may_be_poison: bool,
    /// Its lost claims.
    #[serde(default)]
    pub losses: Losses,
    /// The route, which a claim must accept to take the instance. Kept while the instance waits, so that waking it costs no
    /// lookup. Keys of routes mean nothing outside their tables.
    #[serde(skip)]
    pub route: Option<RouteId>,
    /// Whether and when the instance can be claimed.
    pub readiness: Readiness,
}

impl InstanceRow {
    /// A mailbox that holds nothing yet.
    pub fn mailbox(number: u64, id: &str, now: Timestamp) -> Self {
        Self {
            number,
            id: id.to_owned(),
            known: false,
            name: None,
            version: None,
            parent: None,
            status: None,
            execution_id: INITIAL_EXECUTION_ID,
            created_at: now,
            updated_at: now,
            lock: None,
            may_be_poison: false,
            losses: Losses::default(),
            route: None,
            readiness: Readiness::waits_for_message(),
        }
    }

    /// Whether a live lease holds it.
    pub fn is_locked(&self, at: Timestamp) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.lease.is_live(at))
    }

    /// Whether this is the token of its lock, live or not.
    pub fn is_locked_by(&self, token: &str) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.lease.token == token)
    }

    /// Whether the current execution continued as new and the next one has not begun.
    pub fn waits_for_successor(&self) -> bool {
        self.status.as_deref() == Some(CONTINUED_AS_NEW)
    }

    /// Whether the instance was started and has not ended. An instance that waits for its successor has not ended.
    pub fn is_running(&self) -> bool {
        self.known && !self.status.as_deref().is_some_and(is_end_of_instance)
    }

    /// When readiness has to be decided anew.
    pub fn waits_until(&self) -> Option<Timestamp> {
        match self.readiness {
            Readiness::Waiting { until } | Readiness::Stray { until, .. } => until,
            Readiness::Ready { .. } => None,
        }
    }

    /// Its number among the ready instances, if it is ready or stray.
    pub fn ready_number(&self) -> Option<u64> {
        match self.readiness {
            Readiness::Ready { number } | Readiness::Stray { number, .. } => Some(number),
            Readiness::Waiting { .. } => None,
        }
    }
}

/// Whether an instance can be claimed. Decided in `rules/readiness.rs` alone; tables only store it and read it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Readiness {
    /// A claim that accepts its route takes it. Lower numbers go first.
    Ready {
        /// Its number in the order of readiness.
        number: u64,
    },
    /// The instance cannot be claimed: it is locked, or nothing in its mailbox is visible.
    Waiting {
        /// When readiness has to be decided anew: a lease ends, or a message becomes visible or too old.
        until: Option<Timestamp>,
    },
    /// The mailbox has no start and holds queue messages only: the next claim makes dead letters of them.
    Stray {
        /// Its number in the order of readiness.
        number: u64,
        /// When its oldest message is too old, or another one becomes visible.
        until: Option<Timestamp>,
    },
}

/// The lock of an instance, with the messages that its claim took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceLock {
    /// The lease.
    #[serde(flatten)]
    pub lease: Lease,
    /// The messages.
    pub extent: Extent,
}

/// The right to change one instance or run one activity, for a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The token of the lock's holder.
    pub token: String,
    /// When it ends.
    pub until: Timestamp,
    /// Its length when it was given or last renewed.
    pub length: Duration,
    /// The node that holds it.
    pub node: Option<NodeId>,
}

impl Lease {
    /// Whether the lease has not ended.
    pub fn is_live(&self, at: Timestamp) -> bool {
        at < self.until
    }
}

/// Which messages of its mailbox an instance lock holds.
///
/// Their attempt is counted when the lock ends by anything but a commit, so a claim that takes everything that is visible
/// writes no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Extent {
    /// Every message that was visible when the claim was made. Later messages have higher numbers.
    Visible {
        /// The time of the claim.
        at: Timestamp,
        /// The highest number among the messages that were taken.
        up_to: u64,
    },
    /// The messages with this mark: a part of the visible ones.
    Marked {
        /// The mark.
        mark: u64,
    },
}

impl Extent {
    /// Whether a message of the mailbox is among those that the lock holds.
    pub fn holds(&self, message: &QueuedMessage) -> bool {
        match *self {
            Self::Visible { at, up_to } => message.number <= up_to && message.is_visible(at),
            Self::Marked { mark } => message.mark == Some(mark),
        }
    }
}

/// The properties of an instance that a claim filters by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Route {
    /// The orchestration, if known.
    pub name: Option<String>,
    /// Its version, if one was asked for or recorded.
    pub version: Option<String>,
    /// The version it is pinned to.
    pub pinned: Option<VersionTriple>,
}

/// The key of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub u64);

/// One run of an instance, without its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionRow {
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`.
    pub status: String,
    /// The result or the error; `None` while it runs.
    pub output: Option<String>,
    /// The version it is pinned to.
    pub pinned: Option<VersionTriple>,
    /// The id of its last event; 0 if it has none.
    pub last_event_id: u64,
    /// Rounds committed.
    pub turns: u64,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
}

impl ExecutionRow {
    /// A run that begins now.
    pub fn begun(now: Timestamp) -> Self {
        Self {
            status: RUNNING.to_owned(),
            output: None,
            pinned: None,
            last_event_id: 0,
            turns: 0,
            started_at: now,
            completed_at: None,
        }
    }

    /// Whether the run has ended.
    pub fn has_ended(&self) -> bool {
        is_end_of_execution(&self.status)
    }
}

/// An instance with its current execution. An instance that never ran a turn has none.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The instance.
    pub row: InstanceRow,
    /// Its current execution.
    pub execution: Option<ExecutionRow>,
}
