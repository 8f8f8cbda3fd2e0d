//! Races in which a real runtime must choose the same winner live, on replay, and over continue-as-new.
//!
//! The nodes here have no execution cache, and most validations replace the node half way, so that decisions depend on
//! the store alone.

use std::sync::Arc;

use duroxide_core::{Either2, ErrorDetails, Event, EventKind, OrchestrationContext};
use duroxide_provider::Provider;
use duroxide_runtime::{OrchestrationRegistry, OrchestrationStatus, RuntimeOptions};

use crate::{
    factory::ProviderFactory,
    fixture::Fixture,
    message::{queue_message, start_of},
    node::{Node, race, replaying, with_race},
    round::first_metadata,
};

type Output = Result<String, String>;

fn has(history: &[Event], wanted: impl Fn(&EventKind) -> bool) -> bool {
    history.iter().any(|event| wanted(&event.kind))
}

fn waits_for_go(history: &[Event]) -> bool {
    has(history, |kind| matches!(kind, EventKind::ExternalSubscribed { name } if name == "go"))
}

async fn waits_and_says(ctx: OrchestrationContext, word: &str) -> Output {
    ctx.schedule_wait("go").await;
    Ok(word.to_owned())
}

/// A second start never replaces the handler, version or input with which an instance began (2.3, 18.1).
pub async fn test_duplicate_start_preserves_pinned_handler<F: ProviderFactory + ?Sized>(factory: &F) {
    let provider = factory.create_provider().await;
    let old =
        Node::start(&provider, race("1.0.0", |ctx, input| async move { waits_and_says(ctx, &input).await }))
            .await;
    old.client().start_orchestration("twice", "Race", "one").await.expect("a start is accepted");
    old.until_history("twice", "it must wait for `go`", waits_for_go).await;
    old.stop().await;

    let registry = with_race(OrchestrationRegistry::builder(), "1.0.0", |ctx, input| async move {
        waits_and_says(ctx, &input).await
    });
    let registry = with_race(registry, "2.0.0", |_, _| async { Ok("the wrong version".to_owned()) }).build();
    let new = Node::start(&provider, registry).await;
    let client = new.client();
    let second = client.start_orchestration_versioned("twice", "Race", "2.0.0", "two").await;
    second.expect("a second start is accepted by the queue");
    client.raise_event("twice", "go", "").await.expect("an event is accepted");
    assert_eq!(new.output_of("twice").await, "one", "the instance must go on with its own version and input");
    new.stop().await;
}

/// A registry whose `Race` 1.0.0 continues as new to version 2.0.0, which the registry does not have.
fn continuing_to_missing_version() -> OrchestrationRegistry {
    race("1.0.0", |ctx, _| async move { ctx.continue_as_new_versioned("2.0.0", "carried on").await })
}

/// A registry whose `Race` 2.0.0 returns its execution and input.
fn second_version() -> OrchestrationRegistry {
    race("2.0.0", |ctx, input| async move { Ok(format!("execution {} got {input}", ctx.execution_id())) })
}

fn continued(history: &[Event]) -> bool {
    has(history, |kind| matches!(kind, EventKind::OrchestrationContinuedAsNew { .. }))
}

/// A successor without a handler waits until a node has the handler; the instance keeps running (8.5, 8.6, 16.8).
pub async fn test_continue_as_new_unregistered_backoff<F: ProviderFactory + ?Sized>(factory: &F) {
    let provider = factory.create_provider().await;
    let old = Node::start(&provider, continuing_to_missing_version()).await;
    old.client().start_orchestration("moves", "Race", "").await.expect("a start is accepted");
    old.until_history("moves", "it must continue as new", continued).await;
    let status = old.client().get_orchestration_status("moves").await.expect("the status can be read");
    assert!(
        matches!(status, OrchestrationStatus::Running { .. }),
        "between executions it runs, but is {status:?}"
    );

    let new = Node::start(&provider, second_version()).await;
    assert_eq!(new.output_of("moves").await, "execution 2 got carried on");
    old.stop().await;
    new.stop().await;
}

/// A poisoned successor fails as an execution of its own; the execution before it still ended in continue-as-new (8.6,
/// S0.A1).
pub async fn test_continue_as_new_poisoned_successor_is_own_execution<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let provider = factory.create_provider().await;
    let options = RuntimeOptions { max_attempts: 2, ..replaying() };
    let node = Node::start_with(&provider, continuing_to_missing_version(), options).await;
    node.client().start_orchestration("poisoned", "Race", "").await.expect("a start is accepted");
    match node.end_of("poisoned").await {
        OrchestrationStatus::Failed { details: ErrorDetails::Poison { .. }, .. } => {}
        other => panic!("a successor without handler must be poisoned, but is {other:?}"),
    }
    let first = provider.read_with_execution("poisoned", 1).await.expect("execution 1 is there");
    assert!(continued(&first), "execution 1 must still end in continue-as-new");
    let second = provider.read_with_execution("poisoned", 2).await.expect("execution 2 is there");
    assert_eq!(second.len(), 2, "execution 2 must hold its start and its failure: {second:#?}");
    assert!(matches!(second[0].kind, EventKind::OrchestrationStarted { .. }));
    assert!(matches!(second[1].kind, EventKind::OrchestrationFailed { .. }));
    node.stop().await;
}

/// A `ContinueAsNew` item takes precedence over a client's start in the same batch, in either order (2.3).
pub async fn test_continue_as_new_duplicate_start<F: ProviderFactory + ?Sized>(factory: &F) {
    let provider = factory.create_provider().await;
    let old = Node::start(&provider, continuing_to_missing_version()).await;
    old.client().start_orchestration("outranked", "Race", "").await.expect("a start is accepted");
    old.until_history("outranked", "it must continue as new", continued).await;
    old.stop().await;
    let duplicate = start_of("outranked", "Race", Some("1.0.0"));
    provider
        .enqueue_for_orchestrator(duplicate, None)
        .await
        .expect("a second start is accepted by the queue");

    let new = Node::start(&provider, second_version()).await;
    assert_eq!(new.output_of("outranked").await, "execution 2 got carried on");
    new.stop().await;
}

/// Restamps events, as if another version of duroxide had written them.
fn stamped(mut events: Vec<Event>, stamp: &str) -> Vec<Event> {
    for event in &mut events {
        stamp.clone_into(&mut event.duroxide_version);
    }
    events
}

fn race_started(instance: &str) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: "Race".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    crate::round::event(instance, 1, 1, kind)
}

/// Stores the first execution of a `Race` that another version of duroxide ran to this point.
async fn store_history(fixture: &Fixture, instance: &str, stamp: &str, rest: Vec<EventKind>) -> Vec<Event> {
    let rest = (2..).zip(rest).map(|(id, kind)| crate::round::event(instance, 1, id, kind));
    let events = stamped([race_started(instance)].into_iter().chain(rest).collect(), stamp);
    fixture.send(start_of(instance, "Race", Some("1.0.0"))).await;
    let claim = fixture.claim_instance(instance).await;
    let mut round = crate::round::turn_round(1, events.clone());
    round.metadata = first_metadata();
    round.metadata.orchestration_name = Some("Race".to_owned());
    round.metadata.pinned_duroxide_version = stamp.parse().ok();
    fixture.commit(&claim, round).await;
    events
}

async fn reads_two_messages(ctx: OrchestrationContext) -> Output {
    let first = ctx.dequeue_event("queue").await;
    let second = ctx.dequeue_event("queue").await;
    Ok(format!("execution {} got {first} and {second}", ctx.execution_id()))
}

/// Messages that arrive while an execution continues as new are delivered to the next one, after the carried ones (8.3,
/// 8.5, I15). The first execution was written by the version `stamp`.
pub async fn test_continue_as_new_transition_delivery<F: ProviderFactory + ?Sized>(factory: &F, stamp: &str) {
    let fixture = Fixture::new(factory).await;
    store_history(&fixture, "transit", stamp, vec![]).await;
    let mut end = crate::round::continuation("transit", 1, 2);
    end.history_delta = stamped(end.history_delta, stamp);
    end.orchestrator_items = vec![duroxide_core::WorkItem::ContinueAsNew {
        instance: "transit".to_owned(),
        orchestration: "Race".to_owned(),
        input: String::new(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: vec![("queue".to_owned(), "carried".to_owned())],
        initial_custom_status: None,
    }];
    fixture.turn("transit", end).await;
    fixture.send(queue_message("transit", "waiting")).await;

    let node = Node::start(&fixture.provider, race("1.0.0", |ctx, _| reads_two_messages(ctx))).await;
    assert_eq!(node.output_of("transit").await, "execution 2 got carried and waiting");
    let first = fixture.provider.read_with_execution("transit", 1).await.expect("execution 1 is there");
    assert!(first.iter().all(|event| event.duroxide_version == stamp), "stored events must not change");
    node.stop().await;
}

/// Selects between two queues that both have a message, waits, and reads the remaining message.
async fn races_two_queues(ctx: OrchestrationContext) -> Output {
    let left = ctx.dequeue_event("left");
    let right = ctx.dequeue_event("right");
    let winner = match ctx.select2(right, left).await {
        Either2::First(data) | Either2::Second(data) => data,
    };
    ctx.schedule_wait("go").await;
    let loser = if winner == "from left" { "right" } else { "left" };
    let rest = ctx.dequeue_event(loser).await;
    Ok(format!("{winner}, then {rest}"))
}

/// Sends both messages of [`races_two_queues`] before the instance runs for the first time.
async fn both_messages_first(provider: &Arc<dyn Provider>, instance: &str) {
    let queued = [
        start_of(instance, "Race", Some("1.0.0")),
        duroxide_core::WorkItem::QueueMessage {
            instance: instance.to_owned(),
            name: "left".to_owned(),
            data: "from left".to_owned(),
        },
        duroxide_core::WorkItem::QueueMessage {
            instance: instance.to_owned(),
            name: "right".to_owned(),
            data: "from right".to_owned(),
        },
    ];
    for item in queued {
        provider.enqueue_for_orchestrator(item, None).await.expect("a message is accepted");
    }
}

/// A race between two queues has the same winner on replay, and the loser's message is not lost (10.1, 2.14, B25).
pub async fn test_queue_race_cancellation_replay<F: ProviderFactory + ?Sized>(factory: &F) {
    let provider = factory.create_provider().await;
    both_messages_first(&provider, "queues").await;
    let first = Node::start(&provider, race("1.0.0", |ctx, _| races_two_queues(ctx))).await;
    first.until_history("queues", "it must wait for `go`", waits_for_go).await;
    first.stop().await;

    let second = Node::start(&provider, race("1.0.0", |ctx, _| races_two_queues(ctx))).await;
    second.client().raise_event("queues", "go", "").await.expect("an event is accepted");
    // Messages are bound to subscriptions in the order in which these were made, so the first subscription wins
    // although the select names the other one first.
    assert_eq!(second.output_of("queues").await, "from left, then from right");
    second.stop().await;
}

/// Races two queues in the first execution and continues as new; the second execution reads the remaining message.
async fn carries_the_loser(ctx: OrchestrationContext, input: String) -> Output {
    if ctx.execution_id() > 1 {
        let rest = ctx.dequeue_event(if input == "from left" { "right" } else { "left" }).await;
        return Ok(format!("{input}, then {rest}"));
    }
    let left = ctx.dequeue_event("left");
    let right = ctx.dequeue_event("right");
    let winner = match ctx.select2(left, right).await {
        Either2::First(data) | Either2::Second(data) => data,
    };
    ctx.schedule_wait("go").await;
    ctx.continue_as_new(winner).await
}

/// The message of a queue that lost a race is carried into the next execution (8.3, 10.3, B26).
pub async fn test_continue_as_new_queue_race_replay<F: ProviderFactory + ?Sized>(factory: &F) {
    let provider = factory.create_provider().await;
    both_messages_first(&provider, "carries").await;
    let first = Node::start(&provider, race("1.0.0", carries_the_loser)).await;
    first.until_history("carries", "it must wait for `go`", waits_for_go).await;
    first.stop().await;

    let second = Node::start(&provider, race("1.0.0", carries_the_loser)).await;
    second.client().raise_event("carries", "go", "").await.expect("an event is accepted");
    assert_eq!(second.output_of("carries").await, "from left, then from right");
    second.stop().await;
}

/// A history of an older version is replayed and keeps its stamps; new events have those of this build (S2.5, 17.1).
pub async fn test_queue_replay_version_stamp_roundtrip<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let queue = || "queue".to_owned();
    let written = vec![
        EventKind::QueueSubscribed { name: queue() },
        EventKind::QueueEventDelivered { name: queue(), data: "old".to_owned() },
        EventKind::QueueSubscribed { name: queue() },
    ];
    let old = store_history(&fixture, "stamped", "0.1.0", written).await;
    let node = Node::start(&fixture.provider, race("1.0.0", |ctx, _| reads_two_messages(ctx))).await;
    fixture.send(queue_message("stamped", "new")).await;
    assert_eq!(node.output_of("stamped").await, "execution 1 got old and new");

    let history = fixture.provider.read("stamped").await.expect("read must work");
    assert_eq!(history[..old.len()], old[..], "stored events must not change");
    let build = duroxide_provider::current_build_version().to_string();
    assert!(
        history[old.len()..].iter().all(|event| event.duroxide_version == build),
        "new events must carry the stamp of this build"
    );
    node.stop().await;
}

/// Selects between two waits whose events arrive in one batch, then waits for `go`.
async fn races_two_waits(ctx: OrchestrationContext) -> Output {
    let (a, b) = (ctx.schedule_wait("a"), ctx.schedule_wait("b"));
    let winner = match ctx.select2(a, b).await {
        Either2::First(_) => "a",
        Either2::Second(_) => "b",
    };
    ctx.schedule_wait("go").await;
    Ok(winner.to_owned())
}

/// A race between two waits has the same winner on replay: the event that came first (9.1, 2.14).
pub async fn test_positional_wait_race_replay<F: ProviderFactory + ?Sized>(factory: &F) {
    let provider = factory.create_provider().await;
    let first = Node::start(&provider, race("1.0.0", |ctx, _| races_two_waits(ctx))).await;
    let client = first.client();
    client.start_orchestration("waits", "Race", "").await.expect("a start is accepted");
    let both_open = |history: &[Event]| {
        has(history, |kind| matches!(kind, EventKind::ExternalSubscribed { name } if name == "b"))
    };
    first.until_history("waits", "it must wait for `a` and `b`", both_open).await;
    for name in ["b", "a"] {
        client.raise_event("waits", name, "").await.expect("an event is accepted");
    }
    first.until_history("waits", "it must wait for `go`", waits_for_go).await;
    first.stop().await;

    let second = Node::start(&provider, race("1.0.0", |ctx, _| races_two_waits(ctx))).await;
    second.client().raise_event("waits", "go", "").await.expect("an event is accepted");
    assert_eq!(second.output_of("waits").await, "b", "the event that came first must win, on replay too");
    second.stop().await;
}
