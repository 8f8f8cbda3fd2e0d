//! Records the ends of executions and activities, each with all the counters that apply.

use std::time::Duration;

use duroxide_core::ErrorDetails;

use super::MetricsProvider;

/// An execution whose end was committed.
#[derive(Debug)]
pub(crate) struct EndedExecution<'a> {
    pub(crate) orchestration_name: &'a str,
    pub(crate) version: &'a str,
    pub(crate) execution_id: u64,
    pub(crate) end: ExecutionEnd<'a>,
    /// From start to end.
    pub(crate) duration: Duration,
    pub(crate) turns: u64,
    pub(crate) history_events: u64,
}

/// How an execution ended.
#[derive(Debug)]
pub(crate) enum ExecutionEnd<'a> {
    Completed,
    Failed(&'a ErrorDetails),
    ContinuedAsNew,
}

/// An activity whose outcome was acked.
#[derive(Debug)]
pub(crate) struct EndedActivity<'a> {
    pub(crate) activity_name: &'a str,
    pub(crate) end: ActivityEnd<'a>,
    /// The time of the run that counts.
    pub(crate) duration: Duration,
    /// Fetches, this one included.
    pub(crate) attempt_count: u32,
    pub(crate) tag: Option<&'a str>,
}

/// How an activity ended.
#[derive(Debug)]
pub(crate) enum ActivityEnd<'a> {
    Completed,
    Failed(&'a ErrorDetails),
    Cancelled,
}

impl MetricsProvider {
    /// Counts the end of an execution. [`Self::decrement_active_orchestrations`] counts the end of its instance,
    /// because continue-as-new ends only the execution.
    pub(crate) fn execution_ended(&self, ended: &EndedExecution<'_>) {
        let EndedExecution { orchestration_name, version, .. } = ended;
        let status = match ended.end {
            ExecutionEnd::Completed => "success",
            ExecutionEnd::Failed(_) => "failed",
            ExecutionEnd::ContinuedAsNew => "continuedAsNew",
        };
        self.record_orchestration_completion(
            orchestration_name,
            version,
            status,
            ended.duration.as_secs_f64(),
            ended.turns,
            ended.history_events,
        );
        match ended.end {
            ExecutionEnd::Completed => {}
            ExecutionEnd::Failed(details) => self.execution_failed(orchestration_name, version, details),
            ExecutionEnd::ContinuedAsNew => {
                self.record_continue_as_new(orchestration_name, ended.execution_id);
            }
        }
    }

    fn execution_failed(&self, name: &str, version: &str, details: &ErrorDetails) {
        let error_type = match details {
            ErrorDetails::Application { .. } => {
                self.record_orchestration_application_error();
                "app_error"
            }
            ErrorDetails::Infrastructure { .. } => {
                self.record_orchestration_infrastructure_error();
                "infrastructure_error"
            }
            ErrorDetails::Configuration { .. } => {
                self.record_orchestration_configuration_error();
                "config_error"
            }
            ErrorDetails::Poison { .. } => {
                self.record_orchestration_poison();
                "poison"
            }
        };
        self.record_orchestration_failure(name, version, error_type, details.category());
    }

    /// Counts the end of an activity. A poisoned activity did not run, so it has no execution and no duration.
    pub(crate) fn activity_ended(&self, ended: &EndedActivity<'_>) {
        let outcome = match ended.end {
            ActivityEnd::Completed => {
                self.record_activity_success();
                "success"
            }
            ActivityEnd::Cancelled => "cancelled",
            ActivityEnd::Failed(ErrorDetails::Application { .. }) => {
                self.record_activity_app_error();
                "app_error"
            }
            ActivityEnd::Failed(ErrorDetails::Infrastructure { .. }) => {
                self.record_activity_infra_error();
                "infra_error"
            }
            ActivityEnd::Failed(ErrorDetails::Configuration { .. }) => {
                self.record_activity_config_error();
                "config_error"
            }
            ActivityEnd::Failed(ErrorDetails::Poison { .. }) => return self.record_activity_poison(),
        };
        let retries = ended.attempt_count.saturating_sub(1);
        self.record_activity_execution(
            ended.activity_name,
            outcome,
            ended.duration.as_secs_f64(),
            retries,
            ended.tag,
        );
    }
}
