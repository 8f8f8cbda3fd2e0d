//! [`ObservabilityHandle`]: logs and metrics of one runtime.

use std::sync::Arc;

use super::{
    MetricsProvider, MetricsSnapshot, ObservabilityConfig, description::describe_metrics, init_logging,
};

/// The logging and metrics of one runtime.
#[derive(Debug)]
pub struct ObservabilityHandle {
    metrics: Arc<MetricsProvider>,
}

impl ObservabilityHandle {
    /// Sets up logging and metrics, and describes the metrics to the installed recorder. Keeps a logger that is already
    /// set.
    ///
    /// # Errors
    /// If the metrics cannot be set up.
    pub fn init(config: &ObservabilityConfig) -> Result<Self, String> {
        // Fails if a logger is already set, which is fine.
        let _ = init_logging(config);
        tracing::debug!(
            target: "duroxide::runtime",
            service_name = %config.service_name,
            service_version = config.service_version.as_deref(),
            "observability is set up"
        );
        describe_metrics();
        Ok(Self { metrics: Arc::new(MetricsProvider::new(config)?) })
    }

    /// The recorders.
    pub fn metrics_provider(&self) -> &Arc<MetricsProvider> {
        &self.metrics
    }

    /// The current values of the counters.
    pub fn metrics_snapshot(&self) -> MetricsSnapshot {
        self.metrics.snapshot()
    }

    /// Ends observation. Nothing is buffered here, so there is nothing to flush.
    ///
    /// # Errors
    /// None today.
    #[expect(clippy::unused_async, reason = "the published contract")]
    pub async fn shutdown(self) -> Result<(), String> {
        Ok(())
    }
}
