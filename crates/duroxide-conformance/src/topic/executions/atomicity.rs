//! A round is committed whole, or not at all.

use duroxide_provider::{Provider, Round};

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, assert_permanent, assert_refused},
    message::{activity, activity_completed, raised, start},
    round::{
        activity_of, activity_scheduled, completion, first_round, kv_set, started, status_updated, turn_round,
    },
};

/// A round that fails leaves nothing behind: no event, no work, no message, no state (2.16, S4.1, S4.22,
/// I10).
pub async fn test_atomicity_failure_rollback<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("rolled-back").await;
    fixture.send(raised("rolled-back", "wake")).await;
    let claim = fixture.claim_instance("rolled-back").await;

    let duplicate = Round {
        history_delta: vec![
            activity_scheduled("rolled-back", 1, 2),
            status_updated("rolled-back", 1, 3, Some("half way")),
            kv_set("rolled-back", 1, 4, "key", "value"),
            started("rolled-back", 1),
        ],
        worker_items: vec![activity("rolled-back", 1, 2)],
        orchestrator_items: vec![start("other")],
        ..completion("rolled-back", 1, 5, "never")
    };
    assert_permanent(
        fixture.ack(&claim.token, duplicate).await,
        "a round with a duplicate event id must fail",
    );

    assert_unchanged(&fixture.provider).await;
    fixture.expect_no_work("the failed round's activity must not be queued").await;
    fixture.expect_no_claim("the failed round's message must not be queued, and its lock must be kept").await;
    fixture.commit(&claim, completion("rolled-back", 1, 2, "done")).await;
}

async fn assert_unchanged(provider: &std::sync::Arc<dyn Provider>) {
    let history = provider.read("rolled-back").await.expect("read must work");
    assert_eq!(history.len(), 1, "a failed round must append no event, but history is {history:?}");
    let status = provider.get_custom_status("rolled-back", 0).await.expect("get_custom_status must work");
    assert_eq!(status, None, "a failed round must not set the custom status");
    let value = provider.get_kv_value("rolled-back", "key").await.expect("get_kv_value must work");
    assert_eq!(value, None, "a failed round must not set keys");
}

/// Everything in a round becomes visible by one ack: events, activities, messages, removal of the batch and release of
/// the lock (2.16, S4.1, S4.16, S4.17, I10).
pub async fn test_multi_operation_atomic_ack<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("whole")).await;
    let claim = fixture.claim_instance("whole").await;
    fixture.expect_no_work("before the ack there is no activity").await;

    let mut round = first_round("whole");
    round.history_delta.extend([activity_scheduled("whole", 1, 2), activity_scheduled("whole", 1, 3)]);
    round.worker_items = vec![activity("whole", 1, 2), activity("whole", 1, 3)];
    round.orchestrator_items = vec![start("started-by-whole")];
    fixture.commit(&claim, round).await;

    let history = fixture.provider.read("whole").await.expect("read must work");
    let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
    assert_eq!(ids, [1, 2, 3], "all events of the round must be stored, in order and as given");
    let queued = [fixture.work().await.item, fixture.work().await.item];
    assert_eq!(queued, [activity("whole", 1, 2), activity("whole", 1, 3)], "all activities must be queued");
    let other = fixture.try_claim().await.expect("the round's message must be visible with the ack");
    assert_eq!(other.item.messages, [start("started-by-whole")], "the round's message must be queued");
    fixture.expect_no_claim("the batch must be removed with the round").await;
}

/// A failed ack keeps the lock, so that the holder may try again; a successful one releases it (S4.9, 16.1).
pub async fn test_lock_released_only_on_successful_ack<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("kept").await;
    fixture.send(raised("kept", "first")).await;
    let claim = fixture.claim_instance("kept").await;
    fixture.send(raised("kept", "second")).await;

    let failed = fixture.ack(&claim.token, turn_round(1, vec![started("kept", 1)])).await;
    assert_permanent(failed, "a duplicate event id must fail the round");
    fixture.expect_no_claim("a failed ack must keep the instance locked").await;

    fixture.commit(&claim, turn_round(1, vec![])).await;
    let next = fixture.claim_instance("kept").await;
    assert_eq!(next.item.messages, [raised("kept", "second")], "a successful ack must release the instance");
}

/// Of several acks under one token exactly one is committed; the others change nothing (S4.24, I09, I11).
pub async fn test_concurrent_ack_prevention<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("once")).await;
    let claim = fixture.claim_instance("once").await;
    let mut round = first_round("once");
    round.history_delta.push(activity_scheduled("once", 1, 2));
    round.worker_items = vec![activity("once", 1, 2)];

    let results =
        futures_util::future::join_all((0..5).map(|_| fixture.ack(&claim.token, round.clone()))).await;
    let committed = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(committed, 1, "exactly one of five acks under one token must be committed: {results:?}");
    for refused in results.into_iter().filter(Result::is_err) {
        assert_refused(refused, "Invalid lock token", "an ack under a token that was used up");
    }

    let history = fixture.provider.read("once").await.expect("read must work");
    assert_eq!(history.len(), 2, "the round must be stored once");
    let work = fixture.work().await;
    fixture.expect_no_work("the round's activity must be queued once").await;
    fixture
        .provider
        .ack_work_item(&work.token, Some(activity_completed("once", 1, 2)))
        .await
        .expect("the activity of the committed round must be ackable");
}

/// Cancelled activities leave the worker queue in the same commit that records it (S4.1, 5.3, I10).
pub async fn test_cancelled_activities_are_part_of_the_round<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let mut round = first_round("cancels");
    round.history_delta.push(activity_scheduled("cancels", 1, 2));
    round.worker_items = vec![activity("cancels", 1, 2)];
    fixture.running_with("cancels", round).await;
    fixture.send(raised("cancels", "wake")).await;
    let claim = fixture.claim_instance("cancels").await;

    let failing = Round {
        history_delta: vec![started("cancels", 1)],
        cancelled_activities: vec![activity_of("cancels", 2)],
        ..turn_round(1, vec![])
    };
    assert_permanent(fixture.ack(&claim.token, failing).await, "a duplicate event id must fail the round");
    let work = fixture.work().await;
    assert_eq!(work.item, activity("cancels", 1, 2), "a failed round must not delete activities");
}
