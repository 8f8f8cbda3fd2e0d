//! B12: the exact metrics of a whole runtime.
//!
//! The recorder belongs to the current thread: dispatch and activities run on the test's own tokio thread, and turn
//! threads record nothing.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "../src/fixture/recorder.rs"]
mod recorder;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use duroxide_core::{ErrorDetails, OrchestrationContext};
use duroxide_provider::{Provider, TagFilter};
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, MetricsSnapshot, OrchestrationRegistry, OrchestrationStatus,
    Runtime, RuntimeOptions, UnregisteredBackoffConfig,
};
use duroxide_store::MemoryProvider;
use recorder::Recorder;

const PATIENCE: Duration = Duration::from_secs(30);

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

fn memory_store() -> Arc<dyn Provider> {
    Arc::new(MemoryProvider::new())
}

async fn two_steps(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let once = ctx.schedule_activity("Step", input).await?;
    ctx.schedule_activity("Step", once).await
}

async fn parent(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let stepped = two_steps(ctx.clone(), input).await?;
    ctx.schedule_sub_orchestration("Child", stepped).await
}

async fn continues(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input == "last" { Ok(input) } else { ctx.continue_as_new("last").await }
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

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder().register("Step", |_ctx, input| async move { Ok(input) }).build()
}

/// Every turn replays, so that changed code is noticed; work without a handler is poison after two attempts. There is a
/// slot for every item, because an item that waits too long for a slot is abandoned, fetched and counted again.
fn options() -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: 32,
        worker_concurrency: 32,
        execution_cache_size: 0,
        max_attempts: 2,
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(1),
            max_delay: Duration::from_millis(1),
        },
        ..Default::default()
    }
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
        let status = client.wait_for_orchestration(instance, PATIENCE).await.unwrap();
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

async fn approval(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_timer(TIMER).await;
    let approved = ctx.schedule_wait("approved");
    ctx.set_custom_status("listening");
    Ok(approved.await)
}

const TIMER: Duration = Duration::from_millis(30);

/// B12, 22.2
#[tokio::test]
async fn the_gauge_shows_what_runs_and_the_duration_covers_all_of_it() {
    let recorder = Recorder::default();
    let guard = metrics::set_default_local_recorder(&recorder);
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    let orchestrations = OrchestrationRegistry::builder().register("Approval", approval).build();
    let runtime = Runtime::start_with_store(store, activities(), orchestrations).await;

    client.start_orchestration("order", "Approval", "").await.unwrap();
    recorder.gauge_becomes("duroxide_active_orchestrations", 1.0).await;
    client.wait_for_status_change("order", 0, TIMER, PATIENCE).await.unwrap();
    client.raise_event("order", "approved", "yes").await.unwrap();
    client.wait_for_orchestration("order", PATIENCE).await.unwrap();
    recorder.gauge_becomes("duroxide_active_orchestrations", 0.0).await;
    runtime.shutdown(None).await;
    drop(guard);

    let series =
        "duroxide_orchestration_duration_seconds{orchestration_name=Approval,status=success,version=1.0.0}";
    let durations = recorder.histograms().remove(series).unwrap();
    assert_eq!(durations.len(), 1);
    assert!(durations[0] >= TIMER.as_secs_f64(), "{durations:?}");
}

/// 20.2a: instances that were accepted and have not begun are counted too.
#[tokio::test]
async fn the_gauge_of_pending_instances_shows_accepted_starts() {
    let recorder = Recorder::default();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("a", "Approval", "").await.unwrap();
    client.start_orchestration("b", "Approval", "").await.unwrap();
    let node = |concurrency: usize| {
        let mut options =
            RuntimeOptions { orchestration_concurrency: concurrency, ..RuntimeOptions::default() };
        options.observability.gauge_poll_interval = Duration::from_millis(10);
        let orchestrations = OrchestrationRegistry::builder().register("Approval", approval).build();
        Runtime::start_with_options(Arc::clone(&store), activities(), orchestrations, options)
    };
    let idle = node(0).await;
    recorder.gauge_becomes("duroxide_pending_orchestrations", 2.0).await;
    let busy = node(2).await;
    recorder.gauge_becomes("duroxide_pending_orchestrations", 0.0).await;
    for runtime in [idle, busy] {
        runtime.shutdown(None).await;
    }
}

/// 22.2
#[tokio::test]
async fn a_new_node_counts_what_runs_already() {
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    let node = || {
        let orchestrations = OrchestrationRegistry::builder().register("Approval", approval).build();
        Runtime::start_with_store(Arc::clone(&store), activities(), orchestrations)
    };
    let active = |runtime: &Runtime| {
        let observability = runtime.observability_handle().unwrap();
        observability.metrics_provider().get_active_orchestrations()
    };
    let first = node().await;
    client.start_orchestration("order", "Approval", "").await.unwrap();
    client.wait_for_status_change("order", 0, TIMER, PATIENCE).await.unwrap();
    first.shutdown(None).await;

    let second = node().await;
    assert_eq!(active(&second), 1);
    client.raise_event("order", "approved", "yes").await.unwrap();
    client.wait_for_orchestration("order", PATIENCE).await.unwrap();
    Arc::clone(&second).shutdown(None).await;
    assert_eq!(active(&second), 0);
}

/// An activity that ends as its input says.
async fn errand(ctx: ActivityContext, how: String) -> Result<String, String> {
    match how.as_str() {
        "fail" => Err("closed".to_owned()),
        "panic" => panic!("tripped"),
        "stall" => {
            ctx.trace_info("stalling");
            ctx.cancelled().await;
            Ok("cancelled".to_owned())
        }
        _ => Ok(how),
    }
}

/// Calls activities with every possible outcome except poison.
async fn errands(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_activity("Errand", "shop").await?;
    ctx.schedule_activity("Errand", "fail").await.unwrap_err();
    ctx.schedule_activity("Errand", "panic").await.unwrap_err();
    let stalled = ctx.schedule_activity("Errand", "stall").with_tag("slow");
    let enough = ctx.schedule_wait("enough");
    ctx.set_custom_status("waiting");
    ctx.select2(enough, stalled).await;
    Ok("done".to_owned())
}

/// Counters that begin with `prefix`, without it.
fn counters_of(recorder: &Recorder, prefix: &str) -> BTreeMap<String, u64> {
    let counters = recorder.counters().into_iter();
    counters.filter_map(|(name, count)| Some((name.strip_prefix(prefix)?.to_owned(), count))).collect()
}

/// B12, 22.1
#[tokio::test]
async fn every_outcome_of_an_activity_is_counted_once() {
    let recorder = Recorder::default();
    let guard = metrics::set_default_local_recorder(&recorder);
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    let activities = ActivityRegistry::builder().register("Errand", errand).build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Errands", errands)
        .register(
            "Lost",
            |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("Nowhere", "").await },
        )
        .build();
    let options = RuntimeOptions { worker_tag_filter: TagFilter::Any, ..options() };
    let runtime = Runtime::start_with_options(store, activities, orchestrations, options).await;

    client.start_orchestration("day", "Errands", "").await.unwrap();
    client.start_orchestration("ghost", "Lost", "").await.unwrap();
    client.wait_for_status_change("day", 0, TIMER, PATIENCE).await.unwrap();
    client.raise_event("day", "enough", "").await.unwrap();
    for instance in ["day", "ghost"] {
        client.wait_for_orchestration(instance, PATIENCE).await.unwrap();
    }
    Arc::clone(&runtime).shutdown(None).await;
    drop(guard);

    let executions = counters_of(&recorder, "duroxide_activity_executions_total");
    let expected = [
        ("{activity_name=Errand,outcome=app_error,retry_attempt=0,tag=default}".to_owned(), 2),
        ("{activity_name=Errand,outcome=cancelled,retry_attempt=0,tag=slow}".to_owned(), 1),
        ("{activity_name=Errand,outcome=success,retry_attempt=0,tag=default}".to_owned(), 1),
    ];
    assert_eq!(executions, expected.into());
    let failures = counters_of(&recorder, "duroxide_activity_failures_total");
    assert_eq!(
        failures,
        [("{category=application}".to_owned(), 2), ("{category=poison}".to_owned(), 1)].into()
    );
    assert_eq!(counters_of(&recorder, "duroxide_activity_poison_total"), [(String::new(), 1)].into());
    let snapshot = runtime.metrics_snapshot().unwrap();
    assert_eq!(
        (snapshot.activity_success, snapshot.activity_app_errors, snapshot.activity_poison),
        (1, 2, 1)
    );
    assert_eq!((snapshot.unregistered_activity_backoff, snapshot.orch_poison), (2, 1));
    let series = "duroxide_orchestration_failures_total{category=poison,error_category=poison,\
                  error_type=poison,orchestration_name=Lost,version=1.0.0}";
    assert_eq!(recorder.counters().get(series), Some(&1), "its poison is its orchestration's failure");
}

/// B12, 22.1: an engine failure is counted under its own category, and a failed child as a failed call.
#[tokio::test]
async fn failures_of_the_engine_and_of_children_are_counted_once() {
    let recorder = Recorder::default();
    let guard = metrics::set_default_local_recorder(&recorder);
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    let restless = |_ctx: OrchestrationContext, _| async {
        std::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            std::task::Poll::<Result<String, String>>::Pending
        })
        .await
    };
    let orchestrations = OrchestrationRegistry::builder()
        .register("Restless", restless)
        .register("Refuses", |_ctx, _input| async { Err("no".to_owned()) })
        .register("Asks", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_sub_orchestration("Refuses", "").await
        })
        .build();
    let runtime = Runtime::start_with_options(store, activities(), orchestrations, options()).await;
    for (instance, orchestration) in [("r", "Restless"), ("a", "Asks")] {
        client.start_orchestration(instance, orchestration, "").await.unwrap();
        client.wait_for_orchestration(instance, PATIENCE).await.unwrap();
    }
    Arc::clone(&runtime).shutdown(None).await;
    drop(guard);

    let infrastructure = counters_of(&recorder, "duroxide_orchestration_infrastructure_errors_total");
    let labels = "{error_category=infrastructure,orchestration_name=Restless}".to_owned();
    assert_eq!(infrastructure, [(labels, 1)].into());
    let calls = counters_of(&recorder, "duroxide_suborchestration_calls_total");
    let labels = "{child_orchestration=Refuses,outcome=failed,parent_orchestration=Asks}".to_owned();
    assert_eq!(calls, [(labels, 1)].into());
    let snapshot = runtime.metrics_snapshot().unwrap();
    assert_eq!((snapshot.orch_failures, snapshot.orch_infrastructure_errors), (3, 1));
    assert_eq!((snapshot.orch_application_errors, snapshot.suborchestration_calls), (2, 1));
}

/// 22.1: a start is labelled by its initiator, also for a child that ends without running. A detached start has no
/// parent in the store, so it counts as a client's.
#[tokio::test]
async fn children_are_not_counted_as_started_by_clients() {
    let recorder = Recorder::default();
    let guard = metrics::set_default_local_recorder(&recorder);
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    let orchestrations = OrchestrationRegistry::builder()
        .register("Continues", continues)
        .register("Asks", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_orchestration("Continues", "loose", "last");
            ctx.schedule_sub_orchestration("Continues", "first").await?;
            ctx.schedule_sub_orchestration("Missing", "").await
        })
        .build();
    let runtime = Runtime::start_with_options(store, activities(), orchestrations, options()).await;
    client.start_orchestration("a", "Asks", "").await.unwrap();
    for instance in ["a", "loose"] {
        client.wait_for_orchestration(instance, PATIENCE).await.unwrap();
    }
    runtime.shutdown(None).await;
    drop(guard);

    let expected = [
        ("Asks", "1.0.0", "client"),
        ("Continues", "1.0.0", "client"),
        ("Continues", "1.0.0", "suborchestration"),
        ("Continues", "1.0.0", "continueAsNew"),
        ("Missing", "unknown", "suborchestration"),
    ]
    .map(|(name, version, by)| {
        (format!("{{initiated_by={by},orchestration_name={name},version={version}}}"), 1)
    });
    assert_eq!(counters_of(&recorder, "duroxide_orchestration_starts_total"), expected.into());
}
