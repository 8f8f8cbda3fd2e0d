//! Locks that are renewed, and locks whose renewal fails.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::registry::ActivityRegistry,
};
use tokio::sync::mpsc;

use crate::{
    faults::{Fault, Faults},
    fixture::{File, WAIT_MAX, ended, node, output, quick_options},
};

/// B2: the lock of the activity, the time it takes, and how often its lock is renewed (16.3).
const WORKER_LOCK: Duration = Duration::from_secs(3);
const WORK: Duration = Duration::from_secs(6);
const RENEWAL_INTERVAL: Duration = Duration::from_millis(1_500);

fn calls_one() -> OrchestrationRegistry {
    let calls =
        |ctx: OrchestrationContext, input: String| async move { ctx.schedule_activity("Works", input).await };
    OrchestrationRegistry::builder().register("Calls", calls).build()
}

fn options() -> RuntimeOptions {
    RuntimeOptions { worker_lock_timeout: WORKER_LOCK, ..quick_options() }
}

/// The observations of the activity.
#[derive(Default)]
struct Seen {
    runs: AtomicU32,
    cancelled: AtomicBool,
}

/// An activity that takes `work`, and records a request to stop.
fn works(seen: &Arc<Seen>, work: Duration) -> ActivityRegistry {
    let seen = Arc::clone(seen);
    let works = move |ctx: ActivityContext, input: String| {
        let seen = Arc::clone(&seen);
        async move {
            seen.runs.fetch_add(1, Ordering::SeqCst);
            tokio::select! {
                () = tokio::time::sleep(work) => {}
                () = ctx.cancelled() => seen.cancelled.store(true, Ordering::SeqCst),
            }
            Ok(input)
        }
    };
    ActivityRegistry::builder().register("Works", works).build()
}

/// How often each stored activity was fetched.
fn attempts(file: &File) -> Vec<u32> {
    let activities = file.snapshot().instances.into_iter().flat_map(|instance| instance.activities);
    activities.map(|activity| activity.attempt_count).collect()
}

/// B2, 16.4, first case: three renewals in a row fail, and the activity never learns of it.
#[tokio::test]
async fn three_failed_renewals_cost_an_activity_nothing() {
    let file = File::new();
    let store = file.open().await;
    let faults = Faults::default();
    faults.inject(|method, nth| (method == "renew_work_item_lock" && nth <= 3).then_some(Fault::Retryable));
    let seen = Arc::new(Seen::default());
    let runtime = node(&faults.around(&store), works(&seen, WORK), calls_one(), options()).await;
    let client = Client::new(store);
    client.start_orchestration("i", "Calls", "done").await.unwrap();
    assert_eq!(output(ended(&client, "i").await), "done");
    assert!(faults.reached("renew_work_item_lock") >= 1, "the lock was renewed in the end");
    assert_eq!(seen.runs.load(Ordering::SeqCst), 1);
    assert!(!seen.cancelled.load(Ordering::SeqCst));
    runtime.shutdown(None).await;
}

/// B2, 16.4, second case: renewals fail for longer than the lease. Nothing is deleted; the activity runs again.
#[tokio::test]
async fn an_activity_whose_lease_ends_stays_in_the_queue_and_runs_again() {
    let file = File::new();
    let store = file.open().await;
    let faults = Faults::default();
    faults.inject(|method, _| (method == "renew_work_item_lock").then_some(Fault::Retryable));
    let (began, mut begins) = mpsc::unbounded_channel();
    let works = move |ctx: ActivityContext, input: String| {
        let began = began.clone();
        async move {
            began.send(Instant::now()).unwrap();
            tokio::select! {
                () = tokio::time::sleep(WORK) => {}
                () = ctx.cancelled() => {}
            }
            Ok(input)
        }
    };
    let activities = ActivityRegistry::builder().register("Works", works).build();
    let runtime = node(&faults.around(&store), activities, calls_one(), options()).await;
    let client = Client::new(store);
    client.start_orchestration("i", "Calls", "done").await.unwrap();
    let first = tokio::time::timeout(WAIT_MAX, begins.recv()).await.unwrap().unwrap();
    let second = tokio::time::timeout(WAIT_MAX, begins.recv()).await.unwrap().unwrap();
    assert!(second - first >= WORKER_LOCK - Duration::from_millis(500), "not before the lease has ended");
    assert_eq!(attempts(&file), [2], "the row is still there, and was fetched again");
    faults.heal();
    assert_eq!(output(ended(&client, "i").await), "done");
    assert_eq!(faults.called("ack_work_item"), 1, "what lost its lease acknowledged nothing");
    runtime.shutdown(None).await;
}

/// B2, 16.4, third case: a definite answer that the lock is lost fires the token within one renewal interval.
#[tokio::test]
async fn a_permanent_renewal_error_stops_the_activity() {
    let file = File::new();
    let store = file.open().await;
    let faults = Faults::default();
    let refused: Arc<Mutex<Option<Instant>>> = Arc::default();
    let first_refusal = Arc::clone(&refused);
    faults.inject(move |method, _| {
        (method == "renew_work_item_lock").then(|| {
            first_refusal.lock().unwrap().get_or_insert_with(Instant::now);
            Fault::Permanent
        })
    });
    let (stopped, mut stops) = mpsc::unbounded_channel();
    let works = move |ctx: ActivityContext, input: String| {
        let stopped = stopped.clone();
        async move {
            ctx.cancelled().await;
            stopped.send(Instant::now()).unwrap();
            Ok(input)
        }
    };
    let activities = ActivityRegistry::builder().register("Works", works).build();
    let runtime = node(&faults.around(&store), activities, calls_one(), options()).await;
    Client::new(store).start_orchestration("i", "Calls", "").await.unwrap();
    let stopped = tokio::time::timeout(WAIT_MAX, stops.recv()).await.unwrap().unwrap();
    let refused = refused.lock().unwrap().unwrap();
    assert!(stopped - refused <= RENEWAL_INTERVAL, "{:?}", stopped - refused);
    runtime.shutdown(Some(0)).await;
}

/// B16, 16.3: locks of 400 ms, an activity of 3 s and a turn that blocks its thread for 1 s.
#[tokio::test]
async fn leases_shorter_than_the_work_are_renewed_in_time() {
    let file = File::new();
    let store = file.open().await;
    let faults = Faults::default();
    let seen = Arc::new(Seen::default());
    let turns = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&turns);
    let slow = move |ctx: OrchestrationContext, input: String| {
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            thread::sleep(Duration::from_secs(1));
        }
        async move { ctx.schedule_activity("Works", input).await }
    };
    let orchestrations = OrchestrationRegistry::builder().register("Slow", slow).build();
    let options = RuntimeOptions {
        orchestrator_lock_timeout: Duration::from_millis(400),
        worker_lock_timeout: Duration::from_millis(400),
        ..quick_options()
    };
    let activities = works(&seen, Duration::from_secs(3));
    let runtime = node(&faults.around(&store), activities, orchestrations, options).await;
    let client = Client::new(store);
    client.start_orchestration("i", "Slow", "done").await.unwrap();
    // Five renewals are two leases and a half.
    faults.until_called("renew_orchestration_item_lock", 4).await;
    faults.until_called("renew_work_item_lock", 5).await;
    assert_eq!(attempts(&file), [1]);
    assert_eq!(output(ended(&client, "i").await), "done");
    runtime.shutdown(None).await;
    assert_eq!((turns.load(Ordering::SeqCst), seen.runs.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(file.snapshot().instances[0].executions[0].turns, 2, "the start and the result, once each");
}
