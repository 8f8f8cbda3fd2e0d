//! Executions by initiator and by failure.

use std::sync::Arc;

use duroxide_core::OrchestrationContext;
use duroxide_runtime::{Client, OrchestrationRegistry, Runtime, RuntimeOptions};

use crate::{WAIT_MAX, activities, continues, counters_of, memory_store, options, recorder::Recorder};

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
        client.wait_for_orchestration(instance, WAIT_MAX).await.unwrap();
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
        client.wait_for_orchestration(instance, WAIT_MAX).await.unwrap();
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

/// How well the cache works: with it no turn replays, without it all but the first of an execution do.
#[tokio::test]
async fn turns_are_counted_by_where_their_execution_comes_from() {
    for (cached, expected) in [(100, [("cache", 2), ("new", 1)]), (0, [("new", 1), ("replay", 2)])] {
        let recorder = Recorder::default();
        let guard = metrics::set_default_local_recorder(&recorder);
        let store = memory_store();
        let client = Client::new(Arc::clone(&store));
        let orchestrations = OrchestrationRegistry::builder()
            .register("TwoSteps", |ctx: OrchestrationContext, input| async move {
                let input = ctx.schedule_activity("Step", input).await?;
                ctx.schedule_activity("Step", input).await
            })
            .build();
        let options = RuntimeOptions { execution_cache_size: cached, ..options() };
        let runtime = Runtime::start_with_options(store, activities(), orchestrations, options).await;
        client.start_orchestration("a", "TwoSteps", "").await.unwrap();
        client.wait_for_orchestration("a", WAIT_MAX).await.unwrap();
        runtime.shutdown(None).await;
        drop(guard);
        let expected = expected.map(|(source, count)| (format!("{{source={source}}}"), count));
        assert_eq!(counters_of(&recorder, "duroxide_turns_total"), expected.into());
    }
}
