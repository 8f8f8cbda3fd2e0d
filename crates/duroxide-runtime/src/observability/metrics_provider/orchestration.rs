//! Metrics of orchestrations.

use std::sync::atomic::Ordering;

use metrics::{counter, gauge, histogram};

use super::MetricsProvider;
use crate::observability::label;

impl MetricsProvider {
    /// The first turn of an execution was committed. `initiated_by` is `client`, `suborchestration` or
    /// `continueAsNew`.
    pub fn record_orchestration_start(&self, name: &str, version: &str, initiated_by: &str) {
        counter!(
            "duroxide_orchestration_starts_total",
            "orchestration_name" => name.to_owned(),
            "version" => version.to_owned(),
            "initiated_by" => label::outcome(initiated_by),
        )
        .increment(1);
        self.counters.orch_starts.add(1);
    }

    /// An execution ended. `status` is `success`, `failed` or `continuedAsNew`; the snapshot's completions count only
    /// `success`, because the snapshot has separate counters for the others.
    pub fn record_orchestration_completion(
        &self,
        name: &str,
        version: &str,
        status: &str,
        duration_seconds: f64,
        turn_count: u64,
        history_events: u64,
    ) {
        let (name, version) = (label::text(name), label::text(version));
        counter!(
            "duroxide_orchestration_completions_total",
            "orchestration_name" => name.clone(),
            "version" => version.clone(),
            "status" => label::outcome(status),
            "final_turn_count" => label::turn_count(turn_count),
        )
        .increment(1);
        histogram!(
            "duroxide_orchestration_duration_seconds",
            "orchestration_name" => name.clone(),
            "version" => version,
            "status" => label::outcome(status),
        )
        .record(duration_seconds);
        histogram!("duroxide_orchestration_turns", "orchestration_name" => name.clone())
            .record(turn_count as f64);
        histogram!("duroxide_orchestration_history_size", "orchestration_name" => name)
            .record(history_events as f64);
        if !matches!(status, "failed" | "continuedAsNew") {
            self.counters.orch_completions.add(1);
        }
    }

    /// An execution failed. `error_type` is `app_error`, `infrastructure_error`, `config_error` or `poison`.
    pub fn record_orchestration_failure(
        &self,
        name: &str,
        version: &str,
        error_type: &str,
        error_category: &str,
    ) {
        counter!(
            "duroxide_orchestration_failures_total",
            "orchestration_name" => name.to_owned(),
            "version" => version.to_owned(),
            "error_type" => error_type.to_owned(),
            "error_category" => error_category.to_owned(),
            "category" => error_category.to_owned(),
        )
        .increment(1);
        let by_type = match error_type {
            "infrastructure_error" => Some("duroxide_orchestration_infrastructure_errors_total"),
            "config_error" => Some("duroxide_orchestration_configuration_errors_total"),
            _ => None,
        };
        if let Some(metric) = by_type {
            counter!(
                metric,
                "orchestration_name" => name.to_owned(),
                "error_category" => error_category.to_owned(),
            )
            .increment(1);
        }
        self.counters.orch_failures.add(1);
    }

    /// An execution failed because of its code.
    pub fn record_orchestration_application_error(&self) {
        self.counters.orch_application_errors.add(1);
    }

    /// An execution failed because of the platform.
    pub fn record_orchestration_infrastructure_error(&self) {
        self.counters.orch_infrastructure_errors.add(1);
    }

    /// An execution failed because of the deployment.
    pub fn record_orchestration_configuration_error(&self) {
        self.counters.orch_configuration_errors.add(1);
    }

    /// An execution was ended as poison.
    pub fn record_orchestration_poison(&self) {
        counter!("duroxide_orchestration_poison_total").increment(1);
        counter!("duroxide_poison_detected_total", "type" => "orchestration").increment(1);
        self.counters.orch_poison.add(1);
    }

    /// An execution continued as new. The execution id is not a label, because labels must be bounded.
    pub fn record_continue_as_new(&self, name: &str, execution_id: u64) {
        let _ = execution_id;
        counter!("duroxide_orchestration_continue_as_new_total", "orchestration_name" => name.to_owned())
            .increment(1);
        self.counters.orch_continue_as_new.add(1);
    }

    /// The call of a child ended.
    pub fn record_suborchestration_call(&self, parent: &str, child: &str, outcome: &str) {
        counter!(
            "duroxide_suborchestration_calls_total",
            "parent_orchestration" => parent.to_owned(),
            "child_orchestration" => child.to_owned(),
            "outcome" => outcome.to_owned(),
        )
        .increment(1);
        self.counters.suborchestration_calls.add(1);
    }

    /// The duration of a child's call.
    pub fn record_suborchestration_duration(
        &self,
        parent: &str,
        child: &str,
        duration_seconds: f64,
        outcome: &str,
    ) {
        histogram!(
            "duroxide_suborchestration_duration_seconds",
            "parent_orchestration" => parent.to_owned(),
            "child_orchestration" => child.to_owned(),
            "outcome" => outcome.to_owned(),
        )
        .record(duration_seconds);
    }

    /// An instance began to run.
    pub fn increment_active_orchestrations(&self) {
        self.active_orchestrations.fetch_add(1, Ordering::Relaxed);
        gauge!("duroxide_active_orchestrations").increment(1.0);
    }

    /// An instance ended.
    pub fn decrement_active_orchestrations(&self) {
        self.active_orchestrations.fetch_sub(1, Ordering::Relaxed);
        gauge!("duroxide_active_orchestrations").decrement(1.0);
    }

    /// Sets the number of running instances, for a node that starts on a store with running instances.
    pub fn set_active_orchestrations(&self, count: i64) {
        self.active_orchestrations.store(count, Ordering::Relaxed);
        gauge!("duroxide_active_orchestrations").set(count as f64);
    }

    /// Sets the number of instances that were started and have not begun.
    pub fn update_pending_orchestrations(&self, count: u64) {
        self.pending_orchestrations.store(count, Ordering::Relaxed);
        gauge!("duroxide_pending_orchestrations").set(count as f64);
    }

    /// The number of instances that were started and had not begun, as last counted.
    pub fn get_pending_orchestrations(&self) -> u64 {
        self.pending_orchestrations.load(Ordering::Relaxed)
    }

    /// The number of running instances.
    pub fn get_active_orchestrations(&self) -> i64 {
        self.active_orchestrations.load(Ordering::Relaxed)
    }
}
