//! Enqueue is idempotent by key while an item with that key is queued.
//!
//! A provider that keeps the default `commit_round` may leave this out, so these validations check only providers whose
//! `commits_rounds()` is true.

use std::time::Duration;

use duroxide_core::{ErrorDetails, WorkItem};

use crate::{
    factory::ProviderFactory,
    fixture::Fixture,
    message::{
        activity, activity_completed, cancel, child_start, continuation_start, queue_message, raised, start,
        timer_fired, wake_up,
    },
    round::{continuation, turn_round},
};

/// A fixture with a running instance `i`, if the provider has idempotency keys.
async fn keyed_fixture<F: ProviderFactory + ?Sized>(factory: &F) -> Option<Fixture> {
    let fixture = Fixture::new(factory).await;
    if !fixture.provider.commits_rounds() {
        return None;
    }
    fixture.running("i").await;
    Some(fixture)
}

/// Queues the items and returns the batch that a fetch makes of them.
async fn batch_of(fixture: &Fixture, items: &[WorkItem]) -> Vec<WorkItem> {
    for item in items {
        fixture.send(item.clone()).await;
    }
    let claim = fixture.claim_instance("i").await;
    fixture.commit(&claim, turn_round(1, vec![])).await;
    claim.item.messages
}

fn activity_failed(id: u64) -> WorkItem {
    let details = ErrorDetails::orchestration_failed("broken");
    WorkItem::ActivityFailed { instance: "i".to_owned(), execution_id: 1, id, details }
}

fn child_completed(parent_execution_id: u64, parent_id: u64) -> WorkItem {
    WorkItem::SubOrchCompleted {
        parent_instance: "i".to_owned(),
        parent_execution_id,
        parent_id,
        result: "done".to_owned(),
    }
}

fn child_failed(parent_id: u64) -> WorkItem {
    WorkItem::SubOrchFailed {
        parent_instance: "i".to_owned(),
        parent_execution_id: 1,
        parent_id,
        details: ErrorDetails::orchestration_failed("broken"),
    }
}

/// An activity is queued once per (instance, execution, id) (16.14, S4.7, S4.14).
pub async fn test_activities_have_a_key<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = keyed_fixture(factory).await else { return };
    let distinct = [activity("i", 1, 2), activity("i", 1, 3), activity("i", 2, 2), activity("j", 1, 2)];
    for item in distinct.iter().chain(&distinct) {
        fixture.schedule(item.clone()).await;
    }
    for item in distinct {
        assert_eq!(fixture.work().await.item, item, "activities with different keys must all be queued");
    }
    fixture.expect_no_work("an activity that is queued must not be queued again").await;
}

/// An activity that is locked is still queued; one that was acked is not (16.14).
pub async fn test_activity_key_ends_with_its_row<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = keyed_fixture(factory).await else { return };
    fixture.schedule(activity("i", 1, 2)).await;
    let work = fixture.work().await;
    fixture.schedule(activity("i", 1, 2)).await;
    fixture.expect_no_work("the activity is queued, although it is locked").await;
    fixture.provider.ack_work_item(&work.token, None).await.expect("a live activity must be ackable");
    fixture.schedule(activity("i", 1, 2)).await;
    assert_eq!(fixture.work().await.attempts, 1, "after the ack the key is free");
}

/// Results of activities are queued once per (instance, execution, id, kind); completed and failed are different keys
/// (16.14).
pub async fn test_activity_results_have_a_key<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = keyed_fixture(factory).await else { return };
    let items = [
        activity_completed("i", 1, 2),
        activity_completed("i", 1, 2),
        activity_failed(2),
        activity_failed(2),
        activity_completed("i", 1, 3),
        activity_completed("i", 2, 2),
    ];
    let expected = [
        activity_completed("i", 1, 2),
        activity_failed(2),
        activity_completed("i", 1, 3),
        activity_completed("i", 2, 2),
    ];
    assert_eq!(batch_of(&fixture, &items).await, expected);
}

/// A timer is queued once per (instance, execution, id) (16.14).
pub async fn test_timers_have_a_key<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = keyed_fixture(factory).await else { return };
    let items = [timer_fired("i", 2, 1), timer_fired("i", 2, 1), timer_fired("i", 3, 2)];
    assert_eq!(batch_of(&fixture, &items).await, [timer_fired("i", 2, 1), timer_fired("i", 3, 2)]);
}

/// Results of children are queued once per (parent instance, parent execution, parent id, kind) (16.14).
pub async fn test_child_results_have_a_key<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = keyed_fixture(factory).await else { return };
    let items = [
        child_completed(1, 2),
        child_completed(1, 2),
        child_failed(2),
        child_failed(2),
        child_completed(1, 3),
        child_completed(2, 2),
    ];
    let expected = [child_completed(1, 2), child_failed(2), child_completed(1, 3), child_completed(2, 2)];
    assert_eq!(batch_of(&fixture, &items).await, expected);
}

/// The start of a child is queued once per (parent instance, parent execution, parent id) (16.14).
pub async fn test_child_starts_have_a_key<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = keyed_fixture(factory).await else { return };
    let items = [
        child_start("parent", 2, "i"),
        child_start("parent", 2, "i"),
        child_start("parent", 3, "i"),
        child_start("other", 2, "i"),
    ];
    let expected =
        [child_start("parent", 2, "i"), child_start("parent", 3, "i"), child_start("other", 2, "i")];
    assert_eq!(batch_of(&fixture, &items).await, expected);
}

/// A `ContinueAsNew` item is queued once per instance (16.14).
pub async fn test_continue_as_new_has_a_key<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = keyed_fixture(factory).await else { return };
    fixture.turn("i", continuation("i", 1, 2)).await;
    fixture.send(continuation_start("i")).await;
    let claim = fixture.claim_instance("i").await;
    assert_eq!(claim.item.messages, [continuation_start("i")], "the item is queued already");
}

/// The wake-up of a successor is queued once per (instance, execution) (16.14, 8.4).
pub async fn test_wake_ups_have_a_key<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = keyed_fixture(factory).await else { return };
    let items = [wake_up("i", 2), wake_up("i", 2), wake_up("i", 3)];
    assert_eq!(batch_of(&fixture, &items).await, [wake_up("i", 2), wake_up("i", 3)]);
}

/// Messages of clients have no key: equal messages are all delivered (16.14, C15).
pub async fn test_client_messages_have_no_key<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = keyed_fixture(factory).await else { return };
    let once = [start("i"), raised("i", "event"), queue_message("i", "message"), cancel("i")];
    let twice: Vec<WorkItem> = once.iter().flat_map(|item| [item.clone(), item.clone()]).collect();
    assert_eq!(batch_of(&fixture, &twice).await, twice, "client messages must all be delivered");
}

/// A key applies to hidden rows too, and to rounds and acks as well as direct enqueues (S4.14, S4.39).
pub async fn test_keys_hold_for_every_way_in<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = keyed_fixture(factory).await else { return };
    fixture.send_later(activity_completed("i", 1, 2), Duration::from_secs(3_600)).await;
    fixture.send(activity_completed("i", 1, 2)).await;
    fixture.expect_no_claim("the completion is queued already, although it is hidden").await;

    fixture.schedule(activity("i", 1, 3)).await;
    let work = fixture.work().await;
    fixture.send(activity_completed("i", 1, 3)).await;
    let acked = fixture.provider.ack_work_item(&work.token, Some(activity_completed("i", 1, 3))).await;
    acked.expect("an ack whose completion is queued already must work");
    let claim = fixture.claim_instance("i").await;
    assert_eq!(claim.item.messages, [activity_completed("i", 1, 3)], "the completion must be queued once");
    fixture.schedule(activity("i", 1, 4)).await;
    let round = duroxide_provider::Round { worker_items: vec![activity("i", 1, 4)], ..turn_round(1, vec![]) };
    fixture.commit(&claim, round).await;
    fixture.work().await;
    fixture.expect_no_work("an activity that is queued already must not be queued by a round").await;
}
