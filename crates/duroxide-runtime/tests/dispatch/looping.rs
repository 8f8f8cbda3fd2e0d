//! B13: code that never returns costs a thread, never a slot or the process.
//!
//! The stuck threads cannot be ended, so each story runs in a process of its own that ends with it.

use std::{process::Command, sync::Arc, time::Duration};

use duroxide_core::OrchestrationContext;
use duroxide_provider::Provider;
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, OrchestrationRegistry, OrchestrationStatus, RuntimeOptions,
};
use duroxide_store::MemoryProvider;

use crate::{
    PATIENCE,
    scene::{Counter, brisk, callers, echo, run, start},
};

fn in_its_own_process(story: &str) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", story, "--include-ignored", "--nocapture"])
        .status()
        .unwrap();
    assert!(status.success(), "{story}: {status}");
}

#[test]
fn an_orchestration_that_loops_is_poisoned_while_others_complete() {
    in_its_own_process("looping::an_orchestration_loops");
}

#[test]
fn an_activity_that_blocks_its_thread_is_poisoned_while_others_complete() {
    in_its_own_process("looping::an_activity_blocks_its_thread");
}

fn impatient() -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: 1,
        worker_concurrency: 1,
        max_attempts: 2,
        turn_timeout: Some(Duration::from_millis(300)),
        activity_execution_timeout: Some(Duration::from_millis(300)),
        activity_cancellation_grace_period: Duration::from_millis(50),
        orchestrator_lock_timeout: Duration::from_secs(1),
        worker_lock_timeout: Duration::from_secs(1),
        ..brisk()
    }
}

async fn stuck_is_poisoned_and_twenty_others_complete(store: Arc<dyn Provider>) {
    let client = Client::new(store);
    client.start_orchestration("stuck", "stuck", "in").await.unwrap();
    for number in 0..20 {
        run(&client, &format!("healthy-{number}"), "one").await;
    }
    let status = client.wait_for_orchestration("stuck", PATIENCE).await.unwrap();
    let OrchestrationStatus::Failed { details, .. } = status else { panic!("{status:?}") };
    assert_eq!(details.category(), "poison");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "leaves stuck threads behind; run by the story above in a process of its own"]
async fn an_orchestration_loops() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let orchestrations = OrchestrationRegistry::builder_from(&callers())
        .register("stuck", |_ctx: OrchestrationContext, _input: String| async move {
            loop {
                std::thread::yield_now();
            }
        })
        .build();
    let runtime = start(&store, echo(&Counter::default()), orchestrations, impatient()).await;
    stuck_is_poisoned_and_twenty_others_complete(store).await;
    runtime.shutdown(Some(100)).await;
    std::process::exit(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
#[ignore = "leaves stuck threads behind; run by the story above in a process of its own"]
async fn an_activity_blocks_its_thread() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder_from(&echo(&Counter::default()))
        .register("block", |_ctx: ActivityContext, input: String| async move {
            loop {
                if input.is_empty() {
                    return Ok(input);
                }
                std::thread::park();
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder_from(&callers())
        .register("stuck", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("block", input).await
        })
        .build();
    let runtime = start(&store, activities, orchestrations, impatient()).await;
    stuck_is_poisoned_and_twenty_others_complete(store).await;
    runtime.shutdown(Some(100)).await;
    std::process::exit(0);
}
