//! Totals: every counter after instances of all kinds, which shows that every fact is counted once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use duroxide_core::{ErrorDetails, OrchestrationContext};
use duroxide_runtime::{Client, MetricsSnapshot, OrchestrationRegistry, OrchestrationStatus, Runtime};

use crate::{WAIT_MAX, activities, continues, memory_store, options, recorder::Recorder};

/// Instance, orchestration.
const INSTANCES: [(&str, &str); 8] = [
    ("two-a", "TwoSteps"),
    ("two-b", "TwoSteps"),
    ("family", "Parent"),
    ("no-a", "Refuses"),
    ("no-b", "Refuses"),
    ("fickle", "Changes"),
    ("ghost", "Missing"),
    ("onward", "Continues"),
];

async fn two_steps(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let once = ctx.schedule_activity("Step", input).await?;
    ctx.schedule_activity("Step", once).await
}

async fn parent(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let stepped = two_steps(ctx.clone(), input).await?;
    ctx.schedule_sub_orchestration("Child", stepped).await
}

/// Code that does something else when it is replayed.
async fn changes(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    static REPLAYED: AtomicBool = AtomicBool::new(false);
    let name = if REPLAYED.swap(true, Ordering::SeqCst) { "Other" } else { "Step" };
    ctx.schedule_activity(name, input).await
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("TwoSteps", two_steps)
        .register("Parent", parent)
        .register("Child", |_ctx, input| async move { Ok(input) })
        .register("Refuses", |_ctx, _input| async { Err("no".to_owned()) })
        .register("Changes", changes)
        .register("Continues", continues)
        .build_result()
        .unwrap()
}

/// Runs all instances to their ends and stops the runtime, so that all metrics are final.
async fn run_all() -> MetricsSnapshot {
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    let runtime = Runtime::start_with_options(store, activities(), orchestrations(), options()).await;
    for (instance, orchestration) in INSTANCES {
        client.start_orchestration(instance, orchestration, "x").await.unwrap();
    }
    for (instance, _) in INSTANCES {
        let status = client.wait_for_orchestration(instance, WAIT_MAX).await.unwrap();
        if instance == "fickle" {
            let OrchestrationStatus::Failed { details, .. } = status else { panic!("{status:?}") };
            assert!(matches!(details, ErrorDetails::Configuration { .. }), "{details:?}");
        }
    }
    Arc::clone(&runtime).shutdown(None).await;
    runtime.metrics_snapshot().unwrap()
}

/// Whether this metric counts instances and activities rather than provider calls.
fn counts_work(name: &str) -> bool {
    !name.starts_with("duroxide_provider_")
}

fn expected_counters() -> BTreeMap<String, u64> {
    starts().chain(completions()).chain(failures()).chain(others()).collect()
}

/// Executions by initiator.
fn starts() -> impl Iterator<Item = (String, u64)> {
    [
        ("TwoSteps", "1.0.0", "client", 2),
        ("Parent", "1.0.0", "client", 1),
        ("Child", "1.0.0", "suborchestration", 1),
        ("Refuses", "1.0.0", "client", 2),
        ("Changes", "1.0.0", "client", 1),
        ("Missing", "unknown", "client", 1),
        ("Continues", "1.0.0", "client", 1),
        ("Continues", "1.0.0", "continueAsNew", 1),
    ]
    .into_iter()
    .map(|(name, version, by, count)| {
        let labels = format!("initiated_by={by},orchestration_name={name},version={version}");
        (format!("duroxide_orchestration_starts_total{{{labels}}}"), count)
    })
}

/// Executions by outcome.
fn completions() -> impl Iterator<Item = (String, u64)> {
    [
        ("TwoSteps", "1.0.0", "success", 2),
        ("Parent", "1.0.0", "success", 1),
        ("Child", "1.0.0", "success", 1),
        ("Refuses", "1.0.0", "failed", 2),
        ("Changes", "1.0.0", "failed", 1),
        ("Missing", "unknown", "failed", 1),
        ("Continues", "1.0.0", "continuedAsNew", 1),
        ("Continues", "1.0.0", "success", 1),
    ]
    .into_iter()
    .map(|(name, version, status, count)| {
        let labels =
            format!("final_turn_count=1-5,orchestration_name={name},status={status},version={version}");
        (format!("duroxide_orchestration_completions_total{{{labels}}}"), count)
    })
}

/// Failed executions by reason.
fn failures() -> impl Iterator<Item = (String, u64)> {
    [
        ("Refuses", "1.0.0", "app_error", "application", 2),
        ("Changes", "1.0.0", "config_error", "configuration", 1),
        ("Missing", "unknown", "poison", "poison", 1),
    ]
    .into_iter()
    .map(|(name, version, error_type, category, count)| {
        let labels = format!(
            "category={category},error_category={category},error_type={error_type},\
             orchestration_name={name},version={version}"
        );
        (format!("duroxide_orchestration_failures_total{{{labels}}}"), count)
    })
}

/// All other counters.
fn others() -> impl Iterator<Item = (String, u64)> {
    [
        (
            1,
            "duroxide_orchestration_configuration_errors_total\
             {error_category=configuration,orchestration_name=Changes}",
        ),
        (1, "duroxide_orchestration_continue_as_new_total{orchestration_name=Continues}"),
        (1, "duroxide_orchestration_poison_total"),
        (1, "duroxide_poison_detected_total{type=orchestration}"),
        (2, "duroxide_unregistered_orchestration_backoff_total"),
        (
            7,
            "duroxide_activity_executions_total{activity_name=Step,outcome=success,retry_attempt=0,tag=default}",
        ),
        (
            1,
            "duroxide_suborchestration_calls_total\
             {child_orchestration=Child,outcome=success,parent_orchestration=Parent}",
        ),
        (9, "duroxide_turns_total{source=new}"),
        (8, "duroxide_turns_total{source=replay}"),
        (20, "duroxide_orchestration_dispatcher_items_fetched"),
        (7, "duroxide_worker_dispatcher_items_fetched"),
    ]
    .into_iter()
    .map(|(count, name)| (name.to_owned(), count))
}

fn expected_snapshot() -> MetricsSnapshot {
    MetricsSnapshot {
        orch_starts: 10,
        orch_completions: 5,
        orch_failures: 4,
        orch_application_errors: 2,
        orch_configuration_errors: 1,
        orch_poison: 1,
        activity_success: 7,
        orch_dispatcher_items_fetched: 20,
        worker_dispatcher_items_fetched: 7,
        orch_continue_as_new: 1,
        suborchestration_calls: 1,
        unregistered_orch_backoff: 2,
        ..Default::default()
    }
}

/// Values of one histogram over orchestrations, by name, sorted.
fn by_orchestration(recorder: &Recorder, metric: &str) -> BTreeMap<String, Vec<f64>> {
    let prefix = format!("{metric}{{orchestration_name=");
    let of_metric = recorder.histograms().into_iter().filter_map(|(series, mut values)| {
        values.sort_by(f64::total_cmp);
        Some((series.strip_prefix(&prefix)?.strip_suffix('}')?.to_owned(), values))
    });
    of_metric.collect()
}

fn values<const N: usize>(of: [(&str, &[f64]); N]) -> BTreeMap<String, Vec<f64>> {
    of.into_iter().map(|(name, values)| (name.to_owned(), values.to_vec())).collect()
}

/// B12, 22.1, 22.2
#[tokio::test]
async fn every_fact_is_counted_once() {
    let recorder = Recorder::default();
    let guard = metrics::set_default_local_recorder(&recorder);
    let snapshot = run_all().await;
    drop(guard);

    let mut counters = recorder.counters();
    counters.retain(|name, _| counts_work(name));
    assert_eq!(counters, expected_counters());
    assert_eq!(snapshot, expected_snapshot());
    assert_eq!(recorder.gauge("duroxide_active_orchestrations"), Some(0.0));

    let turns = by_orchestration(&recorder, "duroxide_orchestration_turns");
    let expected = values([
        ("TwoSteps", &[3.0, 3.0]),
        ("Parent", &[4.0]),
        ("Child", &[1.0]),
        ("Refuses", &[1.0, 1.0]),
        ("Changes", &[2.0]),
        ("Missing", &[1.0]),
        ("Continues", &[1.0, 1.0]),
    ]);
    assert_eq!(turns, expected);
    let history = by_orchestration(&recorder, "duroxide_orchestration_history_size");
    assert_eq!(history.get("TwoSteps"), Some(&vec![6.0, 6.0]), "start, two activities, end");
    assert_eq!(history.get("Missing"), Some(&vec![2.0]), "start, failure");
    assert_labels_are_bounded(&recorder);
    assert_eq!(recorder.undescribed(), BTreeSet::new(), "a runtime describes its metrics when it starts");
}

/// 22.2
fn assert_labels_are_bounded(recorder: &Recorder) {
    let ids: Vec<_> =
        INSTANCES.iter().map(|(instance, _)| *instance).chain(["family::sub::6", "1", "2"]).collect();
    let series = recorder.counters().into_keys().chain(recorder.histograms().into_keys());
    for name in series {
        let labels = name.split_once('{').map(|(_, labels)| labels.trim_end_matches('}')).unwrap_or_default();
        for value in labels.split(',').filter_map(|label| label.split_once('=')).map(|(_, value)| value) {
            assert!(!ids.contains(&value), "{name} has an id as label");
        }
    }
}
