//! Histories as earlier versions stored them. Each line of a golden file is one stored event; the files are never
//! edited, only added to, because users' stores hold such lines for as long as their instances live.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use duroxide::{
    ActivityContext, Client, Either2, Either3, Event, EventKind, OrchestrationContext, OrchestrationRegistry,
    OrchestrationStatus,
    providers::{ExecutionMetadata, Provider, WorkItem},
    runtime::registry::ActivityRegistry,
};
use serde_json::Value;

use crate::{
    commit_first_visible,
    fixture::{File, ended, node, output, quick_options},
    start,
};

/// Recorded by [`every_step`] until it waited for `go`.
const EVERY_STEP: &str = include_str!("golden/every_step.jsonl");

/// Both executions of [`carries`], the second one waiting for `go`.
const CONTINUED: &str = include_str!("golden/continued.jsonl");

/// [`older`], without the fields that were added later.
const OLDER: &str = include_str!("golden/older.jsonl");

/// [`races`], with results, timers and events in another order than they were asked for.
const RACES: &str = include_str!("golden/races.jsonl");

/// Instances that have ended, each in its own way.
const ENDS: &str = include_str!("golden/ends.jsonl");

/// Calls everything that records events, and waits for `go`.
async fn every_step(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.set_custom_status("begun");
    ctx.set_kv_value("kept", "1");
    ctx.set_kv_value("cleared", "2");
    ctx.clear_kv_value("cleared");
    ctx.schedule_orchestration("Echo", "chained", "detached");
    let done = ctx.schedule_activity("Works", input).await?;
    let refused = ctx.schedule_activity("Refuses", done).await.unwrap_err();
    ctx.schedule_timer(Duration::from_millis(1)).await;
    let child = ctx.schedule_sub_orchestration("Echo", refused).await?;
    let failed = ctx.schedule_sub_orchestration_with_id("Fails", "failing", child).await.unwrap_err();
    give_everything_up(&ctx).await;
    let signal = ctx.schedule_wait("signal").await;
    let message = ctx.dequeue_event("queue").await;
    let kept = ctx.get_kv_value("kept").unwrap_or_default();
    ctx.clear_all_kv_values();
    ctx.reset_custom_status();
    let go = ctx.schedule_wait("go").await;
    Ok(format!("{failed}, {signal}, {message}, {kept}, {go}"))
}

/// Drops one of each kind that can be dropped.
async fn give_everything_up(ctx: &OrchestrationContext) {
    let child = ctx.schedule_sub_orchestration_with_id("Waits", "given-up", "");
    let (activity, wait) = (ctx.schedule_activity("Works", "given up"), ctx.schedule_wait("never"));
    let queue = ctx.dequeue_event("empty");
    let timer = ctx.schedule_timer(Duration::from_millis(1));
    let winner = ctx.select3(timer, wait, queue).await;
    assert!(matches!(winner, Either3::First(())), "nobody sends to the others");
    drop((activity, child));
}

async fn carries(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let status = ctx.get_custom_status().unwrap_or_default();
    let message = ctx.dequeue_event("queue").await;
    Ok(format!("{input}, {status}, {message}, {}", ctx.schedule_wait("go").await))
}

async fn older(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.set_kv_value("kept", "1");
    let done = ctx.schedule_activity_on_session("Works", "x", "s").with_tag("gpu").await?;
    let go = ctx.schedule_wait("go").await;
    // Only a key without a time is older than the first millisecond.
    let pruned = ctx.prune_kv_values_updated_before(1);
    Ok(format!("{done}, {go}, {pruned} pruned"))
}

/// All calls whose outcome depends on how the engine matches events with calls.
async fn races(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let (first, second) =
        ctx.join2(ctx.schedule_activity("Works", "a"), ctx.schedule_activity("Works", "b")).await;
    let timers = (ctx.schedule_timer(Duration::from_secs(1)), ctx.schedule_timer(Duration::from_secs(1)));
    let timer = match ctx.select2(timers.0, timers.1).await {
        Either2::First(()) => "first timer",
        Either2::Second(()) => "second timer",
    };
    let signal = match ctx.select2(ctx.schedule_wait("left"), ctx.schedule_wait("right")).await {
        Either2::First(data) | Either2::Second(data) => data,
    };
    let same = ctx.join2(ctx.schedule_wait("same"), ctx.schedule_wait("same")).await;
    let go = ctx.schedule_wait("go").await;
    Ok([first?, second?, timer.to_owned(), signal, same.0, same.1, go].join(", "))
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Races", races)
        .register("EveryStep", every_step)
        .register("Carries", carries)
        .register("Older", older)
        .register("Waits", crate::waits)
        .register("Echo", |_ctx, input| async move { Ok(input) })
        .register("Fails", |_ctx, input| async move { Err(format!("{input} and failed")) })
        .build()
}

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Works", |_ctx: ActivityContext, input: String| async move { Ok(format!("{input} done")) })
        .register("Refuses", |_ctx: ActivityContext, input: String| async move {
            Err(format!("{input}, refused"))
        })
        .build()
}

/// The histories of a golden file: each begins with its first event.
fn histories(golden: &str) -> Vec<Vec<Event>> {
    let mut histories: Vec<Vec<Event>> = Vec::new();
    for line in golden.lines() {
        let event: Event = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        match histories.last_mut() {
            Some(history) if event.event_id > 1 => history.push(event),
            _ => histories.push(vec![event]),
        }
    }
    histories
}

/// Stores the executions of one instance as the version that recorded them did.
async fn store_executions(store: &Arc<dyn Provider>, executions: &[Vec<Event>]) {
    store.enqueue_for_orchestrator(start_of(&executions[0]), None).await.unwrap();
    for (n, history) in executions.iter().enumerate() {
        let next = executions.get(n + 1).map(|next| continuation_of(next));
        commit_first_visible(store, history.clone(), next.into_iter().collect(), metadata_of(history)).await;
    }
}

fn start_of(history: &[Event]) -> WorkItem {
    let EventKind::OrchestrationStarted { name, input, .. } = &history[0].kind else { panic!("{history:?}") };
    start(&history[0].instance_id, name, input)
}

fn continuation_of(history: &[Event]) -> WorkItem {
    let EventKind::OrchestrationStarted { name, input, .. } = &history[0].kind else { panic!("{history:?}") };
    WorkItem::ContinueAsNew {
        instance: history[0].instance_id.clone(),
        orchestration: name.clone(),
        input: input.clone(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: Vec::new(),
        initial_custom_status: None,
    }
}

fn metadata_of(history: &[Event]) -> ExecutionMetadata {
    let EventKind::OrchestrationStarted { name, version, .. } = &history[0].kind else {
        panic!("{history:?}")
    };
    let status = match &history[history.len() - 1].kind {
        EventKind::OrchestrationCompleted { .. } => Some("Completed"),
        EventKind::OrchestrationFailed { .. } => Some("Failed"),
        EventKind::OrchestrationContinuedAsNew { .. } => Some("ContinuedAsNew"),
        _ => None,
    };
    ExecutionMetadata {
        status: status.map(str::to_owned),
        orchestration_name: Some(name.clone()),
        orchestration_version: Some(version.clone()),
        ..ExecutionMetadata::default()
    }
}

/// S2.3, S2.15: every kind that was ever written is in a golden file, and each line is still read as it was written.
#[test]
fn every_kind_ever_written_stays_decodable() {
    let mut seen = BTreeSet::new();
    for line in [EVERY_STEP, CONTINUED, ENDS].iter().flat_map(|golden| golden.lines()) {
        let event: Event = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let (stored, written): (Value, Value) =
            (serde_json::from_str(line).unwrap(), serde_json::to_value(&event).unwrap());
        assert_eq!(written, stored);
        seen.insert(event.kind.wire_name());
    }
    let kinds = [
        "ActivityCancelRequested",
        "ActivityCompleted",
        "ActivityFailed",
        "ActivityScheduled",
        "CancellationSubscribed",
        "CustomStatusUpdated",
        "ExternalEvent",
        "ExternalEventPersistent",
        "ExternalSubscribed",
        "ExternalSubscribedCancelled",
        "ExternalSubscribedPersistent",
        "ExternalSubscribedPersistentCancelled",
        "KeyValueCleared",
        "KeyValueSet",
        "KeyValuesCleared",
        "OrchestrationCancelRequested",
        "OrchestrationChained",
        "OrchestrationCompleted",
        "OrchestrationContinuedAsNew",
        "OrchestrationFailed",
        "OrchestrationStarted",
        "StepEnded",
        "SubOrchestrationCancelRequested",
        "SubOrchestrationCompleted",
        "SubOrchestrationFailed",
        "SubOrchestrationScheduled",
        "TimerCreated",
        "TimerFired",
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), kinds);
}

/// S2.3: a recorded history is replayed to its last event, and goes on from there.
#[tokio::test]
async fn recorded_histories_are_replayed_and_go_on() {
    let file = File::new();
    let store = file.open().await;
    for golden in [EVERY_STEP, CONTINUED, OLDER] {
        store_executions(&store, &histories(golden)).await;
    }
    let client = Client::new(store.clone());
    for instance in ["golden", "continued", "older"] {
        client.raise_event(instance, "go", "went").await.unwrap();
    }
    let runtime = node(&store, activities(), orchestrations(), quick_options()).await;

    let text = output(ended(&client, "golden").await);
    assert_eq!(text, "input done, refused and failed, signalled, queued, 1, went");
    assert_eq!(output(ended(&client, "continued").await), "next, kept, carried, went");
    assert_eq!(output(ended(&client, "older").await), "x done, went, 1 pruned");

    let after = store.read("golden").await.unwrap();
    let before = histories(EVERY_STEP).remove(0);
    assert_eq!(after[..before.len()], before[..], "S2.4: what was recorded is not rewritten");
    let build = env!("CARGO_PKG_VERSION");
    assert!(after[before.len()..].iter().all(|event| event.duroxide_version == build), "{after:?}");
    runtime.shutdown(None).await;
}

/// S2.11, 2.4, 2.7, 4.2, 5.1, 9.2: a change of how completions find their schedules (here the second activity completed
/// first), how timers, selects, joins or events are matched, or of the meaning of a kind, breaks running executions. If this
/// test fails, the change is such a one: see "Changing what the engine means" in CONTRIBUTING.md. Never change the file.
#[tokio::test]
async fn the_outcome_of_a_recorded_race_never_changes() {
    let file = File::new();
    let store = file.open().await;
    store_executions(&store, &histories(RACES)).await;
    let client = Client::new(store.clone());
    client.raise_event("races", "go", "went").await.unwrap();
    let runtime = node(&store, activities(), orchestrations(), quick_options()).await;
    let expected = "first done, second done, second timer, from the right, one, two, went";
    assert_eq!(output(ended(&client, "races").await), expected);
    runtime.shutdown(None).await;
}

/// S2.3: the outcome of an instance of an older release can still be read.
#[tokio::test]
async fn recorded_ends_can_be_read() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    for history in histories(ENDS) {
        store_executions(&store, std::slice::from_ref(&history)).await;
        let status = client.get_orchestration_status(&history[0].instance_id).await.unwrap();
        match (status, &history[history.len() - 1].kind) {
            (
                OrchestrationStatus::Completed { output, .. },
                EventKind::OrchestrationCompleted { output: expected },
            ) => {
                assert_eq!(&output, expected);
            }
            (
                OrchestrationStatus::Failed { details, .. },
                EventKind::OrchestrationFailed { details: expected },
            ) => {
                assert_eq!(&details, expected);
                assert!(!details.display_message().is_empty());
            }
            (status, end) => panic!("{status:?} is not {end:?}"),
        }
    }
}
