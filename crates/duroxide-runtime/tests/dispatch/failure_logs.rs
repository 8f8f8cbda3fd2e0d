//! The log lines of failures: one each, once they are committed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use duroxide_core::{BackoffStrategy, ErrorDetails, OrchestrationContext, RetryPolicy, WorkItem};
use duroxide_provider::Provider;
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, OrchestrationRegistry, OrchestrationStatus, RuntimeOptions,
    UnregisteredBackoffConfig,
};
use duroxide_store::MemoryProvider;
use tracing::Level;

use crate::{
    WAIT_MAX,
    logs::{LogLine, Logs},
    scene::{brisk, start},
};

/// Poison at the second attempt, which comes at once.
fn impatient() -> RuntimeOptions {
    let no_wait = Duration::from_millis(1);
    RuntimeOptions {
        max_attempts: 1,
        unregistered_backoff: UnregisteredBackoffConfig { base_delay: no_wait, max_delay: no_wait },
        execution_cache_size: 0,
        ..brisk()
    }
}

/// `charge` fails the first time, `refuse` always.
fn activities() -> ActivityRegistry {
    let calls = Arc::new(AtomicU32::new(0));
    ActivityRegistry::builder()
        .register("charge", move |_ctx: ActivityContext, input: String| {
            let first = calls.fetch_add(1, Ordering::Relaxed) == 0;
            async move { if first { Err("card declined".to_owned()) } else { Ok(input) } }
        })
        .register(
            "refuse",
            |_ctx: ActivityContext, _input: String| async move { Err("out of stock".to_owned()) },
        )
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("retries", |ctx: OrchestrationContext, input: String| async move {
            let policy = RetryPolicy::new(2).with_backoff(BackoffStrategy::None);
            ctx.schedule_activity_with_retry("charge", input, policy).await
        })
        .register("fails", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("refuse", input).await
        })
        .register("changes", |ctx: OrchestrationContext, _input: String| async move {
            Ok(ctx.schedule_wait("go").await)
        })
        .register("asks", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("nobody's", input).await
        })
        .build()
}

/// The same name, but the code waits for something else.
fn changed() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("changes", |ctx: OrchestrationContext, _input: String| async move {
            Ok(ctx.schedule_wait("another").await)
        })
        .build()
}

async fn failure(client: &Client, instance: &str) -> ErrorDetails {
    match client.wait_for_orchestration(instance, WAIT_MAX).await.unwrap() {
        OrchestrationStatus::Failed { details, .. } => details,
        other => panic!("{instance}: {other:?}"),
    }
}

fn of<'a>(lines: &'a [LogLine], instance: &str, message: &str) -> &'a LogLine {
    let is_meant = |line: &&LogLine| {
        line.message == message && line.fields.get("instance").map(String::as_str) == Some(instance)
    };
    let found: Vec<_> = lines.iter().filter(is_meant).collect();
    assert_eq!(found.len(), 1, "{instance}: {message}: {lines:#?}");
    found[0]
}

fn fields<'a>(line: &'a LogLine, names: &[&str]) -> Vec<&'a str> {
    names.iter().map(|name| line.fields.get(*name).map_or("", String::as_str)).collect()
}

/// Failed activities, retries and failed instances are logged once each, with the fields an operator needs to find
/// them.
#[tokio::test]
async fn failures_of_code_are_logged_once() {
    let (logs, _guard) = Logs::capture();
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let client = Client::new(Arc::clone(&store));
    let runtime = start(&store, activities(), orchestrations(), impatient()).await;
    client.start_orchestration("r", "retries", "7").await.unwrap();
    client.start_orchestration("f", "fails", "8").await.unwrap();
    client.wait_for_orchestration("r", WAIT_MAX).await.unwrap();
    failure(&client, "f").await;
    client.start_orchestration("c", "changes", "").await.unwrap();
    client.cancel_instance("c", "enough").await.unwrap();
    failure(&client, "c").await;
    runtime.shutdown(None).await;

    let lines = logs.lines();
    let place = ["execution_id", "activity_name", "version", "activity_id", "reason"];
    let line = of(&lines, "r", "activity failed");
    assert_eq!(
        (line.level, fields(line, &place)),
        (Level::WARN, vec!["1", "charge", "1.0.0", "2", "card declined"])
    );
    let line = of(&lines, "r", "retrying a failed activity");
    assert_eq!(
        fields(
            line,
            &["activity_name", "version", "activity_id", "failed_attempts", "max_attempts", "reason"]
        ),
        ["charge", "1.0.0", "2", "1", "2", "card declined"]
    );
    let line = of(&lines, "f", "activity failed");
    assert_eq!(fields(line, &place), ["1", "refuse", "1.0.0", "2", "out of stock"]);
    let place = ["execution_id", "orchestration_name", "version", "event_id", "reason"];
    let line = of(&lines, "f", "orchestration failed");
    assert_eq!(
        (line.level, fields(line, &place)),
        (Level::WARN, vec!["1", "fails", "1.0.0", "4", "out of stock"])
    );
    let line = of(&lines, "c", "orchestration cancelled");
    assert_eq!((line.level, fields(line, &["reason"])), (Level::INFO, vec!["canceled: enough"]));
}

/// S1.12, S1.21, S1.23: a poisoned instance is logged once, with the published warning, and its error names the missing
/// handler and the nodes that lack it.
#[tokio::test]
async fn a_poisoned_instance_says_which_handler_was_missing() {
    let (logs, _guard) = Logs::capture();
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let client = Client::new(Arc::clone(&store));
    let runtime = start(&store, activities(), orchestrations(), impatient()).await;
    client.start_orchestration("ghost", "nowhere", "9").await.unwrap();
    client.start_orchestration("asks", "asks", "10").await.unwrap();
    let of_orchestration = failure(&client, "ghost").await;
    let of_activity = failure(&client, "asks").await;
    runtime.shutdown(None).await;

    let lines = logs.lines();
    let line = of(&lines, "ghost", "Orchestration message exceeded max attempts, marking as poison");
    let seen =
        fields(line, &["execution_id", "orchestration_name", "event_id", "attempt_count", "max_attempts"]);
    assert_eq!((line.level, seen), (Level::WARN, vec!["1", "nowhere", "2", "2", "1"]));
    let node = line.fields["node"].as_str();
    let reason = of_orchestration.poison_reason().unwrap();
    assert_eq!(reason, format!("orchestration nowhere@latest is not registered on node {node}"));
    let ErrorDetails::Poison { message, .. } = &of_orchestration else { panic!("{of_orchestration:?}") };
    assert_eq!(serde_json::from_str::<Vec<WorkItem>>(message).unwrap().len(), 1, "it holds the messages too");

    let line = of(&lines, "asks", "Activity message exceeded max attempts, marking as poison");
    let reason = format!("activity nobody's is not registered on node {node}");
    assert_eq!(fields(line, &["activity_name", "activity_id", "reason"]), ["nobody's", "2", reason.as_str()]);
    assert_eq!(of_activity.poison_reason().as_deref(), Some(reason.as_str()));
    let line = of(&lines, "asks", "orchestration failed");
    assert_eq!((line.level, fields(line, &["category"])), (Level::ERROR, vec!["poison"]));
    let failed = |line: &&LogLine| line.message.contains("failed") || line.message.contains("poison");
    assert_eq!(lines.iter().filter(failed).count(), 3 + 2, "and two that were abandoned before: {lines:#?}");
}

/// The error names every node that lacks the handler, and no other, so that an operator sees how far a deployment has
/// come.
#[tokio::test]
async fn a_poisoned_instance_names_all_nodes_without_the_handler() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let client = Client::new(Arc::clone(&store));
    let idle = || RuntimeOptions { orchestration_concurrency: 0, worker_concurrency: 0, ..impatient() };
    let without = start(&store, activities(), orchestrations(), idle()).await;
    let nowhere = OrchestrationRegistry::builder()
        .register("nowhere", |_ctx: OrchestrationContext, input: String| async move { Ok(input) })
        .build();
    let nobodys = ActivityRegistry::builder()
        .register("nobody's", |_ctx: ActivityContext, input: String| async move { Ok(input) })
        .build();
    let with = start(&store, nobodys, nowhere, idle()).await;
    let runtime = start(&store, activities(), orchestrations(), impatient()).await;
    let nodes = store.as_management_capability().unwrap().list_nodes().await.unwrap();
    let [other, _able, this] = &nodes[..] else { panic!("{nodes:?}") };

    client.start_orchestration("ghost", "nowhere", "9").await.unwrap();
    client.start_orchestration("asks", "asks", "10").await.unwrap();
    let on_nodes = format!("is not registered on nodes {}, {}", this.name, other.name);
    let reason = failure(&client, "ghost").await.poison_reason().unwrap();
    assert_eq!(reason, format!("orchestration nowhere@latest {on_nodes}"));
    let reason = failure(&client, "asks").await.poison_reason().unwrap();
    assert_eq!(reason, format!("activity nobody's {on_nodes}"));
    for node in [without, with, runtime] {
        node.shutdown(None).await;
    }
}

/// Nondeterminism is logged as an error of the deployment.
#[tokio::test]
async fn nondeterminism_is_an_error_in_the_log() {
    let (logs, _guard) = Logs::capture();
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let client = Client::new(Arc::clone(&store));
    let before = start(&store, activities(), orchestrations(), impatient()).await;
    client.start_orchestration("n", "changes", "").await.unwrap();
    while store.read("n").await.unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    before.shutdown(None).await;
    let after = start(&store, activities(), changed(), impatient()).await;
    client.raise_event("n", "go", "").await.unwrap();
    failure(&client, "n").await;
    after.shutdown(None).await;

    let lines = logs.lines();
    let line = of(&lines, "n", "orchestration failed");
    assert_eq!((line.level, fields(line, &["category"])), (Level::ERROR, vec!["configuration"]));
    assert!(line.fields["reason"].starts_with("nondeterministic: schedule mismatch"), "{line:?}");
}

/// The labels of two messages of one instance differ.
#[tokio::test]
async fn dropped_messages_are_named() {
    let (logs, _guard) = Logs::capture();
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let client = Client::new(Arc::clone(&store));
    let runtime = start(&store, activities(), orchestrations(), impatient()).await;
    client.start_orchestration("f", "fails", "8").await.unwrap();
    failure(&client, "f").await;
    client.raise_event("f", "paid", "secret").await.unwrap();
    client.enqueue_event("f", "inbox", "1").await.unwrap();
    let dropped = || -> String {
        let lines = logs.lines().into_iter().filter(|line| line.message.contains("has ended"));
        lines.map(|line| line.fields["messages"].clone()).collect()
    };
    let both_are_logged = async {
        while !(dropped().contains("'paid'") && dropped().contains("'inbox'")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_MAX, both_are_logged).await.unwrap();
    runtime.shutdown(None).await;
    let named = dropped();
    for message in ["ExternalRaised 'paid' (6 bytes)", "ExternalRaisedPersistent 'inbox' (1 bytes)"] {
        assert_eq!(named.matches(message).count(), 1, "{named}");
    }
    assert!(!named.contains("secret"), "payloads are logged by size");
}
