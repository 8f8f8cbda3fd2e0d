//! Work that cannot be done: it bounces, it is poisoned, and nothing else suffers.

use std::{sync::Arc, time::Duration};

use duroxide_core::{ErrorDetails, OrchestrationContext, PoisonMessageType};
use duroxide_provider::Provider;
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, OrchestrationRegistry, OrchestrationStatus, RuntimeOptions,
    UnregisteredBackoffConfig,
};
use duroxide_store::MemoryProvider;

use crate::{
    PATIENCE,
    scene::{Counter, brisk, callers, echo, kinds, output, run, start},
};

fn impatient() -> RuntimeOptions {
    RuntimeOptions {
        max_attempts: 2,
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(10),
            max_delay: Duration::from_millis(20),
        },
        ..brisk()
    }
}

async fn failure(client: &Client, instance: &str) -> ErrorDetails {
    match client.wait_for_orchestration(instance, PATIENCE).await.unwrap() {
        OrchestrationStatus::Failed { details, .. } => details,
        other => panic!("{instance}: {other:?}"),
    }
}

/// S0.7, S0.31, S0.43: a missing name and a missing version.
#[tokio::test]
async fn an_unregistered_orchestration_bounces_and_then_poisons() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let runtime = start(&store, echo(&Counter::default()), callers(), impatient()).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("name", "ghost", "in").await.unwrap();
    client.start_orchestration_versioned("version", "one", "7.0.0", "in").await.unwrap();
    for instance in ["name", "version"] {
        let details = failure(&client, instance).await;
        assert_eq!(details.category(), "poison");
        let expected = format!("poison: orchestration {instance} exceeded 3 attempts (max 2)");
        assert_eq!(details.display_message(), expected);
        assert_eq!(kinds(&store, instance).await, ["OrchestrationStarted", "OrchestrationFailed"]);
    }
    // A fact is counted after its commit, so the client may see the end first.
    Arc::clone(&runtime).shutdown(None).await;
    let snapshot = runtime.metrics_snapshot().unwrap();
    assert_eq!((snapshot.unregistered_orch_backoff, snapshot.orch_poison), (4, 2));
}

/// S0.44, S1.24, 2.5: a poisoned activity fails its orchestration.
#[tokio::test]
async fn an_unregistered_activity_poisons_and_fails_its_orchestration() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let runtime = start(&store, ActivityRegistry::default(), callers(), impatient()).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("i", "one", "in").await.unwrap();
    let ErrorDetails::Poison { message_type, message, .. } = failure(&client, "i").await else {
        panic!("not poison")
    };
    assert!(matches!(message_type, PoisonMessageType::Activity { activity_id: 2, .. }));
    assert!(message.contains("\"ActivityExecute\""), "{message}");
    // A fact is counted after its commit, so the client may see the end first.
    Arc::clone(&runtime).shutdown(None).await;
    let snapshot = runtime.metrics_snapshot().unwrap();
    assert_eq!((snapshot.unregistered_activity_backoff, snapshot.activity_poison), (2, 1));
}

/// S0.34: an unregistered child bounces while its parent waits; its poison fails the parent.
#[tokio::test]
async fn a_parent_hears_of_its_poisoned_child() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let orchestrations = OrchestrationRegistry::builder()
        .register("parent", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_sub_orchestration("ghost", input).await
        })
        .build();
    let runtime = start(&store, echo(&Counter::default()), orchestrations, impatient()).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("p", "parent", "in").await.unwrap();
    let details = failure(&client, "p").await;
    assert_eq!(details.display_message(), "poison: orchestration p::sub::2 exceeded 3 attempts (max 2)");
    runtime.shutdown(None).await;
}

/// S0.A4, 6.3: a cancellation needs no handler.
#[tokio::test]
async fn cancelling_during_backoff_ends_the_instance_as_cancelled() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("i", "ghost", "in").await.unwrap();
    client.cancel_instance("i", "never mind").await.unwrap();
    let runtime = start(&store, echo(&Counter::default()), callers(), impatient()).await;
    assert_eq!(failure(&client, "i").await.display_message(), "canceled: never mind");
    runtime.shutdown(None).await;
}

/// S0.A1, 8.6: a successor without handler is poisoned as its own execution.
#[tokio::test]
async fn a_successor_without_handler_is_poisoned_as_its_own_execution() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let orchestrations = OrchestrationRegistry::builder()
        .register("loop", |ctx: OrchestrationContext, input: String| async move {
            ctx.continue_as_new_versioned("9.0.0", input).await
        })
        .build();
    let runtime = start(&store, echo(&Counter::default()), orchestrations, impatient()).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("i", "loop", "in").await.unwrap();
    assert_eq!(failure(&client, "i").await.category(), "poison");
    let first = store.read_with_execution("i", 1).await.unwrap();
    assert!(first.last().unwrap().is_terminal());
    assert_eq!(kinds(&store, "i").await, ["OrchestrationStarted", "OrchestrationFailed"]);
    assert_eq!(store.read("i").await.unwrap()[0].execution_id, 2);
    runtime.shutdown(None).await;
}

/// 7.2
#[tokio::test]
async fn a_panicking_activity_is_a_failed_activity() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder()
        .register("echo", |_ctx: ActivityContext, _input: String| async move { panic!("out of paper") })
        .build();
    let runtime = start(&store, activities, callers(), brisk()).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("i", "one", "in").await.unwrap();
    assert!(failure(&client, "i").await.display_message().contains("out of paper"));
    runtime.shutdown(None).await;
}

/// 15.2
#[tokio::test]
async fn an_oversized_activity_result_fails_the_activity() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder()
        .register("echo", |_ctx: ActivityContext, _input: String| async move { Ok("x".repeat(2_000)) })
        .build();
    let mut options = brisk();
    options.limits.max_payload_bytes = Some(1_000);
    let runtime = start(&store, activities, callers(), options).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("i", "one", "in").await.unwrap();
    let text = failure(&client, "i").await.display_message();
    assert!(text.contains("size (2000 bytes) exceeds limit (1000 bytes)"), "{text}");
    runtime.shutdown(None).await;
}

/// B13 without a stuck process: an activity that outlives its timeout again and again is poisoned.
#[tokio::test]
async fn an_activity_that_never_ends_is_poisoned() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder()
        .register("echo", |ctx: ActivityContext, input: String| async move {
            if ctx.instance_id() == "stuck" {
                std::future::pending::<()>().await;
            }
            Ok(input)
        })
        .build();
    let mut options = impatient();
    options.worker_concurrency = 1;
    options.activity_execution_timeout = Some(Duration::from_millis(50));
    options.activity_cancellation_grace_period = Duration::from_millis(10);
    let runtime = start(&store, activities, callers(), options).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("stuck", "one", "in").await.unwrap();
    for number in 0..5 {
        run(&client, &format!("healthy-{number}"), "one").await;
    }
    assert_eq!(failure(&client, "stuck").await.category(), "poison");
    runtime.shutdown(None).await;
}

/// 2.15, C19: a turn that does not return in time costs an attempt, and the slot goes on meanwhile.
#[tokio::test]
async fn a_turn_that_takes_too_long_is_given_up_and_poisoned() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (release, stuck) = std::sync::mpsc::channel::<()>();
    let stuck = Arc::new(std::sync::Mutex::new(stuck));
    let orchestrations = OrchestrationRegistry::builder()
        .register("stuck", move |_ctx: OrchestrationContext, input: String| {
            // Blocks its thread until the test ends.
            let _ = stuck.lock().unwrap().recv();
            async move { Ok(input) }
        })
        .register("one", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("echo", input).await
        })
        .build();
    let mut options = impatient();
    options.orchestration_concurrency = 1;
    options.turn_timeout = Some(Duration::from_millis(100));
    options.orchestrator_lock_timeout = Duration::from_millis(200);
    let runtime = start(&store, echo(&Counter::default()), orchestrations, options).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("s", "stuck", "in").await.unwrap();
    for number in 0..5 {
        run(&client, &format!("healthy-{number}"), "one").await;
    }
    assert_eq!(failure(&client, "s").await.category(), "poison");
    drop(release);
    assert_eq!(output(&client, "healthy-0").await, "in");
    runtime.shutdown(None).await;
}
