//! The log lines of failures. Each failure is logged once, after its commit is confirmed.

use duroxide_core::{AppErrorKind, ErrorDetails, shortened_reason};
use tracing::{error, info, warn};

use super::decide::Cause;

/// An execution whose failure is committed.
#[derive(Debug)]
pub(crate) struct FailedExecution<'a> {
    pub(crate) instance: &'a str,
    pub(crate) execution_id: u64,
    pub(crate) orchestration_name: &'a str,
    pub(crate) version: &'a str,
    /// The event that records the failure.
    pub(crate) event_id: u64,
    pub(crate) details: &'a ErrorDetails,
    /// Why the runtime ended the execution; `None` if its code failed.
    pub(crate) ended: Option<&'a RuntimeEnd>,
}

/// An end that the runtime decided without running code.
#[derive(Debug, Clone)]
pub(crate) struct RuntimeEnd {
    pub(crate) cause: Cause,
    pub(crate) attempt_count: u32,
    pub(crate) max_attempts: u32,
    /// The node that decided it.
    pub(crate) node: String,
}

/// An activity whose failure is committed.
#[derive(Debug)]
pub(crate) struct FailedActivity<'a> {
    pub(crate) instance: &'a str,
    pub(crate) execution_id: u64,
    pub(crate) activity_name: &'a str,
    /// The version of its handler; `unknown` if this node has none.
    pub(crate) version: &'a str,
    /// The event that scheduled it.
    pub(crate) activity_id: u64,
    pub(crate) attempt_count: u32,
    pub(crate) worker_id: &'a str,
    pub(crate) details: &'a ErrorDetails,
}

/// Logs a line about an execution, with extra fields.
macro_rules! execution_line {
    ($level:ident, $failed:expr, { $($field:tt)* }, $text:literal) => {
        $level!(
            target: "duroxide::runtime",
            instance = $failed.instance,
            execution_id = $failed.execution_id,
            orchestration_name = $failed.orchestration_name,
            version = $failed.version,
            event_id = $failed.event_id,
            $($field)*
            $text
        )
    };
}

/// Logs a line about an activity, with extra fields.
macro_rules! activity_line {
    ($level:ident, $failed:expr, { $($field:tt)* }, $text:literal) => {
        $level!(
            target: "duroxide::runtime",
            instance = $failed.instance,
            execution_id = $failed.execution_id,
            activity_name = $failed.activity_name,
            version = $failed.version,
            activity_id = $failed.activity_id,
            attempt_count = $failed.attempt_count,
            worker_id = $failed.worker_id,
            $($field)*
            $text
        )
    };
}

/// Logs the failure of an execution: at WARN if its code failed, at ERROR if the platform or the deployment did.
pub(crate) fn execution_failed(failed: &FailedExecution<'_>) {
    if let Some(ended) = failed.ended {
        return execution_ended(failed, ended);
    }
    let reason = failed.details.display_message();
    let (category, reason) = (failed.details.category(), shortened_reason(&reason));
    match failed.details {
        ErrorDetails::Application { kind: AppErrorKind::Cancelled { .. }, .. } => {
            execution_line!(info, failed, { reason, }, "orchestration cancelled");
        }
        ErrorDetails::Application { .. } => {
            execution_line!(warn, failed, { category, reason, }, "orchestration failed");
        }
        ErrorDetails::Infrastructure { .. }
        | ErrorDetails::Configuration { .. }
        | ErrorDetails::Poison { .. } => {
            execution_line!(error, failed, { category, reason, }, "orchestration failed");
        }
    }
}

fn execution_ended(failed: &FailedExecution<'_>, ended: &RuntimeEnd) {
    let RuntimeEnd { cause, attempt_count, max_attempts, node } = ended;
    let reason = failed.details.display_message();
    let reason = shortened_reason(&reason);
    match cause {
        Cause::Poison { reason: missing } => {
            let reason = missing.as_deref().unwrap_or(reason);
            execution_line!(warn, failed, { attempt_count, max_attempts, node, reason, },
                "Orchestration message exceeded max attempts, marking as poison");
        }
        Cause::UnsupportedVersion => {
            execution_line!(warn, failed, { attempt_count, max_attempts, node, reason, },
                "no node could replay this execution, failing it");
        }
        Cause::Stranded { missing } => {
            execution_line!(warn, failed, { missing, node, },
                "no node could take this instance for too long, failing it");
        }
        Cause::CancelledUnsupported => {
            execution_line!(info, failed, { node, reason, },
                "cancelled without replay, which is not supported here");
        }
        Cause::CancelledWithoutHandler => {
            execution_line!(info, failed, { node, reason, },
                "cancelled without running its code, which is not registered here");
        }
    }
}

/// Logs the failure of an activity: at WARN if its code failed or it is poison, at ERROR if the platform or the
/// deployment failed.
pub(crate) fn activity_failed(failed: &FailedActivity<'_>) {
    let reason = failed.details.display_message();
    let (category, reason) = (failed.details.category(), shortened_reason(&reason));
    match failed.details {
        ErrorDetails::Poison { max_attempts, .. } => {
            let reason = failed.details.poison_reason();
            let reason = reason.as_deref().unwrap_or("every attempt ended without a result");
            activity_line!(warn, failed, { max_attempts, reason, },
                "Activity message exceeded max attempts, marking as poison");
        }
        ErrorDetails::Application { .. } => {
            activity_line!(warn, failed, { category, reason, }, "activity failed");
        }
        ErrorDetails::Infrastructure { .. } | ErrorDetails::Configuration { .. } => {
            activity_line!(error, failed, { category, reason, }, "activity failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;
    use crate::fixture::Logs;

    fn failed(details: &ErrorDetails) -> FailedExecution<'_> {
        FailedExecution {
            instance: "order-7",
            execution_id: 2,
            orchestration_name: "Order",
            version: "1.0.0",
            event_id: 9,
            details,
            ended: None,
        }
    }

    fn line_of(details: &ErrorDetails) -> (Level, String, String) {
        let (logs, _guard) = Logs::capture();
        execution_failed(&failed(details));
        let line = logs.only_line();
        (line.level, line.message.clone(), line.fields["reason"].clone())
    }

    #[test]
    fn the_level_of_a_failure_follows_its_kind() {
        let code = ErrorDetails::orchestration_failed("no stock");
        assert_eq!(line_of(&code), (Level::WARN, "orchestration failed".to_owned(), code.display_message()));
        let changed = ErrorDetails::nondeterminism("schedule mismatch");
        assert_eq!(line_of(&changed).0, Level::ERROR);
        let cancelled = ErrorDetails::Application {
            kind: AppErrorKind::Cancelled { reason: "enough".to_owned() },
            message: String::new(),
            retryable: false,
        };
        assert_eq!(
            (line_of(&cancelled).0, line_of(&cancelled).1.as_str()),
            (Level::INFO, "orchestration cancelled")
        );
    }

    #[test]
    fn a_failure_names_its_instance_and_handler() {
        let (logs, _guard) = Logs::capture();
        execution_failed(&failed(&ErrorDetails::orchestration_failed("no stock")));
        let expected = [
            ("category", "application"),
            ("event_id", "9"),
            ("execution_id", "2"),
            ("instance", "order-7"),
            ("orchestration_name", "Order"),
            ("reason", "no stock"),
            ("version", "1.0.0"),
        ];
        assert_eq!(logs.only_line().field_pairs(), expected);
    }
}
