//! Shutdown: running work may finish, the rest is abandoned, and nothing is held afterwards (21.1).

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use duroxide_provider::Provider;
use duroxide_runtime::{ActivityContext, ActivityRegistry, Client, Runtime};
use duroxide_store::MemoryProvider;
use futures_util::FutureExt;
use tokio::sync::Notify;

use crate::{
    WAIT_MAX,
    faults::faulty,
    scene::{Counter, brisk, callers, echo, output, run, start, stuck},
};

/// An activity `echo` that signals when it began and waits until it may continue.
fn gated() -> (ActivityRegistry, tokio::sync::mpsc::UnboundedReceiver<()>, Arc<Notify>) {
    let (began, begins) = tokio::sync::mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let gate = Arc::clone(&go);
    let activities = ActivityRegistry::builder()
        .register("echo", move |_ctx: ActivityContext, input: String| {
            let (began, gate) = (began.clone(), Arc::clone(&gate));
            async move {
                let _ = began.send(());
                gate.notified().await;
                Ok(input)
            }
        })
        .build();
    (activities, begins, go)
}

#[tokio::test]
async fn a_running_activity_may_finish_within_the_timeout() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (activities, mut begins, go) = gated();
    let runtime = start(&store, activities, callers(), brisk()).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("i", "one", "in").await.unwrap();
    begins.recv().await.unwrap();
    let shutdown = tokio::spawn(runtime.shutdown(Some(30_000)));
    tokio::task::yield_now().await;
    go.notify_one();
    shutdown.await.unwrap();
    let history = store.read("i").await.unwrap();
    assert!(!history.last().unwrap().is_terminal(), "no new turn began");

    // The completion is in the store; another node continues the instance and runs no activity again.
    let runs = Counter::default();
    let second = start(&store, echo(&runs), callers(), brisk()).await;
    assert_eq!(output(&client, "i").await, "in");
    assert_eq!(runs.get(), 0);
    second.shutdown(None).await;
}

/// 16.9: work abandoned at shutdown is not charged an attempt.
#[tokio::test]
async fn unfinished_work_is_given_back_at_once_and_uncounted() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (activities, mut begins, _go) = gated();
    let mut options = brisk();
    options.max_attempts = 1;
    options.worker_lock_timeout = Duration::from_secs(600);
    options.session_idle_timeout = Duration::from_secs(6_000);
    let client = Client::new(Arc::clone(&inner));
    client.start_orchestration("i", "one", "in").await.unwrap();
    for _ in 0..3 {
        let runtime = start(&inner, activities.clone(), callers(), options.clone()).await;
        begins.recv().await.unwrap();
        runtime.shutdown(Some(1)).await;
    }
    let runs = Counter::default();
    let healthy = start(&inner, echo(&runs), callers(), options).await;
    assert_eq!(output(&client, "i").await, "in");
    assert_eq!(runs.get(), 1);
    healthy.shutdown(None).await;
}

/// 21.1: with 0 no provider call is made.
#[tokio::test]
async fn an_immediate_shutdown_makes_no_provider_call() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    let (activities, mut begins, _go) = gated();
    let runtime = start(&store, activities, callers(), brisk()).await;
    Client::new(inner).start_orchestration("i", "one", "in").await.unwrap();
    begins.recv().await.unwrap();
    runtime.shutdown(Some(0)).await;
    assert_eq!(faults.made("abandon_work_item"), 0);
    assert_eq!(Arc::strong_count(&store), 1);
}

/// 21.1: after the last handle is dropped nothing holds the store, however the runtime was stopped.
#[tokio::test]
async fn nothing_holds_the_store_after_shutdown() {
    for timeout in [None, Some(0), Some(50)] {
        let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
        let runtime = start(&store, echo(&Counter::default()), callers(), brisk()).await;
        let client = Client::new(Arc::clone(&store));
        run(&client, "i", "three").await;
        drop(client);
        runtime.shutdown(timeout).await;
        assert_eq!(Arc::strong_count(&store), 1, "{timeout:?}");
    }
}

/// 21.1: shutdown needs no tokio context and no running executor.
#[test]
fn an_immediate_shutdown_works_outside_tokio() {
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let runtime = executor.block_on(async {
        let runtime = start(&store, echo(&Counter::default()), callers(), brisk()).await;
        run(&Client::new(Arc::clone(&store)), "i", "one").await;
        runtime
    });
    block_on(runtime.shutdown(Some(0)));
    assert_eq!(Arc::strong_count(&store), 1);
}

/// Polls a future on this thread, parked in between, without any executor.
fn block_on(future: impl Future<Output = ()>) {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    while future.as_mut().poll(&mut context).is_pending() {
        std::thread::park();
    }
}

/// 21.1: every call waits for the same shutdown, and the earliest deadline counts.
#[tokio::test]
async fn overlapping_shutdowns_end_together_at_the_earliest_deadline() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (activities, mut begins, _go) = gated();
    let runtime = start(&store, activities, callers(), brisk()).await;
    Client::new(Arc::clone(&store)).start_orchestration("i", "one", "in").await.unwrap();
    begins.recv().await.unwrap();
    let patient = tokio::spawn(Arc::clone(&runtime).shutdown(Some(3_600_000)));
    tokio::task::yield_now().await;
    // Dropping a call changes nothing.
    drop(Arc::clone(&runtime).shutdown(None));
    runtime.shutdown(Some(20)).await;
    patient.await.unwrap();
    assert_eq!(Arc::strong_count(&store), 1);
}

/// The fate of a call that overlaps with another one.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Awaited,
    DroppedAfterOnePoll,
    /// And still exists when the shutdown is over.
    NeverPolled,
}

/// 21.1: no task holds the store when a call returns, whichever call came first and however it ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_holds_the_store_after_overlapping_and_dropped_shutdowns() {
    for first in [0, 20, 3_600_000] {
        for second in [0, 20] {
            for fate in [Fate::Awaited, Fate::DroppedAfterOnePoll, Fate::NeverPolled] {
                let case = format!("{first} then {second}, the first {fate:?}");
                overlap(first, second, fate, &case).await;
            }
        }
    }
}

async fn overlap(first: u64, second: u64, fate: Fate, case: &str) {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (activities, mut begins, _go) = gated();
    let runtime = start(&store, activities, callers(), brisk()).await;
    Client::new(Arc::clone(&store)).start_orchestration("i", "one", "in").await.unwrap();
    begins.recv().await.unwrap();
    let mut early = Some(Box::pin(Arc::clone(&runtime).shutdown(Some(first))));
    let awaited = match fate {
        Fate::Awaited => early.take().map(tokio::spawn),
        Fate::DroppedAfterOnePoll => {
            let _ = early.take().unwrap().now_or_never();
            None
        }
        Fate::NeverPolled => None,
    };
    tokio::time::timeout(WAIT_MAX, runtime.shutdown(Some(second))).await.expect(case);
    if let Some(awaited) = awaited {
        awaited.await.unwrap();
    }
    assert_eq!(Arc::strong_count(&store), 1, "{case}");
    if let Some(early) = early {
        tokio::time::timeout(WAIT_MAX, early).await.expect(case);
    }
}

/// 21.1: a remaining handle does not hold the store either, and a later call returns at once.
#[tokio::test]
async fn a_handle_that_is_kept_holds_no_store_after_shutdown() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let runtime = start(&store, echo(&Counter::default()), callers(), brisk()).await;
    run(&Client::new(Arc::clone(&store)), "i", "one").await;
    Arc::clone(&runtime).shutdown(None).await;
    assert_eq!(Arc::strong_count(&store), 1);
    assert!(runtime.get_orchestration_descriptor("i").await.is_none());
    runtime.shutdown(None).await;
}

/// 21.1: an activity may shut down its own node. It is aborted like all others, and the shutdown completes.
#[tokio::test]
async fn an_activity_can_end_its_own_node() {
    for timeout in [0, 20] {
        let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
        let node: Arc<OnceLock<Arc<Runtime>>> = Arc::default();
        let inside = Arc::clone(&node);
        let activities = ActivityRegistry::builder()
            .register("echo", move |_ctx: ActivityContext, input: String| {
                let runtime = inside.get().cloned();
                async move {
                    runtime.unwrap().shutdown(Some(timeout)).await;
                    Ok(input)
                }
            })
            .build();
        let runtime = start(&store, activities, callers(), brisk()).await;
        node.set(runtime).unwrap();
        let alive = Arc::downgrade(&store);
        Client::new(store).start_orchestration("i", "one", "in").await.unwrap();
        tokio::time::timeout(WAIT_MAX, async {
            while alive.strong_count() > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("the store is free");
    }
}

/// 21.1: a shutdown does not cancel activities.
#[tokio::test]
async fn shutdown_fires_no_activity_token() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (began, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let activities = ActivityRegistry::builder()
        .register("echo", move |ctx: ActivityContext, input: String| {
            began.send(ctx.cancellation_token()).unwrap();
            async move {
                std::future::pending::<()>().await;
                Ok(input)
            }
        })
        .build();
    let runtime = start(&store, activities, callers(), brisk()).await;
    Client::new(Arc::clone(&store)).start_orchestration("i", "one", "in").await.unwrap();
    let token = begins.recv().await.unwrap();
    runtime.shutdown(Some(20)).await;
    assert!(!token.is_cancelled());
}

/// Dropping the handles stops nothing.
#[tokio::test]
async fn a_dropped_handle_stops_nothing() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    drop(start(&store, echo(&Counter::default()), callers(), brisk()).await);
    run(&Client::new(Arc::clone(&store)), "i", "one").await;
}

/// A stuck turn is left behind; shutdown does not wait for it.
#[tokio::test]
async fn a_turn_that_never_returns_does_not_hold_up_shutdown() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (orchestrations, mut stuck) = stuck();
    let runtime = start(&store, echo(&Counter::default()), orchestrations, brisk()).await;
    Client::new(Arc::clone(&store)).start_orchestration("i", "stuck", "in").await.unwrap();
    stuck.began().await;
    runtime.shutdown(Some(20)).await;
    assert_eq!(Arc::strong_count(&store), 1);
    drop(stuck);
}

/// The future is `Send + 'static`.
#[test]
fn the_shutdown_future_can_be_spawned() {
    fn spawnable<F: Future + Send + 'static>(_: impl FnOnce(Arc<Runtime>) -> F) {}
    spawnable(|runtime| runtime.shutdown(None));
}
