//! The provider counts attempts; the runtime decides when a message is poison.

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, Work},
    message::{activity, raised, start},
    round::turn_round,
};

/// Taking an attempt back changes only the locked rows: a hidden start stays hidden and uncounted (A11, 16.2).
pub async fn orchestration_ignore_attempt_preserves_hidden_start<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("hides").await;
    let asked = std::time::Instant::now();
    fixture.send_later(start("hides"), fixture.lease).await;
    fixture.send(raised("hides", "seen")).await;
    let claim = fixture.claim_instance("hides").await;
    fixture.abandon(&claim, None, true).await;

    let again = fixture.claim_instance("hides").await;
    if asked.elapsed() < fixture.lease {
        assert_eq!(claim.item.messages, [raised("hides", "seen")], "a hidden start must not be in the batch");
        assert_eq!(
            again.item.messages,
            [raised("hides", "seen")],
            "an abandon must not reveal a hidden start"
        );
    }
    assert_eq!(again.attempts, 1, "ignore_attempt must take the attempt back");
    fixture.commit(&again, turn_round(1, vec![])).await;

    if again.item.messages.len() == 1 {
        let hidden = fixture.claim_instance("hides").await;
        assert_eq!(
            hidden.item.messages,
            [start("hides")],
            "the hidden start must come when its time is there"
        );
        assert_eq!(hidden.attempts, 1, "a hidden start must not have been counted");
    }
}

/// A delay hides only the locked rows: messages that arrived during the lock are visible at once (A11).
pub async fn orchestration_delayed_abandon_preserves_unlocked_rows<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("delays").await;
    fixture.send(raised("delays", "locked")).await;
    let claim = fixture.claim_instance("delays").await;
    fixture.send(raised("delays", "arrived")).await;
    fixture.abandon(&claim, Some(fixture.lease), false).await;

    let arrived =
        fixture.try_claim().await.expect("a message that the lock did not hold must be visible at once");
    assert!(
        arrived.item.messages.contains(&raised("delays", "arrived")),
        "the message that arrived during the lock must not be hidden, but the batch is {:?}",
        arrived.item.messages
    );
    if arrived.item.messages.len() == 1 {
        assert_eq!(arrived.attempts, 1, "a message that was not locked has no earlier attempt");
        fixture.commit(&arrived, turn_round(1, vec![])).await;
        let late = fixture.claim_instance("delays").await;
        claim.times.assert_kept_for(fixture.lease, late.times);
        assert_eq!((late.item.messages, late.attempts), (vec![raised("delays", "locked")], 2));
    } else {
        claim.times.assert_kept_for(fixture.lease, arrived.times);
    }
}

/// The first fetch of a message is attempt 1 (S1.4, 16.2).
pub async fn orchestration_attempt_count_starts_at_one<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("first")).await;
    assert_eq!(fixture.claim().await.attempts, 1, "the first fetch of a message must be attempt 1");
}

/// Every fetch of a message counts one attempt (S1.1, S1.7, I12).
pub async fn orchestration_attempt_count_increments_on_refetch<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("counted")).await;
    for attempt in 1..=5 {
        let claim = fixture.claim().await;
        assert_eq!(claim.attempts, attempt, "every fetch must count exactly one attempt");
        fixture.abandon(&claim, None, false).await;
    }
}

/// The first fetch of an activity is attempt 1 (S1.5, 16.2).
pub async fn worker_attempt_count_starts_at_one<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("first", 1, 2)).await;
    assert_eq!(fixture.work().await.attempts, 1, "the first fetch of an activity must be attempt 1");
}

/// A lease that ends counts as an attempt (16.9, S1.2).
pub async fn worker_attempt_count_increments_on_lock_expiry<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("crashes", 1, 2)).await;
    for attempt in 1..=3 {
        let work = fixture.work_for(fixture.lease).await;
        assert_eq!(work.attempts, attempt, "a lease that ended must count as an attempt");
    }
}

/// Attempts belong to a message, not to its instance (16.2).
pub async fn attempt_count_is_per_message<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("separate").await;
    fixture.send(raised("separate", "old")).await;
    for _ in 0..2 {
        let claim = fixture.claim_instance("separate").await;
        fixture.abandon(&claim, None, false).await;
    }
    let claim = fixture.claim_instance("separate").await;
    assert_eq!(claim.attempts, 3, "the old message has been fetched three times");
    fixture.send(raised("separate", "new")).await;
    fixture.commit(&claim, turn_round(1, vec![])).await;

    let claim = fixture.claim_instance("separate").await;
    assert_eq!(claim.item.messages, [raised("separate", "new")], "only the new message is left");
    assert_eq!(claim.attempts, 1, "a new message must not inherit the attempts of another");
}

async fn give_back_uncounted(fixture: &Fixture, work: &Work) {
    let abandoned = fixture.provider.abandon_work_item(&work.token, None, true).await;
    abandoned.expect("a live activity lock can be abandoned");
}

/// `ignore_attempt` takes the attempt of an activity back (16.2, 16.9).
pub async fn abandon_work_item_ignore_attempt_decrements<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("forgiven", 1, 2)).await;
    let first = fixture.work().await;
    fixture
        .provider
        .abandon_work_item(&first.token, None, false)
        .await
        .expect("a live lock can be abandoned");
    let second = fixture.work().await;
    assert_eq!(second.attempts, 2, "a plain abandon keeps the attempt");
    give_back_uncounted(&fixture, &second).await;
    assert_eq!(fixture.work().await.attempts, 2, "ignore_attempt must take one attempt back");
}

/// `ignore_attempt` takes the attempt of a message back (16.2, 16.9).
pub async fn abandon_orchestration_item_ignore_attempt_decrements<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("forgiven")).await;
    let first = fixture.claim().await;
    fixture.abandon(&first, None, false).await;
    let second = fixture.claim().await;
    assert_eq!(second.attempts, 2, "a plain abandon keeps the attempt");
    fixture.abandon(&second, None, true).await;
    assert_eq!(fixture.claim().await.attempts, 2, "ignore_attempt must take one attempt back");
}

/// However often attempts are taken back, the count is never negative (S1.4, 16.2).
pub async fn ignore_attempt_never_goes_negative<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("floor", 1, 2)).await;
    fixture.send(start("floor")).await;
    for _ in 0..3 {
        let work = fixture.work().await;
        assert_eq!(work.attempts, 1, "an attempt that was taken back must not count");
        give_back_uncounted(&fixture, &work).await;
        let claim = fixture.claim().await;
        assert_eq!(claim.attempts, 1, "an attempt that was taken back must not count");
        fixture.abandon(&claim, None, true).await;
    }
}

/// The attempt count of a batch is the highest count of its messages (16.2).
pub async fn max_attempt_count_across_message_batch<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("batch").await;
    fixture.send(raised("batch", "old")).await;
    for _ in 0..2 {
        let claim = fixture.claim_instance("batch").await;
        fixture.abandon(&claim, None, false).await;
    }
    fixture.send(raised("batch", "new")).await;
    let claim = fixture.claim_instance("batch").await;
    assert_eq!(claim.item.messages, [raised("batch", "old"), raised("batch", "new")]);
    assert_eq!(claim.attempts, 3, "a batch must have the highest attempt count of its messages");
    let stored = factory.get_max_attempt_count("batch").await;
    assert_eq!(stored, 3, "the count must be stored with the lock");
}
