//! Steps in place on a real store.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use duroxide::{OrchestrationRegistry, prelude::*, providers::ProviderError};
use tokio::sync::Notify;

use super::{
    fixture::{
        intercept::{FullyIntercepted, Intercept},
        until,
    },
    store,
};

#[duroxide::orchestration]
async fn sums(ctx: OrchestrationContext, numbers: Vec<u64>) -> Result<u64, String> {
    let mut sum = 0;
    for number in numbers {
        sum += ctx.step("add", move || async move { Ok::<_, String>(number * 2) }).await?;
    }
    Ok(sum)
}

/// A hundred quick steps are a hundred events, and share a few commits.
#[tokio::test]
async fn quick_steps_share_commits() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store).orchestration::<sums>().build().await.unwrap();
    let sum = client.start_and_wait::<sums>("i", (1..=100).collect()).await.unwrap().unwrap();
    assert_eq!(sum, 10_100);
    let history = client.read_execution_history("i", 1).await.unwrap();
    let steps = history.iter().filter(|event| event.kind.wire_name() == "StepEnded").count();
    assert_eq!((steps, history.len()), (100, 102));
    runtime.shutdown(None).await;
}

/// Gives the steps of an orchestration by name something to count and to wait for.
#[derive(Clone, Default)]
struct World {
    runs: Arc<AtomicU32>,
    go_on: Arc<Notify>,
    dropped: Arc<AtomicBool>,
}

/// Notices when the work is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl World {
    fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }

    fn registry(&self) -> OrchestrationRegistry {
        let world = self.clone();
        let code = move |ctx: OrchestrationContext, _: String| {
            let world = world.clone();
            async move {
                let first = world.clone();
                let quick = move || async move { Ok::<_, String>(first.runs.fetch_add(1, Ordering::SeqCst)) };
                ctx.step("quick", quick).await?;
                let slow = move || async move {
                    let dropped = Dropped(Arc::clone(&world.dropped));
                    world.runs.fetch_add(1, Ordering::SeqCst);
                    world.go_on.notified().await;
                    std::mem::forget(dropped);
                    Ok::<_, String>("slept".to_owned())
                };
                Ok(ctx.step("slow", slow).await?)
            }
        };
        OrchestrationRegistry::builder().register("Slow", code).build()
    }
}

/// Counts the claims that were given back.
struct GivenBack(Arc<AtomicU32>);

#[async_trait]
impl Intercept for GivenBack {
    async fn before(&self, method: &'static str) -> Result<(), ProviderError> {
        self.0.fetch_add(u32::from(method == "abandon_orchestration_item"), Ordering::SeqCst);
        Ok(())
    }
}

/// A step that takes longer than its claim waits goes on in the next claim, and runs once. Steps that were recorded before it
/// does not wait for it.
#[tokio::test]
async fn a_long_step_runs_once_and_holds_nothing_up() {
    let (inner, client) = store().await;
    let world = World::default();
    let given_back = Arc::new(AtomicU32::new(0));
    let store = FullyIntercepted::new(inner, GivenBack(Arc::clone(&given_back)));
    let runtime = Runtime::builder(store).orchestrations(world.registry()).build().await.unwrap();
    client.start_orchestration("i", "Slow", "").await.unwrap();
    until("the quick step is recorded", async || {
        client.read_execution_history("i", 1).await.is_ok_and(|history| history.len() == 2)
    })
    .await;
    until("two claims were given back", async || given_back.load(Ordering::SeqCst) >= 2).await;
    assert_eq!(world.runs(), 2);
    world.go_on.notify_one();
    let status = client.wait_for_orchestration("i", Duration::from_secs(30)).await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Completed { output, .. } if output == "slept"));
    assert_eq!(world.runs(), 2);
    runtime.shutdown(None).await;
}

/// A cancellation ends a step that runs, and drops its work.
#[tokio::test]
async fn a_long_step_is_cancelled_with_its_instance() {
    let (store, client) = store().await;
    let world = World::default();
    let runtime = Runtime::builder(store).orchestrations(world.registry()).build().await.unwrap();
    client.start_orchestration("i", "Slow", "").await.unwrap();
    until("the slow step runs", async || world.runs() == 2).await;
    client.cancel_instance("i", "enough").await.unwrap();
    let status = client.wait_for_orchestration("i", Duration::from_secs(30)).await.unwrap();
    let OrchestrationStatus::Failed { details, .. } = status else { panic!("{status:?}") };
    assert_eq!(details.display_message(), "canceled: enough");
    until("the work is dropped", async || world.dropped.load(Ordering::SeqCst)).await;
    runtime.shutdown(None).await;
}

/// Without a cache the steps of an execution are awaited in their claim.
#[tokio::test]
async fn a_long_step_ends_without_a_cache() {
    let (store, client) = store().await;
    let world = World::default();
    let options = RuntimeOptions { execution_cache_size: 0, ..RuntimeOptions::default() };
    let runtime =
        Runtime::builder(store).orchestrations(world.registry()).options(options).build().await.unwrap();
    client.start_orchestration("i", "Slow", "").await.unwrap();
    until("the slow step runs", async || world.runs() == 2).await;
    world.go_on.notify_one();
    let status = client.wait_for_orchestration("i", Duration::from_secs(30)).await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Completed { .. }), "{status:?}");
    assert_eq!(world.runs(), 2);
    runtime.shutdown(None).await;
}
