//! Metrics of the dispatch loops.

use metrics::{counter, histogram};

use super::MetricsProvider;

impl MetricsProvider {
    /// Orchestrator batches were fetched.
    pub fn record_orch_dispatcher_items_fetched(&self, count: u64) {
        counter!("duroxide_orchestration_dispatcher_items_fetched").increment(count);
        self.counters.orch_dispatcher_items_fetched.add(count);
    }

    /// The time of an orchestrator batch from fetch to commit.
    pub fn record_orch_dispatcher_processing_duration(&self, ms: u64) {
        histogram!("duroxide_orchestration_dispatcher_processing_duration_ms").record(ms as f64);
    }

    /// Activities were fetched.
    pub fn record_worker_dispatcher_items_fetched(&self, count: u64) {
        counter!("duroxide_worker_dispatcher_items_fetched").increment(count);
        self.counters.worker_dispatcher_items_fetched.add(count);
    }

    /// The time of an activity from fetch to ack.
    pub fn record_worker_dispatcher_execution_duration(&self, ms: u64) {
        histogram!("duroxide_worker_dispatcher_execution_duration_ms").record(ms as f64);
    }

    /// An orchestrator batch was abandoned because the node has no handler.
    pub fn record_unregistered_orchestration_backoff(&self) {
        counter!("duroxide_unregistered_orchestration_backoff_total").increment(1);
        self.counters.unregistered_orch_backoff.add(1);
    }

    /// An activity was abandoned because the node has no handler.
    pub fn record_unregistered_activity_backoff(&self) {
        counter!("duroxide_unregistered_activity_backoff_total").increment(1);
        self.counters.unregistered_activity_backoff.add(1);
    }

    /// A turn ran. `source` says where its execution came from: `new`, `cache` or `replay`.
    pub fn record_turn(&self, source: &'static str) {
        counter!("duroxide_turns_total", "source" => source).increment(1);
    }

    /// The lock of a claim ended before its work was committed, so the work runs again. `queue` is `orchestrator` or
    /// `worker`.
    pub fn record_lock_loss(&self, queue: &'static str) {
        counter!("duroxide_lock_losses_total", "queue" => queue).increment(1);
    }

    /// A replay of a turn differed from its live execution.
    pub fn record_audit_difference(&self) {
        counter!("duroxide_audit_differences_total").increment(1);
    }

    /// An execution was abandoned because this node cannot replay its version.
    pub fn record_incompatible_version_abandoned(&self) {
        counter!("duroxide_orchestration_incompatible_version_abandoned_total").increment(1);
        self.counters.incompatible_version_abandoned.add(1);
    }
}
