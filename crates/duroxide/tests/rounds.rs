//! S4: rounds are all or nothing, for every failure around them.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

mod fixture;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use duroxide::{
    Client, Event, EventKind, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::{Provider, ProviderError},
    runtime::registry::ActivityRegistry,
};

use crate::fixture::{
    File, ended,
    intercept::{Intercept, Intercepted},
    node, output, quick_options, recorded,
};

/// Two activities in parallel, a timer, a child and a signal.
async fn workflow(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let (a, b) = ctx.join2(ctx.schedule_activity("Echo", "a"), ctx.schedule_activity("Echo", "b")).await;
    ctx.schedule_timer(Duration::from_millis(1)).await;
    let child = ctx.schedule_sub_orchestration("Child", "c").await?;
    let signal = ctx.schedule_wait("signal");
    ctx.schedule_activity("Raise", ctx.instance_id()).await?;
    Ok([a?, b?, child, signal.await].concat())
}

async fn child(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity("Echo", input).await
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder().register("Workflow", workflow).register("Child", child).build()
}

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Echo", |_ctx, input| async move { Ok(input) })
        .register("Raise", |ctx: duroxide::ActivityContext, instance: String| async move {
            let raised = ctx.get_client().raise_event(instance, "signal", "d").await;
            raised.map(|()| String::new()).map_err(|error| error.to_string())
        })
        .build()
}

/// On which side of the store a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// It never reaches the store.
    Before,
    /// The store has done it, and the answer is lost.
    After,
}

/// Fails the n-th call of a method, once or several times in a row, with a retryable error.
struct Fails {
    method: &'static str,
    side: Side,
    first: u32,
    times: u32,
    commits_rounds: bool,
    seen: Mutex<BTreeMap<&'static str, u32>>,
}

impl Fails {
    fn check(&self, method: &'static str, side: Side) -> Result<(), ProviderError> {
        if method != self.method || side != self.side {
            return Ok(());
        }
        let mut seen = self.seen.lock().unwrap();
        let count = seen.entry(method).or_default();
        *count += 1;
        if (self.first..self.first + self.times).contains(count) {
            return Err(ProviderError::retryable(method, "injected"));
        }
        Ok(())
    }
}

#[async_trait]
impl Intercept for Fails {
    fn commits_rounds(&self) -> bool {
        self.commits_rounds
    }

    async fn before(&self, method: &'static str) -> Result<(), ProviderError> {
        self.check(method, Side::Before)
    }

    async fn after(&self, method: &'static str) -> Result<(), ProviderError> {
        self.check(method, Side::After)
    }
}

/// Runs the workflow under this failure and checks its history.
async fn survives(method: &'static str, side: Side, first: u32, times: u32) {
    let file = File::new();
    let inner = file.open().await;
    let client = Client::new(inner.clone());
    let commits_rounds = method == "commit_round";
    let fails = Fails { method, side, first, times, commits_rounds, seen: Mutex::default() };
    let store: Arc<dyn Provider> = Intercepted::new(inner, fails);
    let options = RuntimeOptions {
        orchestrator_lock_timeout: Duration::from_secs(1),
        worker_lock_timeout: Duration::from_secs(1),
        max_attempts: 10,
        ..quick_options()
    };
    let runtime = node(&store, activities(), orchestrations(), options).await;
    client.start_orchestration("i", "Workflow", "").await.unwrap();

    assert_eq!(output(ended(&client, "i").await), "abcd", "{method} {side:?} {first}");

    runtime.shutdown(None).await;
    for instance in client.get_instance_tree("i").await.unwrap().all_ids {
        check_history(&client.read_execution_history(&instance, 1).await.unwrap());
    }
    let depths = client.get_queue_depths().await.unwrap();
    assert_eq!((depths.orchestrator_queue, depths.worker_queue), (0, 0), "nothing is left behind");
}

/// I01 to I05: one start, one end, no gaps, one completion for every schedule.
#[track_caller]
fn check_history(history: &[Event]) {
    let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
    assert_eq!(ids, (1..=history.len() as u64).collect::<Vec<_>>());
    assert_eq!(history.iter().filter(|event| event.is_terminal()).count(), 1);
    assert!(history.last().unwrap().is_terminal());
    let mut completed: Vec<u64> = history.iter().filter_map(|event| event.source_event_id).collect();
    completed.sort_unstable();
    let scheduled = history.iter().filter(|event| {
        matches!(
            event.kind,
            EventKind::ActivityScheduled { .. }
                | EventKind::TimerCreated { .. }
                | EventKind::SubOrchestrationScheduled { .. }
        )
    });
    assert_eq!(completed, scheduled.map(|event| event.event_id).collect::<Vec<_>>(), "{history:?}");
}

/// S4.1, S4.22, S4.23, S4.25, S4.26, S4.27, 16.5: a round that does not reach the store is tried again, and leaves nothing.
#[tokio::test]
async fn a_commit_that_fails_is_repeated_without_a_trace() {
    for first in 1..=6 {
        survives("commit_round", Side::Before, first, 2).await;
        survives("ack_orchestration_item", Side::Before, first, 2).await;
    }
}

/// S4.24, S4.41: the round is stored, the answer is lost; the repeated commit finds its lock gone and changes nothing.
#[tokio::test]
async fn a_commit_whose_answer_is_lost_happened_once() {
    for first in 1..=6 {
        survives("commit_round", Side::After, first, 1).await;
        survives("ack_orchestration_item", Side::After, first, 1).await;
    }
}

/// S4.15, S4.27, S4.41: the same for the result of an activity.
#[tokio::test]
async fn an_activity_result_is_recorded_once() {
    for first in 1..=4 {
        survives("ack_work_item", Side::Before, first, 2).await;
        survives("ack_work_item", Side::After, first, 1).await;
    }
}

/// S4.2, S4.10, S4.35, 16.13: a fetch whose answer is lost leaves its item to the lease; it is delivered again.
#[tokio::test]
async fn a_lost_fetch_is_delivered_again() {
    for first in 1..=2 {
        survives("fetch_orchestration_item", Side::Before, first, 2).await;
        survives("fetch_work_item", Side::Before, first, 2).await;
        survives("fetch_orchestration_item", Side::After, first, 1).await;
        survives("fetch_work_item", Side::After, first, 1).await;
    }
}

async fn waits_twice(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_wait("open").await;
    let first = ctx.schedule_wait("e").await;
    ctx.schedule_wait("close").await;
    Ok(first)
}

/// S4.12, S4.18, S4.28, S4.31, S4.42, C14, C15: early and late events are recorded but not delivered; each raise counts.
#[tokio::test]
async fn early_late_and_duplicate_events() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations = OrchestrationRegistry::builder().register("WaitsTwice", waits_twice).build();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, quick_options()).await;
    let client = Client::new(store);
    client.start_orchestration("i", "WaitsTwice", "").await.unwrap();
    let subscribed = |wanted: &'static str| move |event: &Event| matches!(&event.kind, EventKind::ExternalSubscribed { name } if name == wanted);
    let arrived = |wanted: &'static str| move |event: &Event| matches!(&event.kind, EventKind::ExternalEvent { data, .. } if data == wanted);

    recorded(&client, "i", subscribed("open")).await;
    client.raise_event("i", "e", "early").await.unwrap();
    recorded(&client, "i", arrived("early")).await;
    client.raise_event("i", "open", "now").await.unwrap();
    recorded(&client, "i", subscribed("e")).await;
    client.raise_event("i", "e", "in time").await.unwrap();
    client.raise_event("i", "e", "duplicate").await.unwrap();
    recorded(&client, "i", arrived("duplicate")).await;
    client.raise_event("i", "close", "now").await.unwrap();

    assert_eq!(output(ended(&client, "i").await), "in time");
    client.raise_event("i", "e", "too late").await.unwrap();
    client.start_orchestration("fence", "WaitsTwice", "").await.unwrap();
    recorded(&client, "fence", subscribed("open")).await;
    let history = client.read_execution_history("i", 1).await.unwrap();
    assert!(history.last().unwrap().is_terminal(), "nothing is appended after the end");
    assert_eq!(
        client.get_queue_depths().await.unwrap().orchestrator_queue,
        0,
        "every event was acknowledged"
    );
    runtime.shutdown(None).await;
}
