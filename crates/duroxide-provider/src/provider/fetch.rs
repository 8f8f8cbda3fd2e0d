//! Batch fetches: one request, several claims.

use std::{collections::HashMap, fmt::Debug, sync::Arc, time::Duration};

use duroxide_core::{Event, KvEntry, WorkItem};
use serde::{Deserialize, Serialize};

use crate::{
    DispatcherCapabilityFilter, HandlerCapability, NodeId, OrchestrationItem, ScheduledActivityIdentifier,
    SessionFetchConfig, TagFilter,
};

/// How many items a fetch asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The maximum number of items.
    pub max: usize,
    /// How many of them can start at once; see [`OrchestrationFetch::free_slots`].
    pub free_slots: usize,
}

/// How many items a caller wants while its fetch waits. A store that lets fetches wait asks for it when it serves the
/// fetch: slots may have become free or busy since the fetch was made.
pub trait Demand: Debug + Send + Sync {
    /// The number of items wanted now. With zero the fetch keeps waiting.
    fn wanted(&self) -> Wanted;

    /// Registers a callback for when demand rises above the last answer, so that the store serves the fetch again.
    fn on_rise(&self, tell: TellOfDemand);
}

/// Called by a [`Demand`] when it rises.
pub type TellOfDemand = Arc<dyn Fn() + Send + Sync>;

/// A request for orchestration work.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OrchestrationFetch<'a> {
    /// For how long each claimed instance is locked.
    pub lock_timeout: Duration,
    /// How long the call may wait for work.
    pub poll_timeout: Duration,
    /// Which pinned versions the node can replay; `None` passes everything.
    pub filter: Option<&'a DispatcherCapabilityFilter>,
    /// Which handlers the node has; `None` passes everything.
    pub handlers: Option<&'a HandlerCapability>,
    /// How many instances to claim at most.
    pub max: usize,
    /// How many of them can start at once. The rest is asked for ahead, and a claim made ahead must not hold
    /// messages that were attempted before: a crash counts an attempt for everything claimed, so fetching ahead
    /// would spread poison over healthy work.
    pub free_slots: usize,
    /// Asked again for both numbers when the fetch is served after a wait.
    pub demand: Option<Arc<dyn Demand>>,
    /// The node that claims, if it has joined; see [`Provider::join_node`](crate::Provider::join_node).
    pub node: Option<NodeId>,
    /// Only this instance, regardless of the filters: to end an instance that no node can run. A provider that knows
    /// nodes checks, in the transaction of the claim, that none of them can take it.
    pub only: Option<&'a str>,
}

impl<'a> OrchestrationFetch<'a> {
    /// A request for one instance, without filters.
    pub fn new(lock_timeout: Duration, poll_timeout: Duration) -> Self {
        Self {
            lock_timeout,
            poll_timeout,
            filter: None,
            handlers: None,
            max: 1,
            free_slots: 1,
            demand: None,
            node: None,
            only: None,
        }
    }

    /// Passes only executions this filter accepts.
    #[must_use]
    pub fn with_filter(mut self, filter: Option<&'a DispatcherCapabilityFilter>) -> Self {
        self.filter = filter;
        self
    }

    /// Passes only items that these handlers can run.
    #[must_use]
    pub fn with_handlers(mut self, handlers: Option<&'a HandlerCapability>) -> Self {
        self.handlers = handlers;
        self
    }

    /// Asks for up to `max` instances, of which `free_slots` can start at once.
    #[must_use]
    pub fn with_max(mut self, max: usize, free_slots: usize) -> Self {
        self.max = max;
        self.free_slots = free_slots;
        self
    }

    /// Reads the wanted number from `demand` when the fetch is served.
    #[must_use]
    pub fn with_demand(mut self, demand: Option<Arc<dyn Demand>>) -> Self {
        self.demand = demand;
        self
    }

    /// Claims only this instance, regardless of the filters.
    #[must_use]
    pub fn with_only(mut self, only: &'a str) -> Self {
        self.only = Some(only);
        self
    }

    /// Claims for this node.
    #[must_use]
    pub fn with_node(mut self, node: Option<NodeId>) -> Self {
        self.node = node;
        self
    }
}

/// A request for activities.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkFetch<'a> {
    /// For how long each claimed activity is locked.
    pub lock_timeout: Duration,
    /// How long the call may wait for work.
    pub poll_timeout: Duration,
    /// How session activities are taken; `None` takes only activities without a session.
    pub session: Option<&'a SessionFetchConfig>,
    /// Which tags are taken.
    pub tag_filter: &'a TagFilter,
    /// Which handlers the node has; `None` passes everything.
    pub handlers: Option<&'a HandlerCapability>,
    /// How many activities to claim at most.
    pub max: usize,
    /// How many of them can start at once; see [`OrchestrationFetch::free_slots`].
    pub free_slots: usize,
    /// Asked again for both numbers when the fetch is served after a wait.
    pub demand: Option<Arc<dyn Demand>>,
    /// The node that claims, if it has joined; see [`Provider::join_node`](crate::Provider::join_node).
    pub node: Option<NodeId>,
    /// Only this activity, regardless of tags, handlers and sessions: to end an activity that no node can run; see
    /// [`OrchestrationFetch::only`].
    pub only: Option<&'a ScheduledActivityIdentifier>,
}

impl<'a> WorkFetch<'a> {
    /// A request for one activity, without session.
    pub fn new(lock_timeout: Duration, poll_timeout: Duration, tag_filter: &'a TagFilter) -> Self {
        Self {
            lock_timeout,
            poll_timeout,
            session: None,
            tag_filter,
            handlers: None,
            max: 1,
            free_slots: 1,
            demand: None,
            node: None,
            only: None,
        }
    }

    /// Takes session activities too.
    #[must_use]
    pub fn with_session(mut self, session: Option<&'a SessionFetchConfig>) -> Self {
        self.session = session;
        self
    }

    /// Passes only items that these handlers can run.
    #[must_use]
    pub fn with_handlers(mut self, handlers: Option<&'a HandlerCapability>) -> Self {
        self.handlers = handlers;
        self
    }

    /// Asks for up to `max` activities, of which `free_slots` can start at once.
    #[must_use]
    pub fn with_max(mut self, max: usize, free_slots: usize) -> Self {
        self.max = max;
        self.free_slots = free_slots;
        self
    }

    /// Reads the wanted number from `demand` when the fetch is served.
    #[must_use]
    pub fn with_demand(mut self, demand: Option<Arc<dyn Demand>>) -> Self {
        self.demand = demand;
        self
    }

    /// Claims only this activity, regardless of the filters.
    #[must_use]
    pub fn with_only(mut self, only: &'a ScheduledActivityIdentifier) -> Self {
        self.only = Some(only);
        self
    }

    /// Claims for this node.
    #[must_use]
    pub fn with_node(mut self, node: Option<NodeId>) -> Self {
        self.node = node;
        self
    }
}

/// One locked instance with its messages.
#[derive(Debug, Clone)]
pub struct OrchestrationClaim {
    /// The id of the instance.
    pub instance: String,
    /// The registered name of the orchestration.
    pub orchestration_name: String,
    /// Its handler version; `unknown` if the start asked for none.
    pub version: String,
    /// Its current execution.
    pub execution_id: u64,
    /// The locked messages, in order.
    pub messages: Vec<WorkItem>,
    /// The right to commit or abandon.
    pub lock_token: String,
    /// The highest attempt count among the messages.
    pub attempt_count: u32,
    /// Earlier claims that ended without an answer; `None` if the provider does not distinguish them from counted
    /// abandons.
    pub losses: Option<Losses>,
    /// The stored position of the instance.
    pub position: Option<StorePosition>,
    /// History and key-value state, if the provider read them with the claim. Otherwise
    /// [`Provider::load_execution`](crate::Provider::load_execution) reads them, and only when they are needed.
    pub loaded: Option<LoadedExecution>,
}

/// The stored position of an instance. A cached execution is used only if it has the same position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorePosition {
    /// The instance row's number, never reused: an instance deleted and started again under the same id differs.
    pub incarnation: u64,
    /// The last stored event of the current execution; 0 if it has none.
    pub last_event_id: u64,
    /// Rounds committed to the current execution so far.
    pub turns: u64,
}

/// History and key-value state of an execution.
#[derive(Debug, Clone, Default)]
pub struct LoadedExecution {
    /// The history; with `history_error`, the events before the undecodable one.
    pub history: Vec<Event>,
    /// Why the history could not be decoded.
    pub history_error: Option<String>,
    /// The key-value state left by earlier executions.
    pub kv_snapshot: HashMap<String, KvEntry>,
}

/// One locked activity.
#[derive(Debug, Clone)]
pub struct WorkClaim {
    /// The activity.
    pub item: WorkItem,
    /// The right to ack or abandon.
    pub lock_token: String,
    /// How often it has been fetched.
    pub attempt_count: u32,
    /// Whether an earlier claim may have begun it. An attempt that was taken back counts too.
    pub claimed_before: bool,
    /// Whether it was asked to stop while an earlier claim held it; see [`ActivityStop`](crate::ActivityStop).
    pub stop_requested: bool,
    /// Earlier claims that ended without an answer; `None` if the provider does not distinguish them from counted
    /// abandons.
    pub losses: Option<Losses>,
    /// The number of the instance's row, as in [`StorePosition::incarnation`]; `None` if the provider does not know it.
    pub incarnation: Option<u64>,
}

/// The answer to the renewal of an activity's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RenewedWorkItem {
    /// Whether the activity was asked to stop; see [`ActivityStop`](crate::ActivityStop).
    pub stop_requested: bool,
}

impl RenewedWorkItem {
    /// A renewal with this answer.
    pub fn new(stop_requested: bool) -> Self {
        Self { stop_requested }
    }
}

/// How often a claim of an instance or activity ended without an answer, because its lease or its node ended. An abandon
/// is an answer; a commit sets both counts to zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Losses {
    /// Claims that were lost.
    pub lost: u32,
    /// How many of them were noted as just starting when their process ended, see
    /// [`NodeMembership::note_starting`](crate::NodeMembership::note_starting).
    pub blamed: u32,
}

impl Losses {
    /// The counts after a claim that follows another one, which left its lock behind if it was lost.
    #[must_use]
    pub fn claimed_again(self, was_lost: bool) -> Self {
        Self { lost: self.lost.saturating_add(u32::from(was_lost)), ..self }
    }

    /// The counts of a claim that is to blame for the end of its node. That it was lost is counted by the next claim.
    #[must_use]
    pub fn blamed_again(self) -> Self {
        Self { blamed: self.blamed.saturating_add(1), ..self }
    }

    /// The counts of another claim of that node, which gets its attempt back. The first blame may be wrong, so every
    /// claim of the node counts a loss; from the second on only the blamed one does.
    #[must_use]
    pub fn beside(self, blamed: Self) -> Self {
        self.claimed_again(blamed.blamed <= 1)
    }
}

impl From<(OrchestrationItem, String, u32)> for OrchestrationClaim {
    fn from((item, lock_token, attempt_count): (OrchestrationItem, String, u32)) -> Self {
        Self {
            instance: item.instance,
            orchestration_name: item.orchestration_name,
            version: item.version,
            execution_id: item.execution_id,
            messages: item.messages,
            lock_token,
            attempt_count,
            losses: None,
            position: None,
            loaded: Some(LoadedExecution {
                history: item.history,
                history_error: item.history_error,
                kv_snapshot: item.kv_snapshot,
            }),
        }
    }
}
