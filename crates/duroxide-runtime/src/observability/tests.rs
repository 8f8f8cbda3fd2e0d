//! Every metric by name and label, and every counter of the snapshot.

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::{AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType};

use super::*;
use crate::fixture::Recorder;

/// Runs `record` on fresh recorders; returns the facade's view and the snapshot.
fn observe(record: impl FnOnce(&MetricsProvider)) -> (Recorder, MetricsSnapshot) {
    let metrics = MetricsProvider::new(&ObservabilityConfig::default()).unwrap();
    let recorder = Recorder::observe(|| record(&metrics));
    (recorder, metrics.snapshot())
}

/// Series of the value 1.
fn once<const N: usize>(names: [&str; N]) -> BTreeMap<String, u64> {
    names.into_iter().map(|name| (name.to_owned(), 1)).collect()
}

fn series<const N: usize>(values: [(&str, f64); N]) -> BTreeMap<String, Vec<f64>> {
    values.into_iter().map(|(name, value)| (name.to_owned(), vec![value])).collect()
}

fn application() -> ErrorDetails {
    ErrorDetails::orchestration_failed("no stock")
}

fn infrastructure() -> ErrorDetails {
    ErrorDetails::Infrastructure {
        operation: "commit".to_owned(),
        message: "disk full".to_owned(),
        retryable: false,
    }
}

fn configuration() -> ErrorDetails {
    ErrorDetails::Configuration {
        kind: ConfigErrorKind::UnsupportedVersion,
        resource: "order-7".to_owned(),
        message: None,
    }
}

fn poison() -> ErrorDetails {
    ErrorDetails::Poison {
        attempt_count: 11,
        max_attempts: 10,
        message_type: PoisonMessageType::Orchestration { instance: "order-7".to_owned(), execution_id: 1 },
        message: "[]".to_owned(),
    }
}

fn order_ended(end: ExecutionEnd<'_>) -> EndedExecution<'_> {
    EndedExecution {
        orchestration_name: "Order",
        version: "1.0.0",
        execution_id: 3,
        end,
        duration: Duration::from_millis(1500),
        turns: 6,
        history_events: 40,
    }
}

fn charge_ended(end: ActivityEnd<'_>) -> EndedActivity<'_> {
    EndedActivity {
        activity_name: "Charge",
        end,
        duration: Duration::from_millis(250),
        attempt_count: 1,
        tag: None,
    }
}

#[test]
fn a_start_is_counted_with_its_origin() {
    let (recorder, snapshot) =
        observe(|metrics| metrics.record_orchestration_start("Order", "1.0.0", "client"));
    let expected = once([
        "duroxide_orchestration_starts_total{initiated_by=client,orchestration_name=Order,version=1.0.0}",
    ]);
    assert_eq!(recorder.counters(), expected);
    assert_eq!(snapshot, MetricsSnapshot { orch_starts: 1, ..Default::default() });
}

/// 22.1
#[test]
fn a_completed_execution_is_counted_once_with_duration_turns_and_history() {
    let (recorder, snapshot) =
        observe(|metrics| metrics.execution_ended(&order_ended(ExecutionEnd::Completed)));
    let expected = once(["duroxide_orchestration_completions_total\
         {final_turn_count=6-10,orchestration_name=Order,status=success,version=1.0.0}"]);
    assert_eq!(recorder.counters(), expected);
    let expected = series([
        (
            "duroxide_orchestration_duration_seconds{orchestration_name=Order,status=success,version=1.0.0}",
            1.5,
        ),
        ("duroxide_orchestration_turns{orchestration_name=Order}", 6.0),
        ("duroxide_orchestration_history_size{orchestration_name=Order}", 40.0),
    ]);
    assert_eq!(recorder.histograms(), expected);
    assert_eq!(snapshot, MetricsSnapshot { orch_completions: 1, ..Default::default() });
}

/// The counters of one failed execution, without its completion.
fn failure_counters(details: &ErrorDetails) -> (BTreeMap<String, u64>, MetricsSnapshot) {
    let (recorder, snapshot) =
        observe(|metrics| metrics.execution_ended(&order_ended(ExecutionEnd::Failed(details))));
    let mut counters = recorder.counters();
    let completion = "duroxide_orchestration_completions_total\
                      {final_turn_count=6-10,orchestration_name=Order,status=failed,version=1.0.0}";
    assert_eq!(counters.remove(completion), Some(1));
    (counters, snapshot)
}

/// 22.1
#[test]
fn an_application_failure_is_counted_once() {
    let cancelled = ErrorDetails::Application {
        kind: AppErrorKind::Cancelled { reason: "enough".to_owned() },
        message: "enough".to_owned(),
        retryable: false,
    };
    for details in [application(), cancelled] {
        let (counters, snapshot) = failure_counters(&details);
        let expected =
            once(["duroxide_orchestration_failures_total{category=application,error_category=application,\
             error_type=app_error,orchestration_name=Order,version=1.0.0}"]);
        assert_eq!(counters, expected);
        let expected = MetricsSnapshot { orch_failures: 1, orch_application_errors: 1, ..Default::default() };
        assert_eq!(snapshot, expected);
    }
}

/// 22.1
#[test]
fn a_system_failure_has_a_counter_of_its_own() {
    let (counters, snapshot) = failure_counters(&infrastructure());
    let expected = once([
        "duroxide_orchestration_failures_total{category=infrastructure,error_category=infrastructure,\
         error_type=infrastructure_error,orchestration_name=Order,version=1.0.0}",
        "duroxide_orchestration_infrastructure_errors_total\
         {error_category=infrastructure,orchestration_name=Order}",
    ]);
    assert_eq!(counters, expected);
    let expected = MetricsSnapshot { orch_failures: 1, orch_infrastructure_errors: 1, ..Default::default() };
    assert_eq!(snapshot, expected);

    let (counters, snapshot) = failure_counters(&configuration());
    let expected = once([
        "duroxide_orchestration_failures_total{category=configuration,error_category=configuration,\
         error_type=config_error,orchestration_name=Order,version=1.0.0}",
        "duroxide_orchestration_configuration_errors_total\
         {error_category=configuration,orchestration_name=Order}",
    ]);
    assert_eq!(counters, expected);
    let expected = MetricsSnapshot { orch_failures: 1, orch_configuration_errors: 1, ..Default::default() };
    assert_eq!(snapshot, expected);
}

/// S1.26, S1.27, S1.28, 22.1
#[test]
fn a_poisoned_execution_is_counted_once_by_each_of_its_counters() {
    let (counters, snapshot) = failure_counters(&poison());
    let expected = once([
        "duroxide_orchestration_failures_total{category=poison,error_category=poison,error_type=poison,\
         orchestration_name=Order,version=1.0.0}",
        "duroxide_orchestration_poison_total",
        "duroxide_poison_detected_total{type=orchestration}",
    ]);
    assert_eq!(counters, expected);
    assert_eq!(snapshot, MetricsSnapshot { orch_failures: 1, orch_poison: 1, ..Default::default() });
}

/// 22.2
#[test]
fn continue_as_new_is_counted_without_the_execution_id() {
    let (recorder, snapshot) =
        observe(|metrics| metrics.execution_ended(&order_ended(ExecutionEnd::ContinuedAsNew)));
    let expected = once([
        "duroxide_orchestration_completions_total\
         {final_turn_count=6-10,orchestration_name=Order,status=continuedAsNew,version=1.0.0}",
        "duroxide_orchestration_continue_as_new_total{orchestration_name=Order}",
    ]);
    assert_eq!(recorder.counters(), expected);
    assert_eq!(snapshot, MetricsSnapshot { orch_continue_as_new: 1, ..Default::default() });
}

/// 22.1
#[test]
fn an_activity_outcome_is_counted_once_with_its_duration() {
    let (recorder, snapshot) =
        observe(|metrics| metrics.activity_ended(&charge_ended(ActivityEnd::Completed)));
    let expected = once([
        "duroxide_activity_executions_total{activity_name=Charge,outcome=success,retry_attempt=0,tag=default}",
    ]);
    assert_eq!(recorder.counters(), expected);
    let expected = series([(
        "duroxide_activity_duration_seconds{activity_name=Charge,outcome=success,tag=default}",
        0.25,
    )]);
    assert_eq!(recorder.histograms(), expected);
    assert_eq!(snapshot, MetricsSnapshot { activity_success: 1, ..Default::default() });
}

/// S1.29, 22.1
#[test]
fn activity_failures_are_counted_by_category() {
    let failed = |details: &ErrorDetails| {
        let (recorder, snapshot) =
            observe(|metrics| metrics.activity_ended(&charge_ended(ActivityEnd::Failed(details))));
        (recorder.counters(), snapshot)
    };
    let ran = |outcome: &str| {
        format!(
            "duroxide_activity_executions_total\
             {{activity_name=Charge,outcome={outcome},retry_attempt=0,tag=default}}"
        )
    };

    let (counters, snapshot) = failed(&application());
    let expected = once([&ran("app_error"), "duroxide_activity_failures_total{category=application}"]);
    assert_eq!(counters, expected);
    assert_eq!(snapshot, MetricsSnapshot { activity_app_errors: 1, ..Default::default() });

    let (counters, snapshot) = failed(&infrastructure());
    let expected = once([
        &ran("infra_error"),
        "duroxide_activity_failures_total{category=infrastructure}",
        "duroxide_activity_infrastructure_errors_total{activity_name=Charge}",
    ]);
    assert_eq!(counters, expected);
    assert_eq!(snapshot, MetricsSnapshot { activity_infra_errors: 1, ..Default::default() });

    let (counters, snapshot) = failed(&configuration());
    let expected = once([
        &ran("config_error"),
        "duroxide_activity_failures_total{category=configuration}",
        "duroxide_activity_configuration_errors_total{activity_name=Charge}",
    ]);
    assert_eq!(counters, expected);
    assert_eq!(snapshot, MetricsSnapshot { activity_config_errors: 1, ..Default::default() });
}

/// S1.26, S1.27, S1.29
#[test]
fn a_poisoned_activity_did_not_run() {
    let (recorder, snapshot) =
        observe(|metrics| metrics.activity_ended(&charge_ended(ActivityEnd::Failed(&poison()))));
    let expected = once([
        "duroxide_activity_failures_total{category=poison}",
        "duroxide_activity_poison_total",
        "duroxide_poison_detected_total{type=activity}",
    ]);
    assert_eq!(recorder.counters(), expected);
    assert!(recorder.histograms().is_empty());
    assert_eq!(snapshot, MetricsSnapshot { activity_poison: 1, ..Default::default() });
}

#[test]
fn a_cancelled_activity_is_neither_success_nor_failure() {
    let (recorder, snapshot) =
        observe(|metrics| metrics.activity_ended(&charge_ended(ActivityEnd::Cancelled)));
    let expected = once([
        "duroxide_activity_executions_total{activity_name=Charge,outcome=cancelled,retry_attempt=0,tag=default}",
    ]);
    assert_eq!(recorder.counters(), expected);
    assert_eq!(snapshot, MetricsSnapshot::default());
}

/// 22.2
#[test]
fn numbers_become_ranges_in_labels() {
    let turns = [0, 1, 5, 6, 10, 11, 50, 51].map(label::turn_count);
    assert_eq!(turns, ["1-5", "1-5", "1-5", "6-10", "6-10", "11-50", "11-50", "50+"]);
    let retries = [0, 1, 2, 3, u32::MAX].map(label::retry_attempt);
    assert_eq!(retries, ["0", "1", "2", "3+", "3+"]);

    let third_fetch =
        EndedActivity { attempt_count: 3, tag: Some("gpu"), ..charge_ended(ActivityEnd::Completed) };
    let (recorder, _) = observe(|metrics| metrics.activity_ended(&third_fetch));
    let expected = once([
        "duroxide_activity_executions_total{activity_name=Charge,outcome=success,retry_attempt=2,tag=gpu}",
    ]);
    assert_eq!(recorder.counters(), expected);
}

#[test]
fn calls_of_children_are_counted_and_measured() {
    let (recorder, snapshot) = observe(|metrics| {
        metrics.record_suborchestration_call("Order", "Payment", "success");
        metrics.record_suborchestration_duration("Order", "Payment", 2.0, "success");
    });
    let labels = "{child_orchestration=Payment,outcome=success,parent_orchestration=Order}";
    assert_eq!(recorder.counters(), once([&format!("duroxide_suborchestration_calls_total{labels}")]));
    let expected = series([(format!("duroxide_suborchestration_duration_seconds{labels}").as_str(), 2.0)]);
    assert_eq!(recorder.histograms(), expected);
    assert_eq!(snapshot, MetricsSnapshot { suborchestration_calls: 1, ..Default::default() });
}

#[test]
fn the_dispatchers_are_counted_and_measured() {
    let (recorder, snapshot) = observe(|metrics| {
        metrics.record_orch_dispatcher_items_fetched(3);
        metrics.record_worker_dispatcher_items_fetched(5);
        metrics.record_orch_dispatcher_processing_duration(7);
        metrics.record_worker_dispatcher_execution_duration(9);
    });
    let expected = [
        ("duroxide_orchestration_dispatcher_items_fetched".to_owned(), 3),
        ("duroxide_worker_dispatcher_items_fetched".to_owned(), 5),
    ];
    assert_eq!(recorder.counters(), BTreeMap::from(expected));
    let expected = series([
        ("duroxide_orchestration_dispatcher_processing_duration_ms", 7.0),
        ("duroxide_worker_dispatcher_execution_duration_ms", 9.0),
    ]);
    assert_eq!(recorder.histograms(), expected);
    let expected = MetricsSnapshot {
        orch_dispatcher_items_fetched: 3,
        worker_dispatcher_items_fetched: 5,
        ..Default::default()
    };
    assert_eq!(snapshot, expected);
}

/// S0.27, S0.29, S0.31, S0.32, S3.21
#[test]
fn items_sent_back_are_counted() {
    let (recorder, snapshot) = observe(|metrics| {
        metrics.record_unregistered_orchestration_backoff();
        metrics.record_unregistered_activity_backoff();
        metrics.record_incompatible_version_abandoned();
        metrics.record_audit_difference();
    });
    let expected = once([
        "duroxide_unregistered_orchestration_backoff_total",
        "duroxide_unregistered_activity_backoff_total",
        "duroxide_orchestration_incompatible_version_abandoned_total",
        "duroxide_audit_differences_total",
    ]);
    assert_eq!(recorder.counters(), expected);
    let expected = MetricsSnapshot {
        unregistered_orch_backoff: 1,
        unregistered_activity_backoff: 1,
        incompatible_version_abandoned: 1,
        ..Default::default()
    };
    assert_eq!(snapshot, expected);
}

#[test]
fn the_store_is_counted_and_measured() {
    let (recorder, snapshot) = observe(|metrics| {
        metrics.record_provider_operation("read", 0.5, "error");
        metrics.record_provider_error("read", "retryable");
        metrics.record_provider_filtered_items("version", 1);
    });
    let expected = once([
        "duroxide_provider_errors_total{error_type=retryable,operation=read}",
        "duroxide_provider_filtered_items_total{reason=version}",
    ]);
    assert_eq!(recorder.counters(), expected);
    let expected =
        series([("duroxide_provider_operation_duration_seconds{operation=read,status=error}", 0.5)]);
    assert_eq!(recorder.histograms(), expected);
    assert_eq!(snapshot, MetricsSnapshot { provider_errors: 1, ..Default::default() });
}

/// 22.2
#[test]
fn gauges_follow_queue_depths() {
    let metrics = MetricsProvider::new(&ObservabilityConfig::default()).unwrap();
    let recorder = Recorder::observe(|| {
        metrics.set_active_orchestrations(3);
        metrics.increment_active_orchestrations();
        metrics.decrement_active_orchestrations();
        metrics.decrement_active_orchestrations();
        metrics.update_queue_depths(4, 9);
    });
    assert_eq!(recorder.gauge("duroxide_active_orchestrations"), Some(2.0));
    assert_eq!(metrics.get_active_orchestrations(), 2);
    assert_eq!(recorder.gauge("duroxide_orchestrator_queue_depth"), Some(4.0));
    assert_eq!(recorder.gauge("duroxide_worker_queue_depth"), Some(9.0));
    assert_eq!(metrics.get_queue_depths(), (4, 9));
}

#[tokio::test]
async fn a_logger_that_is_already_set_is_no_error() {
    let config = ObservabilityConfig::default();
    let first = ObservabilityHandle::init(&config).unwrap();
    let second = ObservabilityHandle::init(&config).unwrap();
    assert!(init_logging(&config).is_err(), "by itself it says so");
    first.metrics_provider().record_activity_success();
    assert_eq!(first.metrics_snapshot().activity_success, 1);
    assert_eq!(second.metrics_snapshot(), MetricsSnapshot::default(), "each runtime counts for itself");
    first.shutdown().await.unwrap();
    second.shutdown().await.unwrap();
}

#[cfg(not(feature = "subscriber"))]
#[test]
fn without_the_feature_no_logger_is_installed() {
    let refused = init_logging(&ObservabilityConfig::default()).unwrap_err();
    assert_eq!(refused, "duroxide was built without the feature `subscriber`");
}

#[test]
fn the_defaults_are_the_published_ones() {
    let config = ObservabilityConfig::default();
    assert_eq!((config.log_format, config.log_level.as_str()), (LogFormat::Pretty, "info"));
    assert_eq!((config.service_name.as_str(), config.service_version), ("duroxide", None));
    assert_eq!(config.gauge_poll_interval, Duration::from_secs(60));
    assert_eq!(LogFormat::default(), LogFormat::Compact);
}
