//! An activity is cancelled by deleting it from the worker queue; its worker learns of that by losing its lock.

use duroxide_provider::Round;

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, LONG_LEASE, Work, assert_permanent},
    message::{activity, activity_completed, start},
    round::{activity_of, activity_scheduled, completion, continuation, failure, first_round, turn_round},
};

/// An instance that waits for activities 2 to `last`.
async fn waiting_for_activities(fixture: &Fixture, instance: &str, last: u64) {
    let mut round = first_round(instance);
    for id in 2..=last {
        round.history_delta.push(activity_scheduled(instance, 1, id));
        round.worker_items.push(activity(instance, 1, id));
    }
    fixture.running_with(instance, round).await;
}

/// A turn that cancels these activities.
fn cancelling(instance: &str, ids: &[u64]) -> Round {
    Round {
        cancelled_activities: ids.iter().map(|id| activity_of(instance, *id)).collect(),
        ..turn_round(1, vec![])
    }
}

async fn renewal_works(fixture: &Fixture, work: &Work, why: &str) {
    let renewed = fixture.provider.renew_work_item_lock(&work.token, LONG_LEASE).await;
    assert!(renewed.is_ok(), "{why}: the renewal must work, but failed with {renewed:?}");
}

async fn renewal_fails(fixture: &Fixture, work: &Work, why: &str) {
    assert_permanent(fixture.provider.renew_work_item_lock(&work.token, LONG_LEASE).await, why);
}

/// The activity of a running instance is fetched (7.1).
pub async fn test_fetch_returns_running_state_for_active_orchestration<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "active", 2).await;
    let work = fixture.work().await;
    assert_eq!(
        (work.item, work.attempts),
        (activity("active", 1, 2), 1),
        "the scheduled activity must be fetched"
    );
}

/// A fetch does not look at the status of the instance: only `cancelled_activities` removes rows (A11).
pub async fn test_fetch_returns_terminal_state_when_orchestration_completed<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "ended", 2).await;
    fixture.turn("ended", completion("ended", 1, 3, "done")).await;
    let work = fixture.work().await;
    assert_eq!(work.item, activity("ended", 1, 2), "an activity that no round cancelled must be fetched");
}

/// A fetch returns the activity of an instance that failed (A11).
pub async fn test_fetch_returns_terminal_state_when_orchestration_failed<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "failed", 2).await;
    fixture.turn("failed", failure("failed", 1, 3, "broken")).await;
    let work = fixture.work().await;
    assert_eq!(work.item, activity("failed", 1, 2), "an activity that no round cancelled must be fetched");
}

/// A fetch returns the activity of an execution that continued as new (A11).
pub async fn test_fetch_returns_terminal_state_when_orchestration_continued_as_new<
    F: ProviderFactory + ?Sized,
>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "continued", 2).await;
    fixture.turn("continued", continuation("continued", 1, 3)).await;
    let work = fixture.work().await;
    assert_eq!(work.item, activity("continued", 1, 2), "an activity that no round cancelled must be fetched");
}

/// Deleting an instance deletes its activities; an activity of an unknown instance is fetched all the same (19.1,
/// A11).
pub async fn test_fetch_returns_missing_state_when_instance_deleted<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "deleted", 2).await;
    fixture.admin().delete_instance("deleted", true).await.expect("a forced delete must work");
    fixture.expect_no_work("the activities of a deleted instance must be gone").await;

    fixture.schedule(activity("never-existed", 1, 2)).await;
    let work = fixture.work().await;
    assert_eq!(work.item, activity("never-existed", 1, 2), "fetch_work_item must not ask for the instance");
    fixture
        .provider
        .ack_work_item(&work.token, None)
        .await
        .expect("ack_work_item must not ask for the instance");
}

/// The lock of an activity can be renewed while its instance runs (16.3).
pub async fn test_renew_returns_running_when_orchestration_active<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "active", 2).await;
    let work = fixture.work().await;
    renewal_works(&fixture, &work, "the instance runs").await;
}

/// The end of an instance does not end the locks of its activities: only `cancelled_activities` does (A11).
pub async fn test_renew_returns_terminal_when_orchestration_completed<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "ended", 3).await;
    let (kept, cancelled) = (fixture.work().await, fixture.work().await);
    let end =
        Round { cancelled_activities: vec![activity_of("ended", 3)], ..completion("ended", 1, 4, "done") };
    fixture.turn("ended", end).await;
    renewal_works(&fixture, &kept, "no round cancelled the activity").await;
    renewal_fails(&fixture, &cancelled, "the terminal round cancelled the activity").await;
}

/// Deleting an instance ends the locks of its activities (19.1).
pub async fn test_renew_returns_missing_when_instance_deleted<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "deleted", 2).await;
    let work = fixture.work().await;
    fixture.admin().delete_instance("deleted", true).await.expect("a forced delete must work");
    renewal_fails(&fixture, &work, "a renewal must fail when the instance was deleted").await;
}

/// An ack without completion removes the activity and queues nothing (16.4).
pub async fn test_ack_work_item_none_deletes_without_enqueue<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "dropped", 2).await;
    let work = fixture.work().await;
    fixture.provider.ack_work_item(&work.token, None).await.expect("an ack without completion must work");
    fixture.expect_no_work("the activity must be gone").await;
    fixture.expect_no_claim("no completion must be queued").await;
}

/// A round deletes the activities that it cancels, whether they are queued or running (5.3, 6.2).
pub async fn test_cancelled_activities_deleted_from_worker_queue<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "cancels", 3).await;
    let running = fixture.work().await;
    fixture.turn("cancels", cancelling("cancels", &[2, 3])).await;
    fixture.expect_no_work("a cancelled activity that waits must be gone").await;
    renewal_fails(&fixture, &running, "a renewal must fail when the activity was cancelled").await;
}

/// The ack of a cancelled activity is a permanent error and queues no completion (S3.T25, I09).
pub async fn test_ack_work_item_fails_when_entry_deleted<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "cancelled", 2).await;
    let work = fixture.work().await;
    fixture.turn("cancelled", cancelling("cancelled", &[2])).await;

    let acked =
        fixture.provider.ack_work_item(&work.token, Some(activity_completed("cancelled", 1, 2))).await;
    assert_permanent(acked, "the ack of a cancelled activity must fail");
    fixture.expect_no_claim("a refused ack must not queue its completion").await;
}

/// The renewal of a cancelled activity is a permanent error; this is how another process learns of it (7.3).
pub async fn test_renew_fails_when_entry_deleted<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "cancelled", 2).await;
    let work = fixture.work().await;
    renewal_works(&fixture, &work, "the activity is not cancelled yet").await;
    fixture.turn("cancelled", cancelling("cancelled", &[2])).await;
    renewal_fails(&fixture, &work, "a renewal must fail when the activity was cancelled").await;
}

/// Cancelling an unknown activity is not an error (A11).
pub async fn test_cancelling_nonexistent_activities_is_idempotent<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "repeats", 2).await;
    fixture.turn("repeats", cancelling("repeats", &[2, 99])).await;
    fixture.turn("repeats", cancelling("repeats", &[2, 99])).await;
    fixture.expect_no_work("the activity is cancelled").await;
}

/// A round can cancel many activities at once, and deletes no others (B23).
pub async fn test_batch_cancellation_deletes_multiple_activities<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "batch", 1_501).await;
    fixture.schedule(activity("neighbour", 1, 2)).await;
    let all_but_one: Vec<u64> = (2..=1_501).filter(|id| *id != 700).collect();
    fixture.turn("batch", cancelling("batch", &all_but_one)).await;

    assert_eq!(fixture.work().await.item, activity("batch", 1, 700), "the activity not named must stay");
    assert_eq!(
        fixture.work().await.item,
        activity("neighbour", 1, 2),
        "another instance's activity must stay"
    );
    fixture.expect_no_work("all named activities must be gone").await;
}

/// An activity that a round both queues and cancels is never delivered (5.3, A11: deletes come after the inserts).
pub async fn test_same_activity_in_worker_items_and_cancelled_is_noop<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("noop")).await;
    let claim = fixture.claim_instance("noop").await;
    let mut round = first_round("noop");
    round.history_delta.push(activity_scheduled("noop", 1, 2));
    round.worker_items = vec![activity("noop", 1, 2)];
    round.cancelled_activities = vec![activity_of("noop", 2)];
    fixture.commit(&claim, round).await;
    fixture.expect_no_work("an activity that its own round cancels must not be handed out").await;
}

/// Calls of a worker for a deleted instance are refused and do not recreate it (19.1).
pub async fn test_orphan_activity_after_instance_force_deletion<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    waiting_for_activities(&fixture, "orphaned", 2).await;
    let work = fixture.work().await;
    fixture.admin().delete_instance("orphaned", true).await.expect("a forced delete must work");

    let acked = fixture.provider.ack_work_item(&work.token, Some(activity_completed("orphaned", 1, 2))).await;
    assert_permanent(acked, "the ack of a deleted instance's activity must fail");
    let history = fixture.provider.read("orphaned").await.expect("read must work");
    assert!(history.is_empty(), "a deleted instance must stay deleted");
    fixture.send(start("orphaned")).await;
    let claim = fixture.claim_instance("orphaned").await;
    assert_eq!(claim.item.messages, [start("orphaned")], "nothing of the old instance must come back");
}
