//! The result of a stress test, and the counters behind it.

use std::time::Duration;

use duroxide_core::ErrorDetails;
use duroxide_runtime::OrchestrationStatus;

use super::{Latency, StressTestReport};

/// Outcomes and throughput of a stress test.
#[derive(Debug, Clone)]
pub struct StressTestResult {
    /// Orchestrations started.
    pub launched: usize,
    /// Orchestrations that completed.
    pub completed: usize,
    /// Orchestrations that failed or did not end in time.
    pub failed: usize,
    /// Failed by the infrastructure, or not ended in time.
    pub failed_infrastructure: usize,
    /// Failed by configuration.
    pub failed_configuration: usize,
    /// Failed by the application, poison included.
    pub failed_application: usize,
    /// The time from the first start to the last end.
    pub total_time: Duration,
    /// Completed orchestrations per second.
    pub orch_throughput: f64,
    /// Activities of completed orchestrations per second.
    pub activity_throughput: f64,
    /// Mean time from start to end of a completed orchestration.
    pub avg_latency_ms: f64,
}

impl StressTestResult {
    /// The percentage of launched orchestrations that completed; 100 if none was launched.
    pub fn success_rate(&self) -> f64 {
        if self.launched == 0 {
            return 100.0;
        }
        self.completed as f64 / self.launched as f64 * 100.0
    }
}

/// Counts outcomes.
#[derive(Debug, Default)]
pub(super) struct Tally {
    launched: usize,
    completed: usize,
    failed_infrastructure: usize,
    failed_configuration: usize,
    failed_application: usize,
    completed_in: Vec<Duration>,
}

impl Tally {
    /// Counts one orchestration; `None` means that it did not end in time.
    pub(super) fn count(&mut self, status: Option<&OrchestrationStatus>, took: Duration) {
        self.launched += 1;
        match status {
            Some(OrchestrationStatus::Completed { .. }) => {
                self.completed += 1;
                self.completed_in.push(took);
            }
            Some(OrchestrationStatus::Failed { details, .. }) => self.count_failure(details),
            Some(OrchestrationStatus::NotFound | OrchestrationStatus::Running { .. }) | None => {
                self.failed_infrastructure += 1;
            }
        }
    }

    fn count_failure(&mut self, details: &ErrorDetails) {
        match details {
            ErrorDetails::Infrastructure { .. } => self.failed_infrastructure += 1,
            ErrorDetails::Configuration { .. } => self.failed_configuration += 1,
            ErrorDetails::Application { .. } | ErrorDetails::Poison { .. } => self.failed_application += 1,
        }
    }

    pub(super) fn report(self, total_time: Duration, activities_per_instance: usize) -> StressTestReport {
        StressTestReport {
            result: self.result(total_time, activities_per_instance),
            latency: Latency::of(self.completed_in),
        }
    }

    pub(super) fn result(&self, total_time: Duration, activities_per_instance: usize) -> StressTestResult {
        let per_second = |count: usize| count as f64 / total_time.as_secs_f64().max(f64::MIN_POSITIVE);
        let completed_in: Duration = self.completed_in.iter().sum();
        let latency = completed_in.as_secs_f64() * 1_000.0 / self.completed.max(1) as f64;
        StressTestResult {
            launched: self.launched,
            completed: self.completed,
            failed: self.launched - self.completed,
            failed_infrastructure: self.failed_infrastructure,
            failed_configuration: self.failed_configuration,
            failed_application: self.failed_application,
            total_time,
            orch_throughput: per_second(self.completed),
            activity_throughput: per_second(self.completed * activities_per_instance),
            avg_latency_ms: latency,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(details: ErrorDetails) -> OrchestrationStatus {
        OrchestrationStatus::Failed { details, custom_status: None, custom_status_version: 0 }
    }

    #[test]
    fn every_end_is_counted_once_and_in_its_class() {
        let completed = OrchestrationStatus::Completed {
            output: String::new(),
            custom_status: None,
            custom_status_version: 0,
        };
        let mut tally = Tally::default();
        tally.count(Some(&completed), Duration::from_millis(10));
        tally.count(Some(&completed), Duration::from_millis(30));
        tally.count(Some(&failed(ErrorDetails::orchestration_failed("no"))), Duration::ZERO);
        tally.count(Some(&failed(ErrorDetails::nondeterminism("no"))), Duration::ZERO);
        tally.count(None, Duration::ZERO);

        let result = tally.result(Duration::from_secs(2), 5);
        assert_eq!((result.launched, result.completed, result.failed), (5, 2, 3));
        assert_eq!(
            (result.failed_infrastructure, result.failed_configuration, result.failed_application),
            (1, 1, 1)
        );
        assert!((result.success_rate() - 40.0).abs() < 1e-9);
        assert!((result.orch_throughput - 1.0).abs() < 1e-9);
        assert!((result.activity_throughput - 5.0).abs() < 1e-9);
        assert!((result.avg_latency_ms - 20.0).abs() < 1e-9);

        let latency = tally.report(Duration::from_secs(2), 5).latency;
        let expected = (Duration::from_millis(10), Duration::from_millis(30));
        assert_eq!((latency.p50, latency.p99), expected, "only of those that completed");
    }
}
