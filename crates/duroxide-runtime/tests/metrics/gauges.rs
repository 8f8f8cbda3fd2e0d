//! Gauges and durations of running instances.

use std::{sync::Arc, time::Duration};

use duroxide_core::OrchestrationContext;
use duroxide_runtime::{Client, OrchestrationRegistry, Runtime, RuntimeOptions};

use crate::{POLL_INTERVAL, WAIT_MAX, activities, memory_store, recorder::Recorder};

async fn approval(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_timer(TIMER).await;
    let approved = ctx.schedule_wait("approved");
    ctx.set_custom_status("listening");
    Ok(approved.await)
}

/// How long an approval takes at least.
const TIMER: Duration = Duration::from_millis(30);

/// B12, 22.2
#[tokio::test]
async fn the_gauge_counts_running_instances_and_durations_cover_the_whole_run() {
    let recorder = Recorder::default();
    let guard = metrics::set_default_local_recorder(&recorder);
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    let orchestrations = OrchestrationRegistry::builder().register("Approval", approval).build();
    let runtime = Runtime::start_with_store(store, activities(), orchestrations).await;

    client.start_orchestration("order", "Approval", "").await.unwrap();
    recorder.gauge_becomes("duroxide_active_orchestrations", 1.0).await;
    client.wait_for_status_change("order", 0, POLL_INTERVAL, WAIT_MAX).await.unwrap();
    client.raise_event("order", "approved", "yes").await.unwrap();
    client.wait_for_orchestration("order", WAIT_MAX).await.unwrap();
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
async fn the_gauges_of_the_store_show_accepted_starts_and_nodes() {
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
    recorder.gauge_becomes("duroxide_nodes", 1.0).await;
    let busy = node(2).await;
    recorder.gauge_becomes("duroxide_pending_orchestrations", 0.0).await;
    recorder.gauge_becomes("duroxide_nodes", 2.0).await;
    for runtime in [idle, busy] {
        runtime.shutdown(None).await;
    }
}

/// 22.2
#[tokio::test]
async fn a_new_node_counts_instances_that_run_already() {
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
    client.wait_for_status_change("order", 0, POLL_INTERVAL, WAIT_MAX).await.unwrap();
    first.shutdown(None).await;

    let second = node().await;
    assert_eq!(active(&second), 1);
    client.raise_event("order", "approved", "yes").await.unwrap();
    client.wait_for_orchestration("order", WAIT_MAX).await.unwrap();
    Arc::clone(&second).shutdown(None).await;
    assert_eq!(active(&second), 0);
}
