//! Locks: renewed in time, released when a commit fails, and no work is lost.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use duroxide_core::OrchestrationContext;
use duroxide_provider::Provider;
use duroxide_runtime::{ActivityContext, ActivityRegistry, Client, OrchestrationRegistry};
use duroxide_store::MemoryProvider;
use tokio_util::sync::CancellationToken;

use crate::{
    WAIT_MAX,
    faults::{Fault, faulty},
    recorder::Recorder,
    scene::{Counter, brisk, callers, echo, output, start, stuck},
};

/// An activity `echo` that waits for a signal on each run and reports whether its token had fired.
struct Held {
    runs: Counter,
    cancelled: Counter,
    /// Lets this run and all later ones continue.
    go: CancellationToken,
}

impl Held {
    fn new() -> (Self, ActivityRegistry) {
        let held =
            Self { runs: Counter::default(), cancelled: Counter::default(), go: CancellationToken::new() };
        let (runs, cancelled, go) = (held.runs.clone(), held.cancelled.clone(), held.go.clone());
        let activities = ActivityRegistry::builder()
            .register("echo", move |ctx: ActivityContext, input: String| {
                let (cancelled, go) = (cancelled.clone(), go.clone());
                runs.add();
                async move {
                    tokio::select! {
                        () = go.cancelled() => {}
                        () = ctx.cancelled() => { cancelled.add(); }
                    }
                    Ok(input)
                }
            })
            .build();
        (held, activities)
    }
}

/// B2, first case: transient renewal errors are retried.
#[tokio::test]
async fn an_activity_survives_failed_renewals_of_its_lock() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    faults.inject(|name, nth| (name == "renew_work_item_lock" && nth <= 3).then_some(Fault::Retryable));
    let (held, activities) = Held::new();
    let mut options = brisk();
    options.worker_lock_timeout = Duration::from_secs(3);
    let runtime = start(&store, activities, callers(), options).await;
    let client = Client::new(inner);
    client.start_orchestration("i", "one", "in").await.unwrap();
    // Three failures and two successes later the lease has been renewed past its first end.
    faults.until_reached("renew_work_item_lock", 2).await;
    held.go.cancel();
    assert_eq!(output(&client, "i").await, "in");
    assert_eq!((held.runs.get(), held.cancelled.get()), (1, 0));
    runtime.shutdown(None).await;
}

/// B2, second case: a lease that ends unrenewed deletes nothing; the activity runs again.
#[tokio::test]
async fn an_activity_whose_lease_ended_runs_again() {
    let recorder = Recorder::default();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    faults.inject(|name, _| (name == "renew_work_item_lock").then_some(Fault::Retryable));
    let (held, activities) = Held::new();
    let mut options = brisk();
    options.worker_lock_timeout = Duration::from_millis(200);
    let runtime = start(&store, activities, callers(), options).await;
    let client = Client::new(inner);
    client.start_orchestration("i", "one", "in").await.unwrap();
    held.runs.until(2).await;
    held.cancelled.until(1).await; // The run whose lease ended is told to stop.
    faults.heal();
    held.go.cancel();
    assert_eq!(output(&client, "i").await, "in");
    runtime.shutdown(None).await;
    let losses = recorder.counters().get("duroxide_lock_losses_total{queue=worker}").copied();
    assert_eq!(losses, Some(u64::from(held.cancelled.get())));
}

/// The turn of a lost lock is run again, and the loss is counted.
#[tokio::test]
async fn a_lock_that_is_lost_during_a_turn_is_counted() {
    let recorder = Recorder::default();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    let (refused, mut refusals) = tokio::sync::mpsc::unbounded_channel();
    faults.inject(move |name, nth| {
        let refuses = name == "renew_orchestration_item_lock" && nth == 1;
        refuses.then(|| {
            refused.send(()).unwrap();
            Fault::Permanent
        })
    });
    let (orchestrations, mut stuck) = stuck();
    let mut options = brisk();
    options.orchestrator_lock_timeout = Duration::from_millis(500);
    options.orchestrator_lock_renewal_buffer = Duration::from_millis(250);
    let runtime = start(&store, ActivityRegistry::default(), orchestrations, options).await;
    let client = Client::new(inner);
    client.start_orchestration("i", "stuck", "in").await.unwrap();
    stuck.began().await;
    refusals.recv().await.unwrap();
    drop(stuck);
    assert_eq!(output(&client, "i").await, "in");
    runtime.shutdown(None).await;
    assert_eq!(recorder.counters().get("duroxide_lock_losses_total{queue=orchestrator}"), Some(&1));
}

/// B2, third case: a definite "lock lost" fires the token.
#[tokio::test]
async fn a_lost_lock_cancels_the_activity() {
    let (store, faults) = faulty(Arc::new(MemoryProvider::new()));
    let store: Arc<dyn Provider> = store;
    faults.inject(|name, _| (name == "renew_work_item_lock").then_some(Fault::Permanent));
    let (fired, fires) = tokio::sync::mpsc::unbounded_channel();
    let activities = ActivityRegistry::builder()
        .register("echo", move |ctx: ActivityContext, input: String| {
            let fired = fired.clone();
            async move {
                ctx.cancelled().await;
                fired.send(()).unwrap();
                Ok(input)
            }
        })
        .build();
    let mut options = brisk();
    options.worker_lock_timeout = Duration::from_millis(200);
    let runtime = start(&store, activities, callers(), options).await;
    Client::new(Arc::clone(&store)).start_orchestration("i", "one", "in").await.unwrap();
    let mut fires = fires;
    tokio::time::timeout(WAIT_MAX, fires.recv()).await.unwrap().unwrap();
    runtime.shutdown(Some(0)).await;
}

/// B4, 16.5: after failed commits the claim is abandoned at once instead of being left to its lease.
#[tokio::test]
async fn a_commit_that_keeps_failing_gives_its_lock_back() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    faults.inject(|name, _| (name == "commit_round").then_some(Fault::Retryable));
    let mut options = brisk();
    options.orchestrator_lock_timeout = Duration::from_millis(500);
    let runtime = start(&store, echo(&Counter::default()), callers(), options).await;
    let client = Client::new(inner);
    client.start_orchestration("i", "one", "in").await.unwrap();
    faults.until_reached("abandon_orchestration_item", 1).await;
    faults.heal();
    assert_eq!(output(&client, "i").await, "in");
    runtime.shutdown(None).await;
}

/// B17, 16.9: an outage is not charged as an attempt, however long it takes.
#[tokio::test]
async fn an_outage_poisons_nothing() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    faults.inject(|name, nth| {
        (matches!(name, "commit_round" | "ack_work_item") && nth <= 30).then_some(Fault::Retryable)
    });
    let mut options = brisk();
    options.max_attempts = 3;
    // Long enough that even a busy machine abandons a failed commit in time.
    options.orchestrator_lock_timeout = Duration::from_secs(2);
    options.worker_lock_timeout = Duration::from_secs(2);
    let runtime = start(&store, echo(&Counter::default()), callers(), options).await;
    let client = Client::new(inner);
    for instance in ["a", "b", "c"] {
        client.start_orchestration(instance, "one", "in").await.unwrap();
    }
    for instance in ["a", "b", "c"] {
        assert_eq!(output(&client, instance).await, "in");
    }
    assert!(faults.reached("abandon_orchestration_item") > 0, "the outage was longer than the retries");
    runtime.shutdown(None).await;
}

/// B16: work that takes longer than a short lease keeps its lock. The turn blocks its thread, as user code may.
#[tokio::test]
async fn short_leases_are_renewed_in_time() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    let (held, activities) = Held::new();
    let (release_turn, turn_released) = mpsc::channel::<()>();
    let turn_released = Arc::new(Mutex::new(Some(turn_released)));
    let turns = Counter::default();
    let counted = turns.clone();
    let orchestrations = OrchestrationRegistry::builder()
        .register("one", move |ctx: OrchestrationContext, input: String| {
            counted.add();
            if let Some(released) = turn_released.lock().unwrap().take() {
                released.recv().unwrap();
            }
            async move { ctx.schedule_activity("echo", input).await }
        })
        .build();
    let mut options = brisk();
    options.orchestrator_lock_timeout = Duration::from_millis(1_200);
    options.worker_lock_timeout = Duration::from_millis(1_200);
    let runtime = start(&store, activities, orchestrations, options).await;
    let client = Client::new(inner);
    client.start_orchestration("i", "one", "in").await.unwrap();
    // A lease is renewed at half time, so four renewals are two leases.
    faults.until_reached("renew_orchestration_item_lock", 4).await;
    release_turn.send(()).unwrap();
    faults.until_reached("renew_work_item_lock", 4).await;
    held.go.cancel();
    assert_eq!(output(&client, "i").await, "in");
    assert_eq!((turns.get(), held.runs.get()), (1, 1));
    runtime.shutdown(None).await;
}

/// B18, 7.3: a round committed here cancels the activity here at once.
#[tokio::test]
async fn a_dropped_activity_is_cancelled_as_soon_as_its_round_is_committed() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (began, begins) = tokio::sync::oneshot::channel();
    let (stopped, stops) = tokio::sync::oneshot::channel();
    let senders = Arc::new(Mutex::new(Some((began, stopped))));
    let activities = ActivityRegistry::builder()
        .register("echo", move |ctx: ActivityContext, input: String| {
            let (began, stopped) = senders.lock().unwrap().take().unwrap();
            async move {
                began.send(()).unwrap();
                ctx.cancelled().await;
                stopped.send(()).unwrap();
                Ok(input)
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("race", |ctx: OrchestrationContext, input: String| async move {
            let activity = ctx.schedule_activity("echo", input);
            let signal = ctx.schedule_wait("enough");
            ctx.select2(activity, signal).await;
            Ok("raced".to_owned())
        })
        .build();
    let runtime = start(&inner, activities, orchestrations, brisk()).await;
    let client = Client::new(inner);
    client.start_orchestration("i", "race", "in").await.unwrap();
    begins.await.unwrap();
    client.raise_event("i", "enough", "").await.unwrap();
    assert_eq!(output(&client, "i").await, "raced");
    tokio::time::timeout(Duration::from_secs(4), stops).await.expect("before any renewal").unwrap();
    runtime.shutdown(None).await;
}

/// 19.1, 7.3: an activity whose start is delayed, here by a store that cannot return its descriptor, asks whether it
/// still has its lock. Otherwise it would run until its next renewal, seconds later.
#[tokio::test]
async fn an_activity_that_was_deleted_before_it_started_never_runs() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (store, faults) = faulty(Arc::clone(&inner));
    let store: Arc<dyn Provider> = store;
    let deleted = Arc::new(AtomicBool::new(false));
    let is_deleted = Arc::clone(&deleted);
    let asked = Counter::default();
    let ask = asked.clone();
    faults.inject(move |name, nth| {
        if name != "read_descriptor" {
            return None;
        }
        ask.add();
        // Its retries are 10, 20, 40, 80 and 160 ms apart.
        (nth <= 5 || !is_deleted.load(Ordering::SeqCst)).then_some(Fault::Retryable)
    });
    let (mut turns_only, mut activities_only) = (brisk(), brisk());
    (turns_only.worker_concurrency, activities_only.orchestration_concurrency) = (0, 0);
    let runs = Counter::default();
    let turns = start(&inner, echo(&Counter::default()), callers(), turns_only).await;
    let worker = start(&store, echo(&runs), callers(), activities_only).await;
    let client = Client::new(inner);
    client.start_orchestration("i", "one", "in").await.unwrap();
    asked.until(1).await;
    client.delete_instance("i", true).await.unwrap();
    deleted.store(true, Ordering::SeqCst);
    let renewed = faults.until_reached("renew_work_item_lock", 1);
    tokio::time::timeout(WAIT_MAX, renewed).await.expect("the store is asked for the lock");
    worker.shutdown(None).await;
    assert_eq!(runs.get(), 0);
    turns.shutdown(None).await;
}
