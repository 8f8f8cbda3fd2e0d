//! Metrics of activities.

use metrics::{counter, histogram};

use super::MetricsProvider;
use crate::observability::label;

impl MetricsProvider {
    /// An activity ran and its outcome was recorded. `outcome` is `success`, `app_error`, `infra_error`,
    /// `config_error` or `cancelled`.
    pub fn record_activity_execution(
        &self,
        name: &str,
        outcome: &str,
        duration_seconds: f64,
        retry_attempt: u32,
        tag: Option<&str>,
    ) {
        let (activity_name, tag) = (label::text(name), label::tag(tag));
        counter!(
            "duroxide_activity_executions_total",
            "activity_name" => activity_name.clone(),
            "outcome" => label::outcome(outcome),
            "retry_attempt" => label::retry_attempt(retry_attempt),
            "tag" => tag.clone(),
        )
        .increment(1);
        histogram!(
            "duroxide_activity_duration_seconds",
            "activity_name" => activity_name,
            "outcome" => label::outcome(outcome),
            "tag" => tag,
        )
        .record(duration_seconds);
        count_failed_run(name, outcome);
    }

    /// An activity returned a result.
    pub fn record_activity_success(&self) {
        self.counters.activity_success.add(1);
    }

    /// An activity returned an error.
    pub fn record_activity_app_error(&self) {
        self.counters.activity_app_errors.add(1);
    }

    /// An activity failed because of the platform.
    pub fn record_activity_infra_error(&self) {
        self.counters.activity_infra_errors.add(1);
    }

    /// An activity failed because of the deployment.
    pub fn record_activity_config_error(&self) {
        self.counters.activity_config_errors.add(1);
    }

    /// An activity was ended as poison; it did not run.
    pub fn record_activity_poison(&self) {
        counter!("duroxide_activity_poison_total").increment(1);
        counter!("duroxide_poison_detected_total", "type" => "activity").increment(1);
        count_failure("poison");
        self.counters.activity_poison.add(1);
    }
}

/// Increments the counters of failed runs.
fn count_failed_run(name: &str, outcome: &str) {
    match outcome {
        "app_error" => count_failure("application"),
        "infra_error" => {
            count_failure("infrastructure");
            counter!("duroxide_activity_infrastructure_errors_total", "activity_name" => name.to_owned())
                .increment(1);
        }
        "config_error" => {
            count_failure("configuration");
            counter!("duroxide_activity_configuration_errors_total", "activity_name" => name.to_owned())
                .increment(1);
        }
        _ => {}
    }
}

fn count_failure(category: &'static str) {
    counter!("duroxide_activity_failures_total", "category" => category).increment(1);
}
