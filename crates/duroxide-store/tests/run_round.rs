//! S4.3 and S4.5: a closure collects a round, which is committed as one.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is a test")]

use std::{sync::Arc, time::Duration};

use duroxide_core::{Event, EventKind, WorkItem};
use duroxide_provider::{
    DequeuedItem, ExecutionMetadata, OpenRound, OrchestrationItem, Provider, ProviderError, TagFilter,
    run_round,
    testing::items::{activity, start},
};
use duroxide_store::MemoryProvider;

const LOCK: Duration = Duration::from_secs(30);

/// A store with one started instance, fetched.
async fn fetched() -> (Arc<MemoryProvider>, OrchestrationItem, String) {
    let store = Arc::new(MemoryProvider::new());
    store.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    let (item, token, _) = fetch(&store).await.expect("the start is visible");
    (store, item, token)
}

async fn fetch(store: &MemoryProvider) -> Option<(OrchestrationItem, String, u32)> {
    store.fetch_orchestration_item(LOCK, Duration::ZERO, None).await.unwrap()
}

async fn fetch_activity(store: &MemoryProvider) -> Option<(WorkItem, String, u32)> {
    store.fetch_work_item(LOCK, Duration::ZERO, None, &TagFilter::default()).await.unwrap()
}

fn event(event_id: u64, execution_id: u64, kind: EventKind) -> Event {
    Event::with_event_id(event_id, "a", execution_id, None, kind)
}

fn first_events() -> Vec<Event> {
    let started = EventKind::OrchestrationStarted {
        name: "Order".to_owned(),
        version: "1.0.0".to_owned(),
        input: "{}".to_owned(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let scheduled = EventKind::ActivityScheduled {
        name: "Ship".to_owned(),
        input: "{}".to_owned(),
        session_id: None,
        tag: None,
    };
    vec![event(1, 1, started), event(2, 1, scheduled)]
}

fn named() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Order".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    }
}

fn first_turn(round: &mut OpenRound) -> Result<(), ProviderError> {
    round.set_metadata(named());
    round.append(first_events())?;
    round.enqueue([activity("a", 2), start("detached")]);
    Ok(())
}

/// Nothing of a round that was not committed is visible: no event, no work, and the lock still holds its messages.
async fn assert_untouched(store: &MemoryProvider, token: &str) {
    assert_eq!(store.read("a").await.unwrap(), []);
    assert_eq!(fetch_activity(store).await, None);
    assert!(fetch(store).await.is_none());
    store.abandon_orchestration_item(token, None, true).await.unwrap();
    let (item, ..) = fetch(store).await.expect("the start is still queued");
    assert_eq!(item.messages, [start("a")]);
}

/// S4.5, S4.16: events, work, metadata and the removal of the messages are one commit. It can be spawned, so the future
/// can move between threads.
#[tokio::test]
async fn a_closure_commits_appends_enqueues_and_acks_as_one_round() {
    let (store, item, token) = fetched().await;
    let shared = Arc::clone(&store);
    let seen = tokio::spawn(async move {
        run_round(&*shared, &token, async |round: &mut OpenRound| {
            let batch = DequeuedItem::batch(&item, &token);
            tokio::task::yield_now().await;
            first_turn(round)?;
            for dequeued in &batch {
                round.ack(&dequeued.token)?;
            }
            Ok(batch)
        })
        .await
    })
    .await
    .unwrap()
    .unwrap();

    assert_eq!(seen.into_iter().map(|dequeued| dequeued.item).collect::<Vec<_>>(), [start("a")]);
    assert_eq!(store.read("a").await.unwrap().len(), 2);
    assert!(fetch_activity(&store).await.is_some());
    let (next, ..) = fetch(&store).await.expect("the detached start was enqueued");
    assert_eq!(next.instance, "detached");
    assert!(fetch(&store).await.is_none(), "the message was removed");
}

/// S4.5, S4.22
#[tokio::test]
async fn an_error_in_the_closure_commits_nothing() {
    let (store, _, token) = fetched().await;
    let result: Result<(), _> = run_round(&*store, &token, async |round: &mut OpenRound| {
        first_turn(round)?;
        round.ack(&token)?;
        Err(ProviderError::permanent("turn", "changed its mind"))
    })
    .await;
    assert_eq!(result, Err(ProviderError::permanent("turn", "changed its mind")));
    assert_untouched(&store, &token).await;
}

/// S4.9: a commit removes the locked messages, so a round that did not acknowledge them is refused.
#[tokio::test]
async fn a_round_that_acknowledges_nothing_is_refused() {
    let (store, _, token) = fetched().await;
    let error =
        run_round(&*store, &token, async |round: &mut OpenRound| first_turn(round)).await.unwrap_err();
    assert!(!error.is_retryable());
    assert_untouched(&store, &token).await;
}

#[tokio::test]
async fn a_round_acknowledges_only_its_own_lock() {
    let (store, _, token) = fetched().await;
    let foreign = DequeuedItem { item: start("b"), token: "7-0".to_owned() };
    let error = run_round(&*store, &token, async |round: &mut OpenRound| {
        first_turn(round)?;
        round.ack(&foreign.token)
    })
    .await
    .unwrap_err();
    assert!(!error.is_retryable());
    assert_untouched(&store, &token).await;
}

#[tokio::test]
async fn a_round_belongs_to_one_execution() {
    let (store, _, token) = fetched().await;
    let error = run_round(&*store, &token, async |round: &mut OpenRound| {
        round.ack(&token)?;
        round.append(first_events())?;
        round.append([event(1, 2, EventKind::OrchestrationCompleted { output: "{}".to_owned() })])
    })
    .await
    .unwrap_err();
    assert_eq!(error.message, "the round is for execution 1, not for execution 2");
    assert_untouched(&store, &token).await;

    let (store, _, token) = fetched().await;
    let unnamed = run_round(&*store, &token, async |round: &mut OpenRound| round.ack(&token)).await;
    assert_eq!(unnamed.unwrap_err().message, "the round names no execution");
    assert_untouched(&store, &token).await;
}

/// S4.24: a commit under a lost lock returns the provider's error, and changes nothing.
#[tokio::test]
async fn a_lost_lock_is_reported() {
    let (store, _, token) = fetched().await;
    store.abandon_orchestration_item(&token, None, true).await.unwrap();
    let error = run_round(&*store, &token, async |round: &mut OpenRound| {
        first_turn(round)?;
        round.ack(&token)
    })
    .await
    .unwrap_err();
    assert!(error.is_lock_lost());
    assert_eq!(store.read("a").await.unwrap(), []);
}
