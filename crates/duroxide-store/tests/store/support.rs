//! A store that is driven by hand: virtual time, no threads, and an engine with planned failures.

pub(crate) mod counters;
mod engine;

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use duroxide_core::{Clock, Event, EventKind, Timestamp, WorkItem};
use duroxide_provider::{
    ExecutionMetadata, OrchestrationClaim, OrchestrationFetch, Provider, Round, TagFilter, WorkClaim,
    WorkFetch,
};
use duroxide_store::{Idle, StoreDriver, StoreOptions, StoreProvider};

pub(crate) use self::engine::{Plan, Point, ScriptedEngine};

pub(crate) const LOCK: Duration = Duration::from_secs(30);
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Time that moves only by calls of a test.
pub(crate) struct ManualClock {
    wall: AtomicU64,
    /// The steady clock, which cannot be set.
    steady: AtomicU64,
}

impl ManualClock {
    /// A clock some time after the epoch.
    pub(crate) fn new() -> Self {
        Self { wall: AtomicU64::new(1_000_000_000_000), steady: AtomicU64::new(0) }
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, by: Duration) {
        self.set_forward(by);
        self.steady.fetch_add(micros(by), Ordering::SeqCst);
    }

    pub(crate) fn set_back(&self, by: Duration) {
        self.wall.fetch_sub(micros(by), Ordering::SeqCst);
    }

    pub(crate) fn set_forward(&self, by: Duration) {
        self.wall.fetch_add(micros(by), Ordering::SeqCst);
    }

    /// How much time has passed.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_micros(self.steady.load(Ordering::SeqCst))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap()
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.wall.load(Ordering::SeqCst))
    }
}

/// A store that is driven by hand.
pub(crate) struct Fixture {
    pub(crate) provider: StoreProvider,
    pub(crate) store: StoreDriver,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) plan: Plan,
}

pub(crate) fn fixture() -> Fixture {
    fixture_with(StoreOptions::default())
}

pub(crate) fn fixture_with(options: StoreOptions) -> Fixture {
    let clock = Arc::new(ManualClock::new());
    let steady = Arc::clone(&clock);
    let plan = Plan::default();
    let mut nonce = 0;
    let (provider, store) = StoreProvider::builder(ScriptedEngine::new(plan.clone()))
        .with_clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .with_steady_clock(move || steady.elapsed())
        .with_nonces(move || {
            nonce += 1;
            nonce
        })
        .with_options(options)
        .stepped()
        .unwrap();
    Fixture { provider, store, clock, plan }
}

/// An engine that follows this plan.
pub(crate) fn scripted_engine(plan: &Plan) -> ScriptedEngine {
    ScriptedEngine::new(plan.clone())
}

/// Polls a call once.
pub(crate) fn poll<F: Future + ?Sized>(call: &mut Pin<&mut F>) -> Poll<F::Output> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Hands a call in. It must wait for the store.
pub(crate) fn hand_in<F: Future + ?Sized>(call: &mut Pin<&mut F>) {
    assert!(poll(call).is_pending(), "answered before the store ran");
}

/// The answer of a submitted call.
pub(crate) fn answer<F: Future + ?Sized>(call: &mut Pin<&mut F>) -> F::Output {
    match poll(call) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the call still waits"),
    }
}

/// Runs a call to its end.
pub(crate) fn complete<F: Future>(store: &mut StoreDriver, call: F) -> F::Output {
    let mut call = pin!(call);
    for _ in 0..8 {
        if let Poll::Ready(answer) = poll(&mut call) {
            return answer;
        }
        assert_ne!(store.run(), Idle::Closed);
    }
    panic!("the call still waits");
}

// ---- work ---------------------------------------------------------------------------------------------------

pub(crate) fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Hello".to_owned(),
        input: String::new(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

pub(crate) fn activity(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        name: "Greet".to_owned(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
}

pub(crate) fn completed(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        result: "done".to_owned(),
    }
}

pub(crate) fn event(instance: &str, event_id: u64, kind: EventKind) -> Event {
    Event {
        event_id,
        source_event_id: None,
        instance_id: instance.to_owned(),
        execution_id: 1,
        timestamp_ms: 0,
        duroxide_version: "0.5.0".to_owned(),
        kind,
    }
}

pub(crate) fn started(instance: &str) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: "Hello".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    event(instance, 1, kind)
}

/// The first round: the instance exists and calls one activity.
pub(crate) fn first_round(instance: &str) -> Round {
    Round {
        execution_id: 1,
        history_delta: vec![started(instance)],
        worker_items: vec![activity(instance, 2)],
        metadata: ExecutionMetadata {
            orchestration_name: Some("Hello".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            ..ExecutionMetadata::default()
        },
        ..Round::default()
    }
}

/// A round that ends the instance.
pub(crate) fn last_round(instance: &str) -> Round {
    Round {
        execution_id: 1,
        history_delta: vec![event(
            instance,
            2,
            EventKind::OrchestrationCompleted { output: "done".to_owned() },
        )],
        metadata: ExecutionMetadata {
            status: Some("Completed".to_owned()),
            output: Some("done".to_owned()),
            ..ExecutionMetadata::default()
        },
        ..Round::default()
    }
}

// ---- calls --------------------------------------------------------------------------------------------------

/// A fetch of instances that waits for a minute.
pub(crate) async fn fetch_instances(provider: &StoreProvider, max: usize) -> Vec<OrchestrationClaim> {
    let request = OrchestrationFetch::new(LOCK, LONG).with_max(max, max);
    provider.fetch_orchestration_items(&request).await.unwrap()
}

/// A fetch of activities that waits for a minute.
pub(crate) async fn fetch_activities(provider: &StoreProvider, max: usize) -> Vec<WorkClaim> {
    let tags = TagFilter::default();
    let request = WorkFetch::new(LOCK, LONG, &tags).with_max(max, max);
    provider.fetch_work_items(&request).await.unwrap()
}

/// A fetch of one instance that does not wait.
pub(crate) async fn look_for_instances(provider: &StoreProvider) -> Vec<OrchestrationClaim> {
    provider.fetch_orchestration_items(&OrchestrationFetch::new(LOCK, Duration::ZERO)).await.unwrap()
}

/// A fetch of one activity that does not wait.
pub(crate) async fn look_for_activities(provider: &StoreProvider) -> Vec<WorkClaim> {
    let tags = TagFilter::default();
    provider.fetch_work_items(&WorkFetch::new(LOCK, Duration::ZERO, &tags)).await.unwrap()
}

/// Starts an instance and claims it.
pub(crate) fn claim_new(f: &mut Fixture, instance: &str) -> OrchestrationClaim {
    let Fixture { provider, store, .. } = f;
    complete(store, provider.enqueue_for_orchestrator(start(instance), None)).unwrap();
    complete(store, fetch_instances(provider, 1)).pop().unwrap()
}
