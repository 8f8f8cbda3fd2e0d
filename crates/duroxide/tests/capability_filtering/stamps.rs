//! The stamp of the first event is the pin. An execution without a readable stamp may run on every node.

use std::sync::Arc;

use duroxide::{
    Client, ConfigErrorKind, ErrorDetails, Event, EventKind, OrchestrationRegistry, OrchestrationStatus,
    RuntimeOptions,
    providers::{ExecutionMetadata, Provider},
};
use semver::Version;
use tracing::Level;

use crate::{
    Bypass, commit_first_visible,
    fixture::{
        File, ended, failure, final_snapshot, intercept::Intercepted, logs::Logs, node, output,
        quick_options, recorded,
    },
    history, named, no_activities, pinned, start, stored, supporting, waiting,
};

/// S3.T21, S2.18: the runtime takes the pin from the stamp of `OrchestrationStarted`, and from no other event.
#[tokio::test]
async fn pinned_version_extracted_from_orchestration_started_event() {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let inner = file.open().await;
    inner.enqueue_for_orchestrator(start("pi", "Waits", ""), None).await.unwrap();
    let mut events = history("pi", "3.1.4");
    events[1].duroxide_version = "0.1.0".into();
    commit_first_visible(&inner, events, vec![], named()).await;
    let client = Client::new(inner.clone());
    client.raise_event("pi", "go", "went").await.unwrap();
    let store: Arc<dyn Provider> = Intercepted::new(inner, Bypass::default());
    let runtime = node(&store, no_activities(), waiting(), quick_options()).await;

    let details = failure(ended(&client, "pi").await);
    runtime.shutdown(None).await;

    assert!(details.display_message().contains("pinned at 3.1.4,"), "{details:?}");
    let lines = logs.with("Execution pinned at incompatible version");
    assert!(
        !lines.is_empty() && lines.iter().all(|line| line.field("pinned_version") == "3.1.4"),
        "{lines:?}"
    );
}

/// S2.18, 17.4: a stamp that is no version counts as compatible, and every turn says so, whether the execution is
/// replayed or still in memory.
#[tokio::test]
async fn an_unreadable_stamp_is_compatible_and_warned_about() {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let store = file.open().await;
    stored(&store, "odd", "yesterday", named()).await;
    let orchestrations = OrchestrationRegistry::builder()
        .register("Waits", |ctx, _input| async move {
            ctx.schedule_wait("go").await;
            Ok(ctx.schedule_wait("on").await)
        })
        .build();
    let runtime = node(&store, no_activities(), orchestrations, quick_options()).await;
    let client = Client::new(store);
    recorded(&client, "odd", |event| event.event_id == 4).await;
    client.raise_event("odd", "on", "went on").await.unwrap();
    assert_eq!(output(ended(&client, "odd").await), "went on");
    runtime.shutdown(None).await;

    let lines = logs.with("Invalid pinned version");
    assert_eq!(lines.len(), 2, "{lines:?}");
    for line in lines {
        assert_eq!((line.level, line.field("instance")), (Level::WARN, "odd"));
    }
}

/// S2.18: an instance without a history runs on any node.
#[tokio::test]
async fn a_start_is_compatible_with_every_range() {
    let file = File::new();
    let store = file.open().await;
    let echo =
        OrchestrationRegistry::builder().register("Echo", |_ctx, input| async move { Ok(input) }).build();
    let runtime = node(&store, no_activities(), echo, supporting("98.0.0", "99.0.0")).await;
    let client = Client::new(store);
    client.start_orchestration("new", "Echo", "x").await.unwrap();
    assert_eq!(output(ended(&client, "new").await), "x");
    assert_eq!(final_snapshot(runtime).await.incompatible_version_abandoned, 0);
}

/// S2.18: a history that does not begin with its start has no pin. Replay reports the error.
#[tokio::test]
async fn a_history_without_its_start_is_compatible_and_fails_by_replay() {
    let file = File::new();
    let inner = file.open().await;
    inner.enqueue_for_orchestrator(start("headless", "Waits", ""), None).await.unwrap();
    let kind = EventKind::ExternalSubscribed { name: "go".into() };
    let event =
        Event { duroxide_version: "99.0.0".into(), ..Event::with_event_id(1, "headless", 1, None, kind) };
    commit_first_visible(&inner, vec![event], vec![], named()).await;
    let client = Client::new(inner.clone());
    client.raise_event("headless", "go", "went").await.unwrap();
    let store: Arc<dyn Provider> = Intercepted::new(inner, Bypass::default());
    let runtime = node(&store, no_activities(), waiting(), quick_options()).await;

    let details = failure(ended(&client, "headless").await);

    let ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, message: Some(message), .. } =
        details
    else {
        panic!("{details:?}")
    };
    assert_eq!(message, "corrupted history: first event must be OrchestrationStarted");
    assert_eq!(final_snapshot(runtime).await.incompatible_version_abandoned, 0);
}

/// S3.26, 17.1: the runtime compares numbers, and only major, minor and patch, as the provider does.
#[tokio::test]
async fn the_runtime_compares_stamps_as_numbers() {
    let file = File::new();
    let inner = file.open().await;
    let versions = ["1.9.0", "1.10.0-rc.1", "1.10.0+build.7", "1.2.0-alpha", "1.10.1", "1.1000.0", "1.1.9"];
    for version in versions {
        pinned(&inner, version, version).await;
    }
    let client = Client::new(inner.clone());
    let store: Arc<dyn Provider> = Intercepted::new(inner, Bypass::default());
    let options = RuntimeOptions { max_attempts: 1, ..supporting("1.2.0", "1.10.0") };
    let runtime = node(&store, no_activities(), waiting(), options).await;

    let mut completed = Vec::new();
    for version in versions {
        match ended(&client, version).await {
            OrchestrationStatus::Completed { .. } => completed.push(version),
            status => assert_eq!(failure(status).category(), "configuration", "{version}"),
        }
    }
    assert_eq!(completed, versions[..4]);
    runtime.shutdown(None).await;
}

/// The pin of an execution as the file holds it; the columns must be integers.
fn stored_pin(file: &File, instance: &str, execution_id: i64) -> Option<(i64, i64, i64)> {
    const SQL: &str = "SELECT major, minor, patch FROM execution WHERE execution_id = ?2
                       AND instance = (SELECT id FROM instance WHERE instance_id = ?1)";
    let columns = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let (major, minor, patch): (Option<i64>, Option<i64>, Option<i64>) =
        file.connect().query_row(SQL, (instance, execution_id), columns).expect("the execution is stored");
    Some((major?, minor?, patch?))
}

/// S3.24: a store keeps a pin as three integers, of any size, per execution.
#[tokio::test]
async fn a_pin_is_stored_as_three_integers() {
    let file = File::new();
    let store = file.open().await;
    pinned(&store, "large", "1.1000000.4000000").await;
    pinned(&store, "odd", "2.0.0-rc.1+build.7").await;
    stored(&store, "unpinned", "3.0.0", named()).await;
    assert_eq!(stored_pin(&file, "large", 1), Some((1, 1_000_000, 4_000_000)));
    assert_eq!(stored_pin(&file, "odd", 1), Some((2, 0, 0)));
    assert_eq!(stored_pin(&file, "unpinned", 1), None);
}

/// S3.25, S3.23: the store compares the pin of the metadata and never reads it from an event.
#[tokio::test]
async fn the_store_filters_by_the_pin_of_the_metadata() {
    let file = File::new();
    let store = file.open().await;
    let told = |version| ExecutionMetadata { pinned_duroxide_version: Some(version), ..named() };
    stored(&store, "told-future", "0.1.0", told(Version::new(99, 0, 0))).await;
    stored(&store, "told-past", "0.1.0", told(Version::new(0, 1, 0))).await;
    let runtime = node(&store, no_activities(), waiting(), quick_options()).await;
    let client = Client::new(store);

    assert_eq!(output(ended(&client, "told-past").await), "went");
    assert_eq!(final_snapshot(runtime).await.orch_dispatcher_items_fetched, 1);
    let status = client.get_orchestration_status("told-future").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Running { .. }), "{status:?}");
}

/// S2.15, S3.6: an execution keeps its pin on every node that runs its turns.
#[tokio::test]
async fn a_pin_stays_over_turns_of_other_builds() {
    let file = File::new();
    let store = file.open().await;
    pinned(&store, "long", "0.1.0").await;
    let orchestrations = OrchestrationRegistry::builder()
        .register("Waits", |ctx, _input| async move {
            ctx.schedule_wait("go").await;
            ctx.schedule_wait("on").await;
            Ok(ctx.schedule_wait("end").await)
        })
        .build();
    let client = Client::new(store.clone());
    for (event_id, signal) in [(4, "on"), (6, "end")] {
        let runtime = node(&store, no_activities(), orchestrations.clone(), quick_options()).await;
        recorded(&client, "long", |event| event.event_id == event_id).await;
        runtime.shutdown(None).await;
        assert_eq!(stored_pin(&file, "long", 1), Some((0, 1, 0)));
        client.raise_event("long", signal, "ended").await.unwrap();
    }
    let runtime = node(&store, no_activities(), orchestrations, quick_options()).await;
    assert_eq!(output(ended(&client, "long").await), "ended");
    assert_eq!(client.read_execution_history("long", 1).await.unwrap()[0].duroxide_version, "0.1.0");
    assert_eq!(stored_pin(&file, "long", 1), Some((0, 1, 0)));
    runtime.shutdown(None).await;
}
