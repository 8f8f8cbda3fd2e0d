//! The worker queue: which activities this node takes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use duroxide_core::WorkItem;
use duroxide_provider::{
    ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, WorkClaim, WorkFetch,
};

use super::{
    activity::ActivityWork,
    guarded,
    held::LockKind,
    node::Node,
    plan::Wanted,
    quarantine::Suspect,
    queue::{Seat, WorkQueue},
    running::RunningActivity,
};
use crate::env::{BoxFuture, Moment, lock};

/// How long a fetch waits that leaves sessions out, because the node has as many as it may: one of them may end
/// meanwhile.
const SESSION_RECHECK: Duration = Duration::from_millis(500);

pub(crate) struct Activities {
    node: Arc<Node>,
    sessions: Arc<SessionsInFlight>,
}

impl Activities {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, sessions: Arc::default() }
    }

    /// How session activities are taken: not at all while the node has as many sessions as it may.
    fn session_config(&self, slot: Option<usize>) -> Option<SessionFetchConfig> {
        let options = &self.node.options;
        (self.sessions.count() < options.max_sessions_per_runtime).then(|| SessionFetchConfig {
            owner_id: session_owner(&self.node, slot),
            lock_timeout: options.session_lock_timeout,
        })
    }
}

/// The id of a worker slot.
pub(crate) fn worker_id(node: &Node, slot: usize) -> String {
    let id = node.options.worker_node_id.as_deref().unwrap_or(&node.id);
    format!("work-{slot}-{id}")
}

/// Who owns a session: the node if it has a name of its own, else the slot (semantics 13.1).
pub(crate) fn session_owner(node: &Node, slot: Option<usize>) -> String {
    match (&node.options.worker_node_id, slot) {
        (Some(name), _) => name.clone(),
        (None, Some(slot)) => worker_id(node, slot),
        (None, None) => node.id.clone(),
    }
}

/// All owners of this node's sessions.
pub(crate) fn session_owners(node: &Node) -> Vec<String> {
    match &node.options.worker_node_id {
        Some(name) => vec![name.clone()],
        None => (0..node.options.worker_concurrency).map(|slot| session_owner(node, Some(slot))).collect(),
    }
}

/// A locked activity that this node can be told to cancel.
pub(crate) struct ClaimedActivity {
    pub claim: WorkClaim,
    /// `None` for an item that is no activity.
    pub running: Option<RunningActivity>,
    /// Given if it failed repeatedly.
    pub suspect: Option<Suspect>,
}

impl ClaimedActivity {
    fn new(node: &Node, claim: WorkClaim) -> Self {
        let running = match &claim.item {
            WorkItem::ActivityExecute { instance, execution_id, id, .. } => {
                Some(node.running.enter(&ScheduledActivityIdentifier {
                    instance: instance.clone(),
                    execution_id: *execution_id,
                    activity_id: *id,
                }))
            }
            _ => None,
        };
        let suspect = node.quarantine.hold(claim.attempt_count, node.options.max_attempts);
        Self { claim, running, suspect }
    }
}

impl WorkQueue for Activities {
    type Claim = ClaimedActivity;

    fn node(&self) -> &Arc<Node> {
        &self.node
    }

    fn name(&self) -> &'static str {
        "worker"
    }

    fn slots(&self) -> usize {
        self.node.options.worker_concurrency
    }

    /// Where slots own sessions, each needs a fetch of its own.
    fn fetches_per_slot(&self) -> bool {
        !self.node.store.serves_batches() || self.node.options.worker_node_id.is_none()
    }

    fn fetch(
        &self,
        slot: Option<usize>,
        wanted: Wanted,
    ) -> BoxFuture<Result<Vec<ClaimedActivity>, ProviderError>> {
        let node = Arc::clone(&self.node);
        let session = self.session_config(slot);
        Box::pin(async move {
            let options = &node.options;
            let long_poll = options.dispatcher_long_poll_timeout;
            let poll_timeout = if session.is_some() { long_poll } else { long_poll.min(SESSION_RECHECK) };
            let request =
                WorkFetch::new(options.worker_lock_timeout, poll_timeout, &options.worker_tag_filter)
                    .with_session(session.as_ref())
                    .with_handlers(node.capability.as_ref())
                    .with_max(wanted.max, wanted.free)
                    .with_node(node.membership.node());
            let claims = guarded("fetch_work_items", node.store.fetch_work_items(&request)).await?;
            Ok(claims.into_iter().map(|claim| ClaimedActivity::new(&node, claim)).collect())
        })
    }

    fn receive(&self, claimed: &ClaimedActivity) {
        self.node.held.hold(&claimed.claim.lock_token, LockKind::Activity);
        self.node.metrics.record_worker_dispatcher_items_fetched(1);
    }

    fn bound_to(&self, claimed: &ClaimedActivity, fetched_for: Option<usize>) -> Option<usize> {
        session_of(&claimed.claim.item)
            .and(fetched_for)
            .filter(|_| self.node.options.worker_node_id.is_none())
    }

    fn renewal_interval(&self) -> Duration {
        self.node.lease_terms(LockKind::Activity).interval
    }

    fn run(&self, claimed: ClaimedActivity, received: Moment, seat: Seat) -> BoxFuture {
        /// How long an item rests whose session would be one too many (semantics 13.3).
        const SESSION_RACE_DELAY: Duration = Duration::from_millis(100);
        let node = Arc::clone(&self.node);
        let in_flight =
            self.sessions.enter(session_of(&claimed.claim.item), node.options.max_sessions_per_runtime);
        Box::pin(async move {
            let Some(_in_flight) = in_flight else {
                let delay = Some(SESSION_RACE_DELAY);
                return node.abandon(LockKind::Activity, &claimed.claim.lock_token, delay, true).await;
            };
            ActivityWork::new(node, claimed, received, seat).run().await;
        })
    }

    fn release(&self, claimed: ClaimedActivity) -> BoxFuture {
        let node = Arc::clone(&self.node);
        Box::pin(async move {
            node.abandon(LockKind::Activity, &claimed.claim.lock_token, None, true).await;
        })
    }
}

fn session_of(item: &WorkItem) -> Option<&str> {
    match item {
        WorkItem::ActivityExecute { session_id, .. } => session_id.as_deref(),
        _ => None,
    }
}

/// The sessions whose activities run here, each with how many of them.
#[derive(Debug, Default)]
struct SessionsInFlight {
    running: Mutex<HashMap<String, usize>>,
}

impl SessionsInFlight {
    fn count(&self) -> usize {
        lock(&self.running).len()
    }

    /// Enters an activity; `None` if its session would be one too many.
    fn enter(self: &Arc<Self>, session: Option<&str>, max: usize) -> Option<InFlight> {
        if let Some(session) = session {
            let mut running = lock(&self.running);
            if running.len() >= max && !running.contains_key(session) {
                return None;
            }
            *running.entry(session.to_owned()).or_default() += 1;
        }
        Some(InFlight { sessions: Arc::clone(self), session: session.map(str::to_owned) })
    }
}

struct InFlight {
    sessions: Arc<SessionsInFlight>,
    session: Option<String>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Some(session) = &self.session else { return };
        let mut running = lock(&self.sessions.running);
        if let Some(count) = running.get_mut(session) {
            *count -= 1;
            if *count == 0 {
                running.remove(session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 13.3
    #[test]
    fn no_more_distinct_sessions_run_than_allowed() {
        let sessions = Arc::new(SessionsInFlight::default());
        let first = sessions.enter(Some("a"), 1);
        assert!(first.is_some());
        assert!(sessions.enter(Some("a"), 1).is_some(), "the same session is not one more");
        assert!(sessions.enter(None, 1).is_some(), "no session needs no room");
        assert!(sessions.enter(Some("b"), 1).is_none());
        drop(first);
        assert!(sessions.enter(Some("b"), 1).is_some());
    }
}
