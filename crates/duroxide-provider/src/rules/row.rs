//! Rows as the rules see them.
//!
//! A set of tables stores these values under columns of the same names. `number` is the key of a row: numbers are drawn
//! from one sequence ([`Tables::next_number`](super::Tables::next_number)), give rows their order, and are never reused.

use std::{sync::Arc, time::Duration};

use duroxide_core::{INITIAL_EXECUTION_ID, Timestamp, WorkItem};
use serde::{Deserialize, Serialize};

use crate::{
    Losses, NodeId, VersionTriple,
    store::{ActivityRow, Arrival, MessageKind},
};

/// Status of an execution that has not ended.
pub const RUNNING: &str = "Running";
/// Status of an execution whose successor begins, or waits to begin.
pub const CONTINUED_AS_NEW: &str = "ContinuedAsNew";

/// An instance, or the mailbox of one that was never started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceRow {
    /// Its key. An instance that was deleted and started again has another number.
    pub number: u64,
    /// Its id.
    pub id: String,
    /// Whether it was ever started. Everything else is a mailbox.
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
    /// Whether it may be poison: a lease on it ended, or it was abandoned with the attempt counted.
    pub suspect: bool,
    /// Its lost claims.
    #[serde(default)]
    pub losses: Losses,
    /// What a claim must accept to take it. Kept while it waits, so that waking it costs no look-up. Keys of routes mean
    /// nothing outside their tables.
    #[serde(skip)]
    pub route: Option<RouteId>,
    /// Whether it can be claimed.
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
            suspect: false,
            losses: Losses::default(),
            route: None,
            readiness: Readiness::Waiting { until: None },
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

    /// Whether its current execution continued as new and the next one has not begun.
    pub fn waits_for_successor(&self) -> bool {
        self.status.as_deref() == Some(CONTINUED_AS_NEW)
    }

    /// Whether it was started and has not ended. An instance that waits for its successor has not ended.
    pub fn is_running(&self) -> bool {
        self.known && matches!(self.status.as_deref(), None | Some(RUNNING | CONTINUED_AS_NEW))
    }

    /// Its number among the ready instances, if it is ready or stray.
    pub fn ready_number(&self) -> Option<u64> {
        match self.readiness {
            Readiness::Ready { number } | Readiness::Stray { number, .. } => Some(number),
            Readiness::Waiting { .. } => None,
        }
    }
}

/// Whether an instance can be claimed. Decided by [`readiness`](super::readiness) alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Readiness {
    /// A claim that accepts its route takes it. Lower numbers go first.
    Ready {
        /// Its number in the order of readiness.
        number: u64,
    },
    /// Nobody can claim it. Somebody holds it, or nothing in its mailbox is visible.
    Waiting {
        /// When readiness has to be decided anew: a lease ends, or a message becomes visible or too old.
        until: Option<Timestamp>,
    },
    /// It was never started and holds queue messages only: the next claim makes dead letters of them.
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
    /// Its token.
    pub token: String,
    /// When it ends.
    pub until: Timestamp,
    /// Its length when it was given or last renewed.
    pub length: Duration,
    /// The node that holds it.
    pub node: Option<NodeId>,
}

impl Lease {
    /// Whether it has not ended.
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
    /// The messages with this mark: a part of what was visible.
    Marked {
        /// The mark.
        mark: u64,
    },
}

impl Extent {
    /// Whether a message of the mailbox is among those that the lock holds.
    pub fn holds(&self, message: &QueuedMessage) -> bool {
        match *self {
            Self::Visible { at, up_to } => {
                message.number <= up_to && message.due_at <= at && message.hidden_until <= at
            }
            Self::Marked { mark } => message.mark == Some(mark),
        }
    }
}

/// What the filter of an instance claim looks at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Route {
    /// The orchestration, as far as it is known.
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
    /// Its status.
    pub status: String,
    /// Its output.
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
}

/// An instance with its current execution. An instance that never ran a turn has none.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The instance.
    pub row: InstanceRow,
    /// Its current execution.
    pub execution: Option<ExecutionRow>,
}

/// A message in the mailbox of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedMessage {
    /// Its key. Messages are numbered in the order of their arrival.
    pub number: u64,
    /// When it becomes visible by itself; zero if it was visible at once. A clock that is set back must not hide it.
    pub due_at: Timestamp,
    /// What the store knows of its kind.
    pub kind: MessageKind,
    /// Its idempotency key.
    pub key: Option<String>,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// Until when an abandon hides it; zero if none did.
    pub hidden_until: Timestamp,
    /// How often it was claimed, without the claim whose lock is still there.
    pub attempts: u32,
    /// The mark of an [`Extent::Marked`].
    pub mark: Option<u64>,
    /// Its JSON. Empty if `item` is there and the tables keep the JSON elsewhere.
    pub data: String,
    /// What the JSON says, if that is at hand.
    #[serde(skip)]
    pub item: Option<Arc<WorkItem>>,
}

impl QueuedMessage {
    /// Where it stands in its mailbox: by due time, then by number.
    pub fn position(&self) -> (Timestamp, u64) {
        (self.due_at, self.number)
    }

    /// When it was enqueued or became due, whichever is later.
    pub fn waits_since(&self) -> Timestamp {
        self.enqueued_at.max(self.due_at)
    }

    /// What its place among the messages of a batch depends on.
    pub fn arrival(&self) -> Arrival {
        Arrival { number: self.number, enqueued_at: self.enqueued_at, due_at: self.due_at }
    }

    /// Whether it can begin an execution.
    pub fn is_start(&self) -> bool {
        is_start(self.kind)
    }
}

/// Whether a message of this kind can begin an execution.
pub const fn is_start(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Start | MessageKind::ContinueAsNew)
}

/// Messages that a claim may take.
#[derive(Debug, Clone, Default)]
pub struct VisibleMessages {
    /// The messages, by position.
    pub messages: Vec<QueuedMessage>,
    /// Whether these are all messages that have become due and are not hidden: no bound left one out, and no queue
    /// message waits behind a hidden one.
    pub are_all: bool,
}

/// How much of a mailbox a claim looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchBound {
    /// Messages, at most.
    pub messages: usize,
    /// Bytes of JSON, at most; the first message is always taken.
    pub bytes: usize,
}

/// An activity in the worker queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedActivity {
    /// Its key. Lower numbers are claimed first.
    pub number: u64,
    /// The instance that scheduled it.
    pub instance: u64,
    /// Its execution.
    pub execution_id: u64,
    /// The event id of the schedule.
    pub activity_id: u64,
    /// What a claim must accept to take it. Keys of lanes mean nothing outside their tables.
    #[serde(skip)]
    pub lane: LaneId,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// Until when an abandon hides it; zero if none did.
    pub hidden_until: Timestamp,
    /// The lock of the last claim, live or not.
    pub lock: Option<Lease>,
    /// How often it was claimed.
    pub attempts: u32,
    /// Whether anybody may have begun it. An attempt that was taken back says nothing of that.
    pub claimed: bool,
    /// Whether it was asked to stop.
    pub stop_requested: bool,
    /// Its lost claims.
    pub losses: Losses,
    /// When it can be claimed; `None` if it can be claimed now.
    pub waits_until: Option<Timestamp>,
}

impl QueuedActivity {
    /// An activity that nobody has claimed.
    pub fn new(number: u64, instance: u64, lane: LaneId, prepared: &ActivityRow) -> Self {
        Self {
            number,
            instance,
            execution_id: prepared.execution_id,
            activity_id: prepared.activity_id,
            lane,
            session_id: prepared.session_id.clone(),
            hidden_until: Timestamp::ZERO,
            lock: None,
            attempts: 0,
            claimed: false,
            stop_requested: false,
            losses: Losses::default(),
            waits_until: None,
        }
    }

    /// Whether a live lease holds it.
    pub fn is_locked(&self, at: Timestamp) -> bool {
        self.lock.as_ref().is_some_and(|lease| lease.is_live(at))
    }
}

/// What the filter of an activity claim looks at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Lane {
    /// The routing tag.
    pub tag: Option<String>,
    /// The activity's name.
    pub name: String,
}

/// The key of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LaneId(pub u64);

/// A session: its activities go to one owner at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: String,
    /// Who holds it.
    pub owner: String,
    /// When its lease ends.
    pub until: Timestamp,
    /// The length of its lease when it was given or last renewed.
    pub length: Duration,
    /// When one of its activities was last claimed, renewed or acknowledged.
    pub last_activity_at: Timestamp,
}

/// A message or activity that nobody could process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterRow {
    /// The instance it was for.
    pub instance_id: Option<String>,
    /// Its JSON.
    pub payload: String,
    /// Why nobody could process it.
    pub reason: String,
    /// How often it was claimed.
    pub attempts: u32,
    /// When it became a dead letter.
    pub dead_lettered_at: Timestamp,
    /// Where it came from, and goes back to.
    pub origin: Origin,
}

/// What a dead letter was in its queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// A message to an instance.
    Message {
        /// Its kind.
        kind: MessageKind,
        /// Its idempotency key.
        key: Option<String>,
    },
    /// An activity.
    Activity {
        /// Its execution.
        execution_id: u64,
        /// The event id of the schedule.
        activity_id: u64,
        /// Its lane.
        #[serde(skip)]
        lane: LaneId,
        /// Its session.
        session_id: Option<String>,
    },
}

/// Rows of a deleted instance or a pruned execution that are still to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removal {
    /// Its key.
    pub number: u64,
    /// The instance that is gone.
    pub instance: u64,
    /// Only this execution of it.
    pub execution_id: Option<u64>,
}

/// An execution as pruning sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionAge {
    /// Its number.
    pub execution_id: u64,
    /// Its status.
    pub status: String,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
}
