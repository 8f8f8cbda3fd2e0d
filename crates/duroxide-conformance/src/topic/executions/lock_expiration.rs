//! Locks are leases: they end by time, are prolonged by renewal and given back by abandon.

use futures_util::future::join_all;

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, LONG_LEASE, assert_permanent},
    message::{activity, activity_completed, raised, start},
    round::{first_round, turn_round},
};

/// An instance lock ends after its lease, not before, and its messages are delivered again with the attempt counted
/// (16.1, 16.2, S4.10, S4.11).
pub async fn test_lock_expires_after_timeout<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("leased")).await;
    let first = fixture.claim_for(fixture.lease).await;
    let second = fixture.claim_instance("leased").await;
    first.times.assert_kept_for(fixture.lease, second.times);
    assert_eq!(second.item.messages, first.item.messages, "the same messages must be delivered again");
    assert_eq!(second.attempts, 2, "a lease that ended counts as an attempt");
    assert_ne!(second.token, first.token, "the new lock must have a fresh token");
}

/// An abandoned instance is available at once (16.1).
pub async fn test_abandon_releases_lock_immediately<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("given-back")).await;
    let claim = fixture.claim_instance("given-back").await;
    fixture.abandon(&claim, None, false).await;

    let again = fixture.try_claim().await.expect("an abandoned instance must be available at once");
    assert_eq!(again.item.messages, claim.item.messages, "an abandon must keep the messages");
    let late = fixture.provider.abandon_orchestration_item(&claim.token, None, false).await;
    assert_permanent(late, "a second abandon under the same token must fail");
}

/// After an ack the next lock has a full lease, not the rest of the one before (16.1).
pub async fn test_lock_renewal_on_ack<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("relocked")).await;
    let first = loop {
        let claim = fixture.claim_for(fixture.lease).await;
        match fixture.ack(&claim.token, first_round("relocked")).await {
            Ok(()) => break claim,
            Err(error) if claim.times.may_have_ended(fixture.lease) => drop(error),
            Err(error) => panic!("an ack under a live lock must be accepted, but: {error}"),
        }
    };
    fixture.send(raised("relocked", "more")).await;

    let second = fixture.claim_for(LONG_LEASE).await;
    first.times.lease_ends(fixture.lease).await;
    fixture.expect_no_claim("the second lock must outlive the lease of the first").await;
    fixture.commit(&second, turn_round(1, vec![])).await;
}

/// While a lease lasts every fetch returns nothing; when it has ended, exactly one of them locks the instance (16.1,
/// I08).
pub async fn test_concurrent_lock_attempts_respect_expiration<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("contended")).await;
    let first = fixture.claim_for(fixture.lease).await;

    let waiting = (0..3).map(|_| {
        Box::pin(async {
            fixture.provider.fetch_orchestration_item(LONG_LEASE, fixture.lease * 3, None).await
        })
    });
    let taken: Vec<_> = join_all(waiting)
        .await
        .into_iter()
        .filter_map(|fetch| fetch.expect("a fetch must not fail"))
        .collect();
    match taken.as_slice() {
        [(_, _, attempts)] => assert_eq!(*attempts, 2, "the takeover counts as an attempt"),
        // The provider's fetch does not wait, so all fetches came too early.
        [] => assert_eq!(fixture.claim().await.attempts, 2, "the takeover counts as an attempt"),
        more => panic!("one of three fetches must win, but {} did", more.len()),
    }
    let late = fixture.ack(&first.token, first_round("contended")).await;
    assert_permanent(late, "the holder whose lease ended must be refused");
}

/// A live activity lock can be renewed (16.3).
pub async fn test_worker_lock_renewal_success<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("renewed", 1, 2)).await;
    let work = fixture.renewed_work().await;
    fixture.expect_no_work("a renewed activity stays locked").await;
    let acked = fixture.provider.ack_work_item(&work.token, Some(activity_completed("renewed", 1, 2))).await;
    acked.expect("the token must stay the same after a renewal");
}

/// A renewal with an unknown token is a permanent error (16.4).
pub async fn test_worker_lock_renewal_invalid_token<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let renewed = fixture.provider.renew_work_item_lock("bogus", LONG_LEASE).await;
    assert_permanent(renewed, "a renewal under an unknown token must fail");
}

/// A renewal after the end of the lease is a permanent error (16.4).
pub async fn test_worker_lock_renewal_after_expiration<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("expired", 1, 2)).await;
    let work = fixture.work_for(fixture.lease).await;
    work.times.lease_ends(fixture.lease).await;
    let renewed = fixture.provider.renew_work_item_lock(&work.token, LONG_LEASE).await;
    assert_permanent(renewed, "a renewal after the lease ended must fail");
    let again = fixture.try_work().await.expect("a failed renewal must leave the activity available");
    assert_eq!(again.attempts, 2, "the lease that ended counts as an attempt");
}

/// A renewal moves the end of the lease (16.3).
pub async fn test_worker_lock_renewal_extends_timeout<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("extended", 1, 2)).await;
    let work = fixture.renewed_work().await;

    work.times.lease_ends(fixture.lease).await;
    fixture.expect_no_work("a renewed activity must stay locked beyond its first lease").await;
    let acked = fixture.provider.ack_work_item(&work.token, Some(activity_completed("extended", 1, 2))).await;
    acked.expect("a renewed lock must still be valid after its first lease");
}

/// A renewal after the ack is a permanent error (16.4).
pub async fn test_worker_lock_renewal_after_ack<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("finished", 1, 2)).await;
    let work = fixture.work().await;
    let acked = fixture.provider.ack_work_item(&work.token, Some(activity_completed("finished", 1, 2))).await;
    acked.expect("a live activity must be ackable");
    let renewed = fixture.provider.renew_work_item_lock(&work.token, LONG_LEASE).await;
    assert_permanent(renewed, "a renewal after the ack must fail");
}

/// An abandoned activity is available at once, and the old token is refused (16.1, I09).
pub async fn test_abandon_work_item_releases_lock<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("given-back", 1, 2)).await;
    let work = fixture.work().await;
    fixture.provider.abandon_work_item(&work.token, None, false).await.expect("a live lock can be abandoned");

    let again = fixture.try_work().await.expect("an abandoned activity must be available at once");
    assert_eq!((again.item, again.attempts), (work.item, 2), "the same activity must come, attempt counted");
    let late = fixture.provider.ack_work_item(&work.token, None).await;
    assert_permanent(late, "an ack under an abandoned lock must fail");
}

/// An activity abandoned with a delay stays hidden for that long (S0.28).
pub async fn test_abandon_work_item_with_delay<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("delayed", 1, 2)).await;
    let work = fixture.work().await;
    let delay = fixture.lease;
    fixture
        .provider
        .abandon_work_item(&work.token, Some(delay), false)
        .await
        .expect("a live lock can be abandoned");

    let again = fixture.work().await;
    work.times.assert_kept_for(delay, again.times);
    assert_eq!((again.item, again.attempts), (work.item, 2), "the same activity must come, attempt counted");
}

/// An ack after the end of the lease is a permanent error: the activity stays, and no completion is queued (16.1, I09).
pub async fn test_worker_ack_fails_after_lock_expiry<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("late").await;
    fixture.schedule(activity("late", 1, 2)).await;
    let work = fixture.work_for(fixture.lease).await;
    work.times.lease_ends(fixture.lease).await;

    let acked = fixture.provider.ack_work_item(&work.token, Some(activity_completed("late", 1, 2))).await;
    assert_permanent(acked, "an ack after the lease ended must fail");
    fixture.expect_no_claim("a refused ack must not queue its completion").await;
    let again = fixture.try_work().await.expect("a refused ack must keep the activity");
    assert_eq!(again.attempts, 2, "the lease that ended counts as an attempt");
}

/// An instance lock can be renewed before its lease ends, and not after (16.3, 16.4).
pub async fn test_orchestration_lock_renewal_after_expiration<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("renewed")).await;
    let claim = fixture.renewed_claim().await;
    claim.times.lease_ends(fixture.lease).await;
    fixture.expect_no_claim("a renewed instance must stay locked beyond its first lease").await;
    fixture.abandon(&claim, None, false).await;

    let claim = fixture.claim_for(fixture.lease).await;
    claim.times.lease_ends(fixture.lease).await;
    let renewed = fixture.provider.renew_orchestration_item_lock(&claim.token, LONG_LEASE).await;
    assert_permanent(renewed, "a renewal after the lease ended must fail");
    fixture.claim_instance("renewed").await;
}
