//! Failures at every step of a round: nothing partial is ever visible, nothing is recorded twice.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use duroxide_provider::Provider;
use duroxide_runtime::Client;
use duroxide_store::MemoryProvider;

use crate::{
    faults::{Fault, faulty, plain_faulty},
    scene::{Counter, brisk, callers, echo, kinds, output, run, start},
};

const THREE_CALLS: [&str; 8] = [
    "OrchestrationStarted",
    "ActivityScheduled",
    "ActivityCompleted",
    "ActivityScheduled",
    "ActivityCompleted",
    "ActivityScheduled",
    "ActivityCompleted",
    "OrchestrationCompleted",
];

/// S4.25, S4.24: each of the first calls of each operation fails once, before or after it took effect.
#[tokio::test]
async fn a_failure_at_any_single_step_changes_nothing_in_the_end() {
    let operations =
        ["fetch_orchestration_items", "fetch_work_items", "load_execution", "commit_round", "ack_work_item"];
    for operation in operations {
        for fault in [Fault::Retryable, Fault::AnswerLost, Fault::Panic] {
            for step in 1..=4 {
                one_failure(operation, fault, step).await;
            }
        }
    }
}

async fn one_failure(operation: &'static str, fault: Fault, step: u64) {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    faults.inject(move |name, nth| (name == operation && nth == step).then_some(fault));
    let mut options = brisk();
    // A fetch whose answer is lost leaves its items locked until their lease ends.
    options.orchestrator_lock_timeout = std::time::Duration::from_millis(300);
    options.worker_lock_timeout = std::time::Duration::from_millis(300);
    // Without the cache every turn loads its history.
    options.execution_cache_size = 0;
    let runs = Counter::default();
    let runtime = start(&store, echo(&runs), callers(), options).await;
    let client = Client::new(Arc::clone(&inner));
    assert_eq!(run(&client, "i", "three").await, "in", "{operation} {fault:?} {step}");
    assert_eq!(kinds(&inner, "i").await, THREE_CALLS, "{operation} {fault:?} {step}");
    runtime.shutdown(None).await;
}

/// 22: a commit whose answer was lost has happened, so it is counted like any other, and the gauge returns to zero.
#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_counted_once() {
    for operation in ["commit_round", "ack_work_item"] {
        for step in 1..=4 {
            let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
            let (store, faults) = faulty(Arc::clone(&inner));
            let store: Arc<dyn Provider> = store;
            faults.inject(move |name, nth| (name == operation && nth == step).then_some(Fault::AnswerLost));
            let runtime = start(&store, echo(&Counter::default()), callers(), brisk()).await;
            let client = Client::new(Arc::clone(&inner));
            assert_eq!(run(&client, "i", "three").await, "in");
            Arc::clone(&runtime).shutdown(None).await;
            let counted = runtime.metrics_snapshot().unwrap();
            assert_eq!(
                (counted.orch_starts, counted.orch_completions, counted.activity_success),
                (1, 1, 3),
                "{operation} {step}"
            );
            let metrics = runtime.observability_handle().unwrap();
            assert_eq!(metrics.metrics_provider().get_active_orchestrations(), 0, "{operation} {step}");
        }
    }
}

/// 22: an activity that was cancelled while its result was on its way is not recorded, and not counted as done.
#[tokio::test]
async fn a_result_that_was_not_recorded_is_not_counted() {
    use duroxide_core::OrchestrationContext;
    use duroxide_runtime::OrchestrationRegistry;

    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    // The result cannot be recorded until the execution has ended without it.
    let blocked = Arc::new(AtomicBool::new(true));
    let still = Arc::clone(&blocked);
    faults.inject(move |name, _| {
        (name == "ack_work_item" && still.load(Ordering::SeqCst)).then_some(Fault::Retryable)
    });
    let orchestrations = OrchestrationRegistry::builder()
        .register("leaves", |ctx: OrchestrationContext, _input: String| async move {
            let unread = ctx.schedule_activity("echo", "in");
            let left = ctx.schedule_wait("leave").await;
            drop(unread);
            Ok(left)
        })
        .build();
    let runs = Counter::default();
    let runtime = start(&store, echo(&runs), orchestrations, brisk()).await;
    let client = Client::new(Arc::clone(&inner));
    client.start_orchestration("i", "leaves", "").await.unwrap();
    runs.until(1).await;
    client.raise_event("i", "leave", "left").await.unwrap();
    assert_eq!(output(&client, "i").await, "left");
    blocked.store(false, Ordering::SeqCst);
    Arc::clone(&runtime).shutdown(None).await;
    assert_eq!(runtime.metrics_snapshot().unwrap().activity_success, 0);
}

/// S4.26: the commit of a scheduling turn fails, then succeeds.
#[tokio::test]
async fn a_retried_commit_schedules_its_work_once() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    faults.inject(|name, nth| (name == "commit_round" && nth <= 3).then_some(Fault::Retryable));
    let runs = Counter::default();
    let runtime = start(&store, echo(&runs), callers(), brisk()).await;
    let client = Client::new(Arc::clone(&inner));
    run(&client, "i", "one").await;
    assert_eq!(runs.get(), 1);
    assert_eq!(kinds(&inner, "i").await.len(), 4);
    assert_eq!(faults.made("commit_round"), 5);
    runtime.shutdown(None).await;
}

/// A17.3: with the default bodies, a wrapper of the required methods sees every call, and works.
#[tokio::test]
async fn a_plain_wrapper_sees_every_call_one_by_one() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = plain_faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    let runs = Counter::default();
    let runtime = start(&store, echo(&runs), callers(), brisk()).await;
    let client = Client::new(Arc::clone(&inner));
    run(&client, "i", "three").await;
    assert_eq!(faults.made("ack_orchestration_item"), 4);
    assert_eq!(faults.made("ack_work_item"), 3);
    assert_eq!(kinds(&inner, "i").await, THREE_CALLS);
    runtime.shutdown(None).await;
}

/// A17.3: an idle runtime keeps one plain fetch per slot open.
#[tokio::test]
async fn an_idle_runtime_keeps_one_plain_fetch_per_slot() {
    let (store, faults) = plain_faulty(Arc::new(MemoryProvider::new()));
    let store: Arc<dyn Provider> = store;
    let runtime = start(&store, echo(&Counter::default()), callers(), brisk()).await;
    faults.until_reached("fetch_orchestration_item", 2).await;
    faults.until_reached("fetch_work_item", 2).await;
    tokio::task::yield_now().await;
    assert_eq!(faults.made("fetch_orchestration_item"), 2);
    assert_eq!(faults.made("fetch_work_item"), 2);
    runtime.shutdown(None).await;
}

/// 16.5: a round that the store refuses permanently fails its execution, and the parent is notified.
#[tokio::test]
async fn a_refused_round_fails_the_execution_with_an_infrastructure_error() {
    use duroxide_core::{ErrorDetails, OrchestrationContext};
    use duroxide_runtime::{OrchestrationRegistry, OrchestrationStatus};

    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    // The parent commits first; the second commit is the child's only turn.
    faults.inject(|name, nth| (name == "commit_round" && nth == 2).then_some(Fault::Permanent));
    let orchestrations = OrchestrationRegistry::builder()
        .register("child", |_ctx: OrchestrationContext, input: String| async move { Ok(input) })
        .register("parent", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_sub_orchestration("child", input).await
        })
        .build();
    let runtime = start(&store, echo(&Counter::default()), orchestrations, brisk()).await;
    let client = Client::new(Arc::clone(&inner));
    client.start_orchestration("p", "parent", "in").await.unwrap();
    for instance in ["p::sub::2", "p"] {
        let status = client.wait_for_orchestration(instance, crate::WAIT_MAX).await.unwrap();
        let OrchestrationStatus::Failed { details, .. } = status else { panic!("{instance}: {status:?}") };
        assert!(matches!(details, ErrorDetails::Infrastructure { .. }), "{instance}: {details:?}");
    }
    assert_eq!(kinds(&inner, "p::sub::2").await, ["OrchestrationStarted", "OrchestrationFailed"]);
    runtime.shutdown(None).await;
}

/// 5.2, 16.5: a child that the code dropped in a turn whose round the store refused is cancelled all the same.
#[tokio::test]
async fn a_child_dropped_in_a_refused_round_is_cancelled() {
    use duroxide_core::OrchestrationContext;
    use duroxide_runtime::{OrchestrationRegistry, OrchestrationStatus};

    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    let orchestrations = OrchestrationRegistry::builder()
        .register("child", |ctx: OrchestrationContext, _input: String| async move {
            Ok(ctx.schedule_wait("never").await)
        })
        .register("parent", |ctx: OrchestrationContext, _input: String| async move {
            let child = ctx.schedule_sub_orchestration_with_id("child", "child", "");
            ctx.schedule_wait("drop").await;
            drop(child);
            drop(ctx.schedule_sub_orchestration_with_id("child", "unborn", ""));
            Ok(ctx.schedule_wait("never").await)
        })
        .build();
    let runtime = start(&store, echo(&Counter::default()), orchestrations, brisk()).await;
    let client = Client::new(Arc::clone(&inner));
    client.start_orchestration("p", "parent", "").await.unwrap();
    // Parent and child have each committed their first turn; the next one is the parent's.
    faults.until_reached("commit_round", 2).await;
    faults.inject(|name, nth| (name == "commit_round" && nth == 3).then_some(Fault::Permanent));
    client.raise_event("p", "drop", "").await.unwrap();
    let parent = client.wait_for_orchestration("p", crate::WAIT_MAX).await.unwrap();
    assert!(matches!(parent, OrchestrationStatus::Failed { .. }), "{parent:?}");
    let child = client.wait_for_orchestration("child", crate::WAIT_MAX).await.unwrap();
    let OrchestrationStatus::Failed { details, .. } = child else { panic!("{child:?}") };
    assert_eq!(details.display_message(), "canceled: parent dropped sub-orchestration future");
    assert!(inner.read("unborn").await.unwrap().is_empty());
    runtime.shutdown(None).await;
}
