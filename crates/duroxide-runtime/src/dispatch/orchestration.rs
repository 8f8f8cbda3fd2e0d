//! The orchestrator queue: which instances this node takes.

use std::{sync::Arc, time::Duration};

use duroxide_provider::{OrchestrationClaim, OrchestrationFetch, ProviderError};

use super::{
    guarded,
    held::LockKind,
    node::Node,
    plan::Wanted,
    queue::{Seat, WorkQueue},
    turn::InstanceWork,
};
use crate::env::{BoxFuture, Moment};

pub(crate) struct Orchestrations {
    node: Arc<Node>,
}

impl Orchestrations {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node }
    }
}

impl WorkQueue for Orchestrations {
    type Claim = OrchestrationClaim;

    fn node(&self) -> &Arc<Node> {
        &self.node
    }

    fn name(&self) -> &'static str {
        "orchestrator"
    }

    fn slots(&self) -> usize {
        self.node.options.orchestration_concurrency
    }

    fn fetches_per_slot(&self) -> bool {
        !self.node.store.serves_batches()
    }

    fn fetch(
        &self,
        _slot: Option<usize>,
        wanted: Wanted,
    ) -> BoxFuture<Result<Vec<OrchestrationClaim>, ProviderError>> {
        let node = Arc::clone(&self.node);
        Box::pin(async move {
            let options = &node.options;
            let request = OrchestrationFetch::new(
                options.orchestrator_lock_timeout,
                options.dispatcher_long_poll_timeout,
            )
            .with_filter(Some(&node.filter))
            .with_handlers(node.capability.as_ref())
            .with_max(wanted.max, wanted.free);
            guarded("fetch_orchestration_items", node.store.fetch_orchestration_items(&request)).await
        })
    }

    fn receive(&self, claim: &OrchestrationClaim) {
        self.node.held.hold(&claim.lock_token, LockKind::Instance);
        self.node.metrics.record_orch_dispatcher_items_fetched(1);
    }

    fn bound_to(&self, _claim: &OrchestrationClaim, _fetched_for: Option<usize>) -> Option<usize> {
        None
    }

    fn renewal_interval(&self) -> Duration {
        self.node.lease_terms(LockKind::Instance).interval
    }

    fn run(&self, claim: OrchestrationClaim, received: Moment, seat: Seat) -> BoxFuture {
        Box::pin(InstanceWork::new(Arc::clone(&self.node), claim, received, seat).run())
    }

    fn release(&self, claim: OrchestrationClaim) -> BoxFuture {
        let node = Arc::clone(&self.node);
        Box::pin(async move { node.abandon(LockKind::Instance, &claim.lock_token, None, true).await })
    }
}
