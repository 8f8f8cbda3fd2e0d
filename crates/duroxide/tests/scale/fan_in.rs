//! B23: fan-outs of thousands, on a real store and over a restart.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::registry::ActivityRegistry,
};

use crate::fixture::{File, node, output, within};

const LONG: Duration = Duration::from_secs(300);

fn wide_options() -> RuntimeOptions {
    RuntimeOptions { orchestration_concurrency: 16, worker_concurrency: 64, ..RuntimeOptions::default() }
}

fn activities(runs: &Arc<AtomicUsize>) -> ActivityRegistry {
    let runs = Arc::clone(runs);
    ActivityRegistry::builder()
        .register("Echo", move |_: ActivityContext, input| {
            runs.fetch_add(1, Ordering::Relaxed);
            async move { Ok(input) }
        })
        .build()
}

fn in_order(results: Vec<Result<String, String>>) -> Result<String, String> {
    let results: Vec<String> = results.into_iter().collect::<Result<_, _>>()?;
    let in_order = results.iter().enumerate().all(|(n, result)| *result == n.to_string());
    Ok(format!("{} in order: {in_order}", results.len()))
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Activities", |ctx: OrchestrationContext, count: String| async move {
            let count: usize = count.parse().unwrap();
            in_order(
                ctx.join((0..count).map(|n| ctx.schedule_activity("Echo", n.to_string())).collect()).await,
            )
        })
        .register("Children", |ctx: OrchestrationContext, count: String| async move {
            let count: usize = count.parse().unwrap();
            let calls = (0..count).map(|n| ctx.schedule_sub_orchestration("Child", n.to_string()));
            in_order(futures_util::future::join_all(calls).await)
        })
        .register("Child", |_: OrchestrationContext, input: String| async move { Ok(input) })
        .build()
}

#[tokio::test(flavor = "multi_thread")]
async fn fan_ins_of_many_sizes_complete_in_order() {
    let file = File::new();
    let store = file.open().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let runtime = node(&store, activities(&runs), orchestrations(), wide_options()).await;
    let client = Client::new(Arc::clone(&store));
    for (name, count) in [("Activities", 1_023), ("Activities", 1_025), ("Children", 1_024)] {
        let instance = format!("{name}-{count}");
        client.start_orchestration(&instance, name, count.to_string()).await.unwrap();
        let status = client.wait_for_orchestration(&instance, LONG).await.unwrap();
        assert_eq!(output(status), format!("{count} in order: true"));
    }
    runtime.shutdown(None).await;
    assert_eq!(runs.load(Ordering::Relaxed), 1_023 + 1_025, "healthy activities run once");
}

/// The same with 10,000, and the runtime replaced half way.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_activities_survive_a_restart_half_way() {
    const COUNT: usize = 10_000;
    let file = File::new();
    let store = file.open().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let runtime = node(&store, activities(&runs), orchestrations(), wide_options()).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("wide", "Activities", COUNT.to_string()).await.unwrap();
    within(LONG, "half of them have run", async || runs.load(Ordering::Relaxed) >= COUNT / 2).await;
    runtime.shutdown(None).await;
    let runtime = node(&store, activities(&runs), orchestrations(), wide_options()).await;
    let status = client.wait_for_orchestration("wide", LONG).await.unwrap();
    assert_eq!(output(status), format!("{COUNT} in order: true"));
    runtime.shutdown(None).await;
    let history = client.read_execution_history("wide", 1).await.unwrap();
    assert_eq!(history.len(), 2 * COUNT + 2, "each activity was scheduled once and completed once");
}
