//! Activities that are asked to stop and waited for (`cancel_and_wait`): not started, running here or on another node,
//! or with a dead worker.

use std::{sync::Arc, time::Duration};

use duroxide_core::OrchestrationContext;
use duroxide_provider::Provider;
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, OrchestrationRegistry, Runtime, RuntimeOptions,
};
use duroxide_store::MemoryProvider;

use crate::scene::{Counter, brisk, output, run, start};

/// Both orchestrations stop their activity and return how it ended.
fn stopping() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("never begun", |ctx: OrchestrationContext, input: String| async move {
            let work = ctx.schedule_activity("work", input).with_tag("nobody takes it");
            ctx.schedule_timer(Duration::from_millis(1)).await;
            Ok(format!("{:?}", ctx.cancel_and_wait(work).await))
        })
        .register("when told", |ctx: OrchestrationContext, input: String| async move {
            let work = ctx.schedule_activity("work", input);
            ctx.schedule_wait("stop").await;
            Ok(format!("{:?}", ctx.cancel_and_wait(work).await))
        })
        .build()
}

/// `work` runs until it is asked to stop. Then it returns, or runs forever.
struct Work {
    began: Counter,
    asked: Counter,
}

fn work(returns: bool) -> (ActivityRegistry, Work) {
    let (began, asked) = (Counter::default(), Counter::default());
    let signals = Work { began: began.clone(), asked: asked.clone() };
    let registry = ActivityRegistry::builder()
        .register("work", move |ctx: ActivityContext, _input: String| {
            began.add();
            let asked = asked.clone();
            async move {
                ctx.cancelled().await;
                asked.add();
                if !returns {
                    std::future::pending::<()>().await;
                }
                Ok("did it all the same".to_owned())
            }
        })
        .build();
    (registry, signals)
}

struct Scene {
    store: Arc<dyn Provider>,
    client: Client,
}

impl Scene {
    fn new() -> Self {
        let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
        Self { client: Client::new(Arc::clone(&store)), store }
    }

    async fn node(&self, work: ActivityRegistry, options: RuntimeOptions) -> Arc<Runtime> {
        start(&self.store, work, stopping(), options).await
    }

    /// Starts an instance, waits until its activity runs, and stops it.
    async fn stop_running(&self, work: &Work) {
        self.client.start_orchestration("i", "when told", "in").await.unwrap();
        work.began.until(1).await;
        self.client.raise_event("i", "stop", "").await.unwrap();
    }
}

/// 7.3
#[tokio::test]
async fn an_activity_that_no_worker_began_never_starts() {
    let scene = Scene::new();
    let (activities, work) = work(true);
    let runtime = scene.node(activities, brisk()).await;
    assert_eq!(run(&scene.client, "i", "never begun").await, "NeverStarted");
    assert_eq!(work.began.get(), 0);
    runtime.shutdown(None).await;
}

/// 7.3: the result after the stop request is the outcome.
#[tokio::test]
async fn a_running_activity_is_asked_at_once_and_its_result_counts() {
    let scene = Scene::new();
    let (activities, work) = work(true);
    let runtime = scene.node(activities, brisk()).await;
    scene.stop_running(&work).await;
    assert_eq!(output(&scene.client, "i").await, r#"Completed("did it all the same")"#);
    assert_eq!((work.began.get(), work.asked.get()), (1, 1));
    runtime.shutdown(None).await;
}

/// 7.4: a slot never waits longer than the grace period for user code.
#[tokio::test]
async fn an_activity_that_does_not_return_is_stopped_after_its_grace_period() {
    let scene = Scene::new();
    let (activities, work) = work(false);
    let options = RuntimeOptions { activity_cancellation_grace_period: Duration::from_millis(10), ..brisk() };
    let runtime = scene.node(activities, options).await;
    scene.stop_running(&work).await;
    assert_eq!(output(&scene.client, "i").await, "Stopped");
    assert_eq!(work.began.get(), 1, "it does not run again");
    runtime.shutdown(None).await;
}

/// 7.3: on another node the lock renewal delivers the request.
#[tokio::test]
async fn an_activity_on_another_node_is_asked_when_its_lock_is_renewed() {
    let scene = Scene::new();
    let (activities, work) = work(true);
    let options = RuntimeOptions {
        worker_lock_timeout: Duration::from_secs(2),
        handler_capability_filter: true,
        ..brisk()
    };
    let nothing = OrchestrationRegistry::builder().build();
    let worker = start(&scene.store, activities, nothing, options.clone()).await;
    let nobody = ActivityRegistry::builder().build();
    let coordinator = scene.node(nobody, options).await;
    scene.stop_running(&work).await;
    assert_eq!(output(&scene.client, "i").await, r#"Completed("did it all the same")"#);
    assert_eq!((work.began.get(), work.asked.get()), (1, 1));
    coordinator.shutdown(None).await;
    worker.shutdown(None).await;
}

/// 7.1, 16.1: an activity that was asked to stop does not run again, also if its worker died.
#[tokio::test]
async fn an_activity_whose_worker_is_gone_does_not_run_again() {
    let scene = Scene::new();
    let (activities, work) = work(false);
    let options = RuntimeOptions { worker_lock_timeout: Duration::from_secs(1), ..brisk() };
    let first = scene.node(activities.clone(), options.clone()).await;
    scene.stop_running(&work).await;
    work.asked.until(1).await;
    // Nothing releases the lock: its lease has to end.
    first.shutdown(Some(0)).await;
    let second = scene.node(activities, options).await;
    assert_eq!(output(&scene.client, "i").await, "Stopped");
    assert_eq!(work.began.get(), 1);
    second.shutdown(None).await;
}
