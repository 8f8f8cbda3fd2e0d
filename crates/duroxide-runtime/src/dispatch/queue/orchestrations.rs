//! The orchestrator queue: fetches instances and runs their turns.

use std::{future::Future, sync::Arc};

use duroxide_provider::{Demand, OrchestrationClaim, OrchestrationFetch, ProviderError, Wanted};

use super::{Started, WorkQueue, slots::Slots};
use crate::{
    dispatch::{
        locks::LockKind,
        node::Node,
        provider_call,
        quarantine::{ClaimRecord, Suspect},
        turn::InstanceWork,
    },
    env::BoxFuture,
};

/// Slots of quick turns that wait for a turn thread. Enough to keep the threads busy until the dispatch loop runs again.
const EXTRA_SLOTS: usize = 64;

pub(crate) struct Orchestrations {
    node: Arc<Node>,
}

impl Orchestrations {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node }
    }
}

/// A claimed instance. The claim is boxed, because it moves through several queues.
pub(crate) struct ClaimedInstance {
    pub claim: Box<OrchestrationClaim>,
    /// Present if earlier claims of the instance were lost repeatedly.
    pub suspect: Option<Suspect>,
}

impl ClaimedInstance {
    pub(crate) fn new(node: &Node, claim: OrchestrationClaim) -> Self {
        let record = ClaimRecord {
            kind: LockKind::Instance,
            attempt_count: claim.attempt_count,
            max_attempts: node.options.max_attempts,
            losses: claim.losses,
            slots: node.options.orchestration_concurrency,
        };
        let suspect = node.quarantine.register(&claim.lock_token, record);
        Self { claim: Box::new(claim), suspect }
    }
}

impl WorkQueue for Orchestrations {
    type Claim = ClaimedInstance;

    const NAME: &'static str = "orchestrator";
    const LOCK: LockKind = LockKind::Instance;

    fn lock_token(claimed: &ClaimedInstance) -> &str {
        &claimed.claim.lock_token
    }

    fn node(&self) -> &Arc<Node> {
        &self.node
    }

    fn slots(&self) -> usize {
        self.node.options.orchestration_concurrency
    }

    /// There are as many turn threads as slots, so the threads bound how many turns run at once.
    fn extra_slots(&self) -> usize {
        EXTRA_SLOTS
    }

    fn has_shared_fetch(&self) -> bool {
        self.node.store.serves_batches()
    }

    fn slots_with_own_fetch(&self, slots: &Slots) -> Vec<usize> {
        if self.has_shared_fetch() { Vec::new() } else { slots.free_ids().collect() }
    }

    fn lacks_own_fetch(&self, _slots: &Slots) -> bool {
        !self.has_shared_fetch()
    }

    fn fetch(
        &self,
        _slot: Option<usize>,
        wanted: Wanted,
        demand: Option<Arc<dyn Demand>>,
    ) -> BoxFuture<Result<Vec<ClaimedInstance>, ProviderError>> {
        let node = Arc::clone(&self.node);
        Box::pin(async move {
            let options = &node.options;
            let request = OrchestrationFetch::new(
                options.orchestrator_lock_timeout,
                options.dispatcher_long_poll_timeout,
            )
            .with_filter(Some(&node.filter))
            .with_handlers(node.capability.as_ref())
            .with_max(wanted.max, wanted.free_slots)
            .with_demand(demand)
            .with_node(node.membership.node());
            let claims =
                provider_call("fetch_orchestration_items", node.store.fetch_orchestration_items(&request))
                    .await?;
            Ok(claims.into_iter().map(|claim| ClaimedInstance::new(&node, claim)).collect())
        })
    }

    fn receive(&self, _claimed: &ClaimedInstance, _fetched_for: Option<usize>) -> Option<usize> {
        self.node.metrics.record_orch_dispatcher_items_fetched(1);
        None
    }

    fn process(
        self: Arc<Self>,
        started: Started<ClaimedInstance>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let Started { claim, received, slot } = started;
        InstanceWork::new(Arc::clone(&self.node), claim, received, slot).process()
    }
}
