//! Pinned versions: which executions a node takes, and what becomes of the others (S2, S3).

use std::{sync::Arc, time::Duration};

use duroxide_core::{
    ConfigErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext, PoisonMessageType, WorkItem,
    current_build_version,
};
use duroxide_provider::{ExecutionMetadata, Provider, Round, SemverRange};
use duroxide_runtime::{Client, OrchestrationRegistry, OrchestrationStatus, RuntimeOptions};
use duroxide_store::MemoryProvider;
use semver::Version;
use tracing::Level;

use crate::{
    PATIENCE,
    faults::Faulty,
    logs::Logs,
    scene::{Counter, brisk, callers, echo, kinds, output, run, start},
};

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn supports(min: &str, max: &str) -> RuntimeOptions {
    RuntimeOptions {
        supported_replay_versions: Some(SemverRange::new(version(min), version(max))),
        ..brisk()
    }
}

/// Running instances of `one` that were started by other builds, each with a message that wakes it.
async fn started_by(store: &Arc<dyn Provider>, instances: &[(&str, &str)]) {
    for (instance, build) in instances {
        begin(store, instance, build, None).await;
    }
    for (instance, _) in instances {
        wake(store, instance).await;
    }
}

async fn begin(store: &Arc<dyn Provider>, instance: &str, build: &str, parent: Option<(&str, u64)>) {
    let start = WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: "one".into(),
        input: "in".into(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    store.enqueue_for_orchestrator(start, None).await.unwrap();
    let (_, token, _) =
        store.fetch_orchestration_item(PATIENCE, Duration::ZERO, None).await.unwrap().unwrap();
    let started = EventKind::OrchestrationStarted {
        name: "one".into(),
        version: "1.0.0".into(),
        input: "in".into(),
        parent_instance: parent.map(|(instance, _)| instance.to_owned()),
        parent_id: parent.map(|(_, id)| id),
        parent_execution_id: parent.map(|_| 1),
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let event = Event {
        event_id: 1,
        source_event_id: None,
        instance_id: instance.into(),
        execution_id: 1,
        timestamp_ms: 1,
        duroxide_version: build.into(),
        kind: started,
    };
    let metadata = ExecutionMetadata {
        orchestration_name: Some("one".into()),
        orchestration_version: Some("1.0.0".into()),
        pinned_duroxide_version: Version::parse(build).ok(),
        ..ExecutionMetadata::default()
    };
    let round = Round { execution_id: 1, history_delta: vec![event], metadata, ..Round::default() };
    store.commit_round(&token, round).await.unwrap();
}

async fn wake(store: &Arc<dyn Provider>, instance: &str) {
    let message =
        WorkItem::ExternalRaised { instance: instance.into(), name: "e".into(), data: String::new() };
    store.enqueue_for_orchestrator(message, None).await.unwrap();
}

async fn failure(client: &Client, instance: &str) -> ErrorDetails {
    match client.wait_for_orchestration(instance, PATIENCE).await.unwrap() {
        OrchestrationStatus::Failed { details, .. } => details,
        other => panic!("{instance}: {other:?}"),
    }
}

/// S3.T12, S3.T13, S3.T27: what a filtering provider holds back stays as it is; what fits runs.
#[tokio::test]
async fn an_incompatible_execution_is_never_fetched_and_a_compatible_one_runs() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let build = current_build_version().to_string();
    started_by(&store, &[("future", "99.0.0"), ("now", &build)]).await;
    let runtime = start(&store, echo(&Counter::default()), callers(), brisk()).await;
    let client = Client::new(Arc::clone(&store));
    assert_eq!(output(&client, "now").await, "in");
    assert_eq!(kinds(&store, "future").await, ["OrchestrationStarted"]);
    assert_eq!(runtime.metrics_snapshot().unwrap().incompatible_version_abandoned, 0);
    runtime.shutdown(None).await;
}

/// S2.20 `unsupported_pinned_runtime_version_bounces_then_poison`, S3.T14, S3.T30, B3, C7, C8: with a provider
/// that ignores the filter it bounces three times, one second each, and the fourth fetch ends it.
#[tokio::test]
async fn an_execution_no_node_can_replay_bounces_and_is_then_failed() {
    let (logs, _guard) = Logs::capture();
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    started_by(&inner, &[("old", "0.1.0")]).await;
    let store: Arc<dyn Provider> =
        Arc::new(Faulty { ignores_filter: true, ..Faulty::over(Arc::clone(&inner)) });
    let options = RuntimeOptions { max_attempts: 3, ..supports("99.0.0", "99.9.9") };
    let runtime = start(&store, echo(&Counter::default()), callers(), options).await;
    let client = Client::new(Arc::clone(&inner));
    let ErrorDetails::Configuration { kind, resource, message } = failure(&client, "old").await else {
        panic!("not a configuration error")
    };
    assert_eq!((kind, resource.as_str()), (ConfigErrorKind::UnsupportedVersion, "old"));
    assert_eq!(
        message.unwrap(),
        "work item could not be processed on this node (orchestration not registered here, or execution \
         history is unsupported): execution pinned at 0.1.0, supported >=99.0.0, <=99.9.9, attempt 4 (max 3)"
    );
    assert_eq!(kinds(&inner, "old").await, ["OrchestrationStarted", "OrchestrationFailed"]);
    Arc::clone(&runtime).shutdown(None).await;
    assert_eq!(runtime.metrics_snapshot().unwrap().incompatible_version_abandoned, 3);

    let text = "Execution pinned at incompatible version, abandoning (runtime-side check)";
    let warnings: Vec<_> = logs.lines().into_iter().filter(|line| line.message == text).collect();
    assert_eq!(warnings.len(), 3);
    assert_eq!((warnings[0].level, warnings[0].target.as_str()), (Level::WARN, "duroxide::runtime"));
    let fields = [
        ("attempt_count", "1"),
        ("instance", "old"),
        ("pinned_version", "0.1.0"),
        ("supported_range", ">=99.0.0, <=99.9.9"),
    ];
    assert_eq!(warnings[0].field_pairs(), fields);
}

/// B3: the parent of such an execution hears of it.
#[tokio::test]
async fn the_parent_of_an_unsupported_child_is_told() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    begin(&inner, "p::sub::2", "99.0.0", Some(("p", 2))).await;
    wake(&inner, "p::sub::2").await;
    let store: Arc<dyn Provider> =
        Arc::new(Faulty { ignores_filter: true, ..Faulty::over(Arc::clone(&inner)) });
    let options = RuntimeOptions { max_attempts: 0, orchestration_concurrency: 1, ..brisk() };
    let runtime = start(&store, echo(&Counter::default()), callers(), options).await;
    failure(&Client::new(Arc::clone(&inner)), "p::sub::2").await;
    runtime.shutdown(None).await;
    // The parent is unknown here, so its message waits in the store for it.
    let start = WorkItem::StartOrchestration {
        instance: "p".into(),
        orchestration: "one".into(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    inner.enqueue_for_orchestrator(start, None).await.unwrap();
    let (item, ..) = inner.fetch_orchestration_item(PATIENCE, Duration::ZERO, None).await.unwrap().unwrap();
    let told = |item: &WorkItem| matches!(item, WorkItem::SubOrchFailed { parent_id: 2, .. });
    assert!(item.messages.iter().any(told), "{:?}", item.messages);
}

/// S2.22 `e2e_replay_engine_version_bounce_two_nodes`, S3.T16, S3.T18: each node takes what it can replay.
#[tokio::test]
async fn two_nodes_of_different_ranges_share_the_work() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (old_runs, new_runs) = (Counter::default(), Counter::default());
    let (one, two) = ("1.5.0", "2.5.0");
    started_by(&store, &[("a", one), ("b", one), ("c", one), ("d", two), ("e", two)]).await;
    let old = start(&store, echo(&old_runs), callers(), supports("1.0.0", "1.9.999")).await;
    let client = Client::new(Arc::clone(&store));
    for instance in ["a", "b", "c"] {
        assert_eq!(output(&client, instance).await, "in");
    }
    assert_eq!(kinds(&store, "d").await.len(), 1, "the old node commits nothing");
    let new = start(&store, echo(&new_runs), callers(), supports("2.0.0", "2.9.999")).await;
    for instance in ["d", "e"] {
        assert_eq!(output(&client, instance).await, "in");
    }
    // Activities are not pinned: either node may have run them.
    assert_eq!(old_runs.get() + new_runs.get(), 5, "nothing ran twice");
    old.shutdown(None).await;
    new.shutdown(None).await;
}

/// S3.T26, S3.T28, S2.21: the default range and a narrowed one.
#[tokio::test]
async fn ranges_decide_what_runs() {
    let build = current_build_version().to_string();
    for (options, running, waiting) in [
        (brisk(), vec!["0.0.1", "0.4.0", build.as_str()], vec!["99.0.0"]),
        (supports("1.0.0", "1.9.999"), vec!["1.5.0", "1.0.0", "1.9.999"], vec!["0.9.0", "2.0.0"]),
    ] {
        let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
        let all: Vec<(&str, &str)> = waiting.iter().chain(&running).map(|pin| (*pin, *pin)).collect();
        started_by(&store, &all).await;
        let runtime = start(&store, echo(&Counter::default()), callers(), options).await;
        let client = Client::new(Arc::clone(&store));
        for pin in running {
            assert_eq!(output(&client, pin).await, "in", "{pin}");
        }
        for pin in waiting {
            assert_eq!(kinds(&store, pin).await.len(), 1, "{pin}");
        }
        runtime.shutdown(None).await;
    }
}

/// S2.6, S3.T44 in the runtime: further ranges are ORed.
#[tokio::test]
async fn extra_ranges_widen_what_runs() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    started_by(&store, &[("far", "7.1.0")]).await;
    let options = RuntimeOptions {
        extra_replay_versions: vec![SemverRange::new(version("7.0.0"), version("7.9.0"))],
        ..supports("1.0.0", "1.9.999")
    };
    let runtime = start(&store, echo(&Counter::default()), callers(), options).await;
    assert_eq!(output(&Client::new(Arc::clone(&store)), "far").await, "in");
    runtime.shutdown(None).await;
}

/// S3.T19, S3.T24, S3.41: every execution is pinned to the build that started it, children too.
#[tokio::test]
async fn new_executions_are_pinned_to_this_build() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let orchestrations = OrchestrationRegistry::builder()
        .register("child", |_ctx: OrchestrationContext, input: String| async move { Ok(input) })
        .register("parent", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_sub_orchestration("child", input).await
        })
        .build();
    let runtime = start(&store, echo(&Counter::default()), orchestrations, brisk()).await;
    let client = Client::new(Arc::clone(&store));
    run(&client, "p", "parent").await;
    for instance in ["p", "p::sub::2"] {
        let first = store.read(instance).await.unwrap().remove(0);
        assert_eq!(first.duroxide_version, current_build_version().to_string());
    }
    runtime.shutdown(None).await;
}

/// S2.18, 17.4: an unreadable stamp runs, with a warning on every turn.
#[tokio::test]
async fn an_unreadable_stamp_counts_as_compatible_with_a_warning() {
    let (logs, _guard) = Logs::capture();
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    started_by(&store, &[("odd", "yesterday")]).await;
    let runtime = start(&store, echo(&Counter::default()), callers(), brisk()).await;
    assert_eq!(output(&Client::new(Arc::clone(&store)), "odd").await, "in");
    let warned = |line: &crate::logs::LogLine| line.message.starts_with("Invalid pinned version");
    let warnings: Vec<_> = logs.lines().into_iter().filter(warned).collect();
    assert_eq!(warnings.len(), 2, "one turn replayed, one turn on the live execution");
    assert!(warnings.iter().all(|line| line.fields["instance"] == "odd" && line.level == Level::WARN));
    runtime.shutdown(None).await;
}

/// S3.T29, S3.T42, S3.38, C10: a wide range drains what cannot be decoded into poison, and warns at start.
#[tokio::test]
async fn an_undecodable_history_ends_in_poison_and_its_parent_is_told() {
    let (logs, _guard) = Logs::capture();
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    begin(&inner, "p::sub::2", "99.0.0", Some(("p", 2))).await;
    wake(&inner, "p::sub::2").await;
    let faulty = Faulty::over(Arc::clone(&inner));
    faulty.damaged.lock().unwrap().insert("p::sub::2".into(), 0);
    let store: Arc<dyn Provider> = Arc::new(faulty);
    let options = RuntimeOptions { max_attempts: 1, ..supports("0.0.0", "99.9.9") };
    let runtime = start(&store, echo(&Counter::default()), callers(), options).await;
    let client = Client::new(Arc::clone(&inner));
    let ErrorDetails::Poison { message_type, message, .. } = failure(&client, "p::sub::2").await else {
        panic!("not poison")
    };
    assert!(matches!(message_type, PoisonMessageType::FailedDeserialization { .. }));
    assert!(message.contains("position 0"), "{message}");
    let history = inner.read("p::sub::2").await.unwrap();
    assert_eq!(history.last().unwrap().event_id, 2, "behind the last stored event");
    assert!(logs.lines().iter().any(|line| line.message.contains("reach above this build")));
    runtime.shutdown(None).await;
}

/// S3.T31, S3.45, api 15: what a node says when it starts.
#[tokio::test]
async fn a_node_says_what_it_is_and_what_it_can_replay() {
    let (logs, _guard) = Logs::capture();
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let options = RuntimeOptions {
        extra_replay_versions: vec![SemverRange::new(version("7.0.0"), version("7.9.0"))],
        ..supports("0.1.0", "0.4.0")
    };
    let runtime = start(&store, echo(&Counter::default()), callers(), options).await;
    runtime.shutdown(None).await;
    let lines = logs.lines();
    let build = current_build_version();
    let hello = format!("duroxide runtime ({build}) starting with provider memory ({build})");
    assert!(lines.iter().any(|line| line.message == hello && line.level == Level::INFO));
    let text = "Orchestration dispatcher capability filter configured";
    let filter = lines.iter().find(|line| line.message == text).unwrap();
    assert_eq!(filter.fields["supported_range"], ">=0.1.0, <=0.4.0 | >=7.0.0, <=7.9.0");
}
