//! How often a runtime asks its store for something.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// The metric that a runtime records once per call of its store.
const CALL: &str = "duroxide_provider_operation_duration_seconds";

/// Counts the calls of all stores in this process.
#[derive(Debug, Clone, Default)]
pub struct StoreCalls(Arc<AtomicU64>);

impl StoreCalls {
    /// Begins to count. A second counter would not see the calls of the first, so there is one per process.
    pub fn count() -> Result<Self, String> {
        let calls = Self::default();
        metrics::set_global_recorder(calls.clone()).map_err(|error| error.to_string())?;
        Ok(calls)
    }

    pub fn so_far(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl HistogramFn for StoreCalls {
    fn record(&self, _seconds: f64) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// All other metrics are dropped.
impl Recorder for StoreCalls {
    fn describe_counter(&self, _key: KeyName, _unit: Option<Unit>, _description: SharedString) {}

    fn describe_gauge(&self, _key: KeyName, _unit: Option<Unit>, _description: SharedString) {}

    fn describe_histogram(&self, _key: KeyName, _unit: Option<Unit>, _description: SharedString) {}

    fn register_counter(&self, _key: &Key, _metadata: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _key: &Key, _metadata: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _metadata: &Metadata<'_>) -> Histogram {
        if key.name() == CALL { Histogram::from_arc(Arc::new(self.clone())) } else { Histogram::noop() }
    }
}
