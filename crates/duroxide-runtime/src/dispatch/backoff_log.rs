//! The two warnings about handlers that are not registered.
//!
//! Each attempt logs one warning of a fixed form, so that operators can search for it.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct UnregisteredOrchestration<'a> {
    pub(crate) instance: &'a str,
    pub(crate) orchestration_name: &'a str,
    /// The requested version.
    pub(crate) version: Option<&'a str>,
    pub(crate) attempt_count: u32,
    pub(crate) max_attempts: u32,
    pub(crate) backoff: Duration,
}

#[derive(Debug)]
pub(crate) struct UnregisteredActivity<'a> {
    pub(crate) instance: &'a str,
    pub(crate) execution_id: u64,
    pub(crate) activity_name: &'a str,
    pub(crate) activity_id: u64,
    pub(crate) worker_id: &'a str,
    pub(crate) activity_tag: Option<&'a str>,
    pub(crate) attempt_count: u32,
    pub(crate) max_attempts: u32,
    pub(crate) backoff: Duration,
}

/// Warns that an orchestration is abandoned because this node has no handler for it.
pub(crate) fn warn_unregistered_orchestration(item: &UnregisteredOrchestration<'_>) {
    let remaining_attempts = remaining_attempts(item.attempt_count, item.max_attempts);
    let backoff_secs = item.backoff.as_secs_f64();
    tracing::warn!(
        target: "duroxide::runtime",
        instance = %item.instance,
        orchestration_name = %item.orchestration_name,
        version = %item.version.unwrap_or("latest"),
        attempt_count = item.attempt_count,
        max_attempts = item.max_attempts,
        remaining_attempts,
        backoff_secs,
        "Orchestration not registered, abandoning with {backoff_secs:.1}s backoff \
         (will poison in {remaining_attempts} more attempts)"
    );
}

/// Warns that an activity is abandoned because this node has no handler for it.
pub(crate) fn warn_unregistered_activity(item: &UnregisteredActivity<'_>) {
    let remaining_attempts = remaining_attempts(item.attempt_count, item.max_attempts);
    let backoff_secs = item.backoff.as_secs_f64();
    tracing::warn!(
        target: "duroxide::runtime",
        instance = %item.instance,
        execution_id = item.execution_id,
        activity_name = %item.activity_name,
        activity_id = item.activity_id,
        worker_id = %item.worker_id,
        activity_tag = %item.activity_tag.unwrap_or("default"),
        attempt_count = item.attempt_count,
        max_attempts = item.max_attempts,
        remaining_attempts,
        backoff_secs,
        "Activity not registered, abandoning with {backoff_secs:.1}s backoff \
         (will poison in {remaining_attempts} more attempts)"
    );
}

/// The number of further fetches until the item is poisoned: attempt `max + 1` poisons it.
fn remaining_attempts(attempt_count: u32, max_attempts: u32) -> u32 {
    max_attempts.saturating_add(1).saturating_sub(attempt_count)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;
    use crate::fixture::Logs;

    /// S0.5, S0.13, S0.14, S0.16, S0.17, S0.18
    #[test]
    fn an_orchestration_without_handler_is_one_warning() {
        let (logs, _guard) = Logs::capture();
        warn_unregistered_orchestration(&UnregisteredOrchestration {
            instance: "order-7",
            orchestration_name: "Order",
            version: Some("2.0.0"),
            attempt_count: 3,
            max_attempts: 10,
            backoff: Duration::from_millis(1500),
        });
        let line = logs.only_line();
        assert_eq!((line.level, line.target.as_str()), (Level::WARN, "duroxide::runtime"));
        assert_eq!(
            line.message,
            "Orchestration not registered, abandoning with 1.5s backoff (will poison in 8 more attempts)"
        );
        let expected = [
            ("attempt_count", "3"),
            ("backoff_secs", "1.5"),
            ("instance", "order-7"),
            ("max_attempts", "10"),
            ("orchestration_name", "Order"),
            ("remaining_attempts", "8"),
            ("version", "2.0.0"),
        ];
        assert_eq!(line.field_pairs(), expected);
    }

    /// S0.17
    #[test]
    fn a_start_without_version_is_logged_as_latest() {
        let (logs, _guard) = Logs::capture();
        warn_unregistered_orchestration(&UnregisteredOrchestration {
            instance: "order-7",
            orchestration_name: "Order",
            version: None,
            attempt_count: 1,
            max_attempts: 3,
            backoff: Duration::from_secs(1),
        });
        assert_eq!(logs.only_line().fields.get("version").map(String::as_str), Some("latest"));
    }

    /// S0.13, S0.14, S0.16, S0.19, S0.20
    #[test]
    fn an_activity_without_handler_is_one_warning() {
        let (logs, _guard) = Logs::capture();
        warn_unregistered_activity(&UnregisteredActivity {
            instance: "order-7",
            execution_id: 2,
            activity_name: "Charge",
            activity_id: 5,
            worker_id: "work-0-abc",
            activity_tag: Some("gpu"),
            attempt_count: 1,
            max_attempts: 10,
            backoff: Duration::from_secs(1),
        });
        let line = logs.only_line();
        assert_eq!((line.level, line.target.as_str()), (Level::WARN, "duroxide::runtime"));
        assert_eq!(
            line.message,
            "Activity not registered, abandoning with 1.0s backoff (will poison in 10 more attempts)"
        );
        let expected = [
            ("activity_id", "5"),
            ("activity_name", "Charge"),
            ("activity_tag", "gpu"),
            ("attempt_count", "1"),
            ("backoff_secs", "1.0"),
            ("execution_id", "2"),
            ("instance", "order-7"),
            ("max_attempts", "10"),
            ("remaining_attempts", "10"),
            ("worker_id", "work-0-abc"),
        ];
        assert_eq!(line.field_pairs(), expected);
    }

    /// S0.15, C18
    #[test]
    fn remaining_attempts_count_the_fetches_until_poison() {
        assert_eq!(remaining_attempts(1, 3), 3);
        assert_eq!(remaining_attempts(3, 3), 1, "the next fetch poisons");
        assert_eq!(remaining_attempts(4, 3), 0);
        assert_eq!(remaining_attempts(9, 3), 0);
        assert_eq!(remaining_attempts(0, u32::MAX), u32::MAX);
    }
}
