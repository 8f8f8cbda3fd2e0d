//! Metrics of provider calls.

use std::{sync::atomic::Ordering, time::Duration};

use metrics::{SharedString, counter, gauge, histogram};

use super::MetricsProvider;
use crate::observability::label;

impl MetricsProvider {
    /// A provider call returned. `status` is `success` or `error`.
    pub fn record_provider_operation(&self, operation: &str, duration_seconds: f64, status: &str) {
        provider_operation(label::text(operation), duration_seconds, status);
    }

    /// Like [`Self::record_provider_operation`], for a static operation name, which is not copied.
    pub(crate) fn provider_call_returned(&self, operation: &'static str, duration: Duration, status: &str) {
        provider_operation(operation.into(), duration.as_secs_f64(), status);
    }

    /// A provider call failed. `error_type` is `retryable` or `permanent`.
    pub fn record_provider_error(&self, operation: &str, error_type: &str) {
        counter!(
            "duroxide_provider_errors_total",
            "operation" => operation.to_owned(),
            "error_type" => error_type.to_owned(),
        )
        .increment(1);
        self.counters.provider_errors.add(1);
    }

    /// A fetch skipped items. `reason` is `version`, `orchestration` or `activity`.
    pub fn record_provider_filtered_items(&self, reason: &str, count: u64) {
        counter!("duroxide_provider_filtered_items_total", "reason" => reason.to_owned()).increment(count);
    }

    /// Sets the number of items that no node can take. `reason` is `version`, `orchestration`, `activity` or `tag`.
    pub fn update_stranded_items(&self, reason: &'static str, count: u64) {
        gauge!("duroxide_stranded_items", "reason" => reason).set(count as f64);
    }

    /// Sets the number of nodes that have joined the store.
    pub fn update_nodes(&self, count: u64) {
        gauge!("duroxide_nodes").set(count as f64);
    }

    /// Sets the depths of the two queues.
    pub fn update_queue_depths(&self, orchestrator: u64, worker: u64) {
        self.orchestrator_queue_depth.store(orchestrator, Ordering::Relaxed);
        self.worker_queue_depth.store(worker, Ordering::Relaxed);
        gauge!("duroxide_orchestrator_queue_depth").set(orchestrator as f64);
        gauge!("duroxide_worker_queue_depth").set(worker as f64);
    }

    /// The depths of the orchestrator and worker queue, as last counted.
    pub fn get_queue_depths(&self) -> (u64, u64) {
        (
            self.orchestrator_queue_depth.load(Ordering::Relaxed),
            self.worker_queue_depth.load(Ordering::Relaxed),
        )
    }
}

fn provider_operation(operation: SharedString, duration_seconds: f64, status: &str) {
    histogram!(
        "duroxide_provider_operation_duration_seconds",
        "operation" => operation,
        "status" => label::outcome(status),
    )
    .record(duration_seconds);
}
