//! Limits on user code: panics, sizes and time, in activities and turns.

use std::{sync::Arc, time::Duration};

use duroxide_core::ErrorDetails;
use duroxide_provider::Provider;
use duroxide_runtime::{ActivityContext, ActivityRegistry, Client, OrchestrationStatus, RuntimeOptions};
use duroxide_store::MemoryProvider;

use crate::{
    WAIT_MAX,
    scene::{Counter, brisk, callers, echo, output, run, start, stuck},
};

fn impatient() -> RuntimeOptions {
    RuntimeOptions { max_attempts: 2, ..brisk() }
}

async fn failure(client: &Client, instance: &str) -> ErrorDetails {
    match client.wait_for_orchestration(instance, WAIT_MAX).await.unwrap() {
        OrchestrationStatus::Failed { details, .. } => details,
        other => panic!("{instance}: {other:?}"),
    }
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

/// B13 without a stuck process: an activity that exceeds its timeout again and again is poisoned.
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

/// 2.15, C19: a turn that does not return in time is charged an attempt, and its slot runs other turns meanwhile.
#[tokio::test]
async fn a_turn_that_takes_too_long_is_given_up_and_poisoned() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (orchestrations, stuck) = stuck();
    let mut options = impatient();
    options.orchestration_concurrency = 1;
    options.turn_timeout = Some(Duration::from_millis(100));
    options.orchestrator_lock_timeout = Duration::from_millis(200);
    let runtime = start(&store, echo(&Counter::default()), orchestrations, options).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("s", "stuck", "in").await.unwrap();
    for number in 0..5 {
        run(&client, &format!("healthy-{number}"), "quick").await;
    }
    assert_eq!(failure(&client, "s").await.category(), "poison");
    drop(stuck);
    assert_eq!(output(&client, "healthy-0").await, "in");
    runtime.shutdown(None).await;
}
