//! [`MetricsProvider`]: records every metric of the runtime, on the `metrics` facade and in the snapshot.

mod activity;
mod dispatch;
mod orchestration;
mod store;

use std::sync::atomic::{AtomicI64, AtomicU64};

use super::{MetricsSnapshot, ObservabilityConfig, snapshot::Counters};

/// Records metrics on the `metrics` facade and in a snapshot.
#[derive(Debug, Default)]
pub struct MetricsProvider {
    counters: Counters,
    active_orchestrations: AtomicI64,
    pending_orchestrations: AtomicU64,
    orchestrator_queue_depth: AtomicU64,
    worker_queue_depth: AtomicU64,
}

impl MetricsProvider {
    /// Recorders with all counters at 0.
    ///
    /// # Errors
    /// None today.
    pub fn new(config: &ObservabilityConfig) -> Result<Self, String> {
        let _ = config;
        Ok(Self::default())
    }

    /// The current values of the counters.
    pub fn snapshot(&self) -> MetricsSnapshot {
        self.counters.snapshot()
    }

    /// Ends recording. Nothing is buffered here, so there is nothing to flush.
    ///
    /// # Errors
    /// None today.
    #[expect(clippy::unused_async, reason = "the published contract")]
    pub async fn shutdown(self) -> Result<(), String> {
        Ok(())
    }
}
