//! The worker queue: fetches activities and runs them.

use std::{future::Future, sync::Arc, time::Duration};

use duroxide_core::WorkItem;
use duroxide_provider::{
    Demand, ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, Wanted, WorkClaim, WorkFetch,
};

use super::{
    Started, WorkQueue,
    sessions::{InFlight, SessionOwners, SessionsInFlight},
    slots::Slots,
};
use crate::{
    dispatch::{
        activity::{ActivityWork, RunningActivity},
        locks::LockKind,
        node::Node,
        provider_call,
        quarantine::{ClaimRecord, Suspect},
    },
    env::BoxFuture,
};

/// The poll timeout of a fetch without sessions, used while the node runs as many sessions as it may. One of them may
/// end meanwhile.
const SESSION_RECHECK: Duration = Duration::from_millis(500);

pub(crate) struct Activities {
    node: Arc<Node>,
    sessions: Arc<SessionsInFlight>,
    owners: SessionOwners,
}

impl Activities {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, sessions: Arc::default(), owners: SessionOwners::default() }
    }

    /// Whether every slot may run the activities of every session of the node.
    fn slots_share_sessions(&self) -> bool {
        self.node.options.worker_node_id.is_some()
    }

    fn is_full_of_sessions(&self) -> bool {
        self.sessions.count() >= self.node.options.max_sessions_per_runtime
    }

    /// The session part of a fetch. `None` while the node runs as many sessions as it may, and for the shared fetch of
    /// slots that own their sessions separately.
    fn session_config(&self, slot: Option<usize>) -> Option<SessionFetchConfig> {
        // Slots that share their sessions all have the same owner id.
        let slot = slot.or(self.slots_share_sessions().then_some(0))?;
        (!self.is_full_of_sessions()).then(|| SessionFetchConfig {
            owner_id: session_owner(&self.node, slot),
            lock_timeout: self.node.options.session_lock_timeout,
        })
    }
}

pub(crate) fn worker_id(node: &Node, slot: usize) -> String {
    let id = node.options.worker_node_id.as_deref().unwrap_or(&node.id);
    format!("work-{slot}-{id}")
}

/// The owner id of a slot's sessions: the configured node id, else the worker id of the slot (13.1).
fn session_owner(node: &Node, slot: usize) -> String {
    node.options.worker_node_id.clone().unwrap_or_else(|| worker_id(node, slot))
}

pub(crate) fn session_owners(node: &Node) -> Vec<String> {
    match &node.options.worker_node_id {
        Some(name) => vec![name.clone()],
        None => (0..node.options.worker_concurrency).map(|slot| session_owner(node, slot)).collect(),
    }
}

/// A claimed activity.
pub(crate) struct ClaimedActivity {
    pub claim: WorkClaim,
    /// `None` for an item that is not an activity.
    pub running: Option<RunningActivity>,
    /// Present if earlier claims of the item were lost repeatedly.
    pub suspect: Option<Suspect>,
    /// Set when the item starts; `None` if its session would be one too many.
    pub in_session: Option<InFlight>,
}

impl ClaimedActivity {
    pub(crate) fn new(node: &Node, claim: WorkClaim) -> Self {
        let running = if let WorkItem::ActivityExecute { instance, execution_id, id, .. } = &claim.item {
            Some(node.running.enter(&ScheduledActivityIdentifier {
                instance: instance.clone(),
                execution_id: *execution_id,
                activity_id: *id,
            }))
        } else {
            None
        };
        let record = ClaimRecord {
            kind: LockKind::Activity,
            attempt_count: claim.attempt_count,
            max_attempts: node.options.max_attempts,
            losses: claim.losses,
            slots: node.options.worker_concurrency,
        };
        let suspect = node.quarantine.register(&claim.lock_token, record);
        Self { claim, running, suspect, in_session: None }
    }
}

impl WorkQueue for Activities {
    type Claim = ClaimedActivity;

    const NAME: &'static str = "worker";
    const LOCK: LockKind = LockKind::Activity;

    fn lock_token(claimed: &ClaimedActivity) -> &str {
        &claimed.claim.lock_token
    }

    fn node(&self) -> &Arc<Node> {
        &self.node
    }

    fn slots(&self) -> usize {
        self.node.options.worker_concurrency
    }

    /// Only the slots bound how many activities run at once.
    fn extra_slots(&self) -> usize {
        0
    }

    fn has_shared_fetch(&self) -> bool {
        self.node.store.serves_batches() && (self.slots_share_sessions() || self.slots() > 1)
    }

    /// Slots that own sessions need a fetch of their own, and one more slot searches sessions without an owner.
    fn slots_with_own_fetch(&self, slots: &Slots) -> Vec<usize> {
        if !self.has_shared_fetch() {
            return slots.free_ids().collect();
        }
        if self.slots_share_sessions() || self.is_full_of_sessions() {
            return Vec::new();
        }
        let mut own = self.owners.may_own(self.node.env.moment());
        own.extend(self.owners.session_finder(slots));
        own.into_iter().filter(|slot| slots.is_free(*slot)).collect()
    }

    fn lacks_own_fetch(&self, slots: &Slots) -> bool {
        if !self.has_shared_fetch() {
            return true;
        }
        let has_own = !self.slots_share_sessions() && !self.is_full_of_sessions();
        has_own && self.owners.lack_fetch(slots, self.node.env.moment())
    }

    fn changed(&self) -> impl Future<Output = ()> + Send {
        self.sessions.ended()
    }

    fn fetch(
        &self,
        slot: Option<usize>,
        wanted: Wanted,
        demand: Option<Arc<dyn Demand>>,
    ) -> BoxFuture<Result<Vec<ClaimedActivity>, ProviderError>> {
        let node = Arc::clone(&self.node);
        let session = self.session_config(slot);
        let rechecks = self.is_full_of_sessions();
        Box::pin(async move {
            let options = &node.options;
            let long_poll = options.dispatcher_long_poll_timeout;
            let poll_timeout = if rechecks { long_poll.min(SESSION_RECHECK) } else { long_poll };
            let request =
                WorkFetch::new(options.worker_lock_timeout, poll_timeout, &options.worker_tag_filter)
                    .with_session(session.as_ref())
                    .with_handlers(node.capability.as_ref())
                    .with_max(wanted.max, wanted.free_slots)
                    .with_demand(demand)
                    .with_node(node.membership.node());
            let claims = provider_call("fetch_work_items", node.store.fetch_work_items(&request)).await?;
            Ok(claims.into_iter().map(|claim| ClaimedActivity::new(&node, claim)).collect())
        })
    }

    fn receive(&self, claimed: &ClaimedActivity, fetched_for: Option<usize>) -> Option<usize> {
        self.node.metrics.record_worker_dispatcher_items_fetched(1);
        session_of(&claimed.claim.item)?;
        self.node.has_sessions.cancel();
        let slot = fetched_for.filter(|_| !self.slots_share_sessions())?;
        let options = &self.node.options;
        let kept_for = options.session_idle_timeout.saturating_add(options.session_lock_timeout);
        self.owners.note(slot, self.node.env.moment().after(kept_for));
        Some(slot)
    }

    fn start(&self, claimed: &mut ClaimedActivity) {
        let session = session_of(&claimed.claim.item);
        claimed.in_session = self.sessions.enter(session, self.node.options.max_sessions_per_runtime);
    }

    fn process(
        self: Arc<Self>,
        started: Started<ClaimedActivity>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let Started { claim, received, slot } = started;
        ActivityWork::new(Arc::clone(&self.node), claim, received, slot).process()
    }
}

fn session_of(item: &WorkItem) -> Option<&str> {
    let WorkItem::ActivityExecute { session_id, .. } = item else { return None };
    session_id.as_deref()
}
