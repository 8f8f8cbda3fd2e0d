//! Sessions: activities of one session go to one owner while its lease lasts.

use std::{sync::Arc, time::Duration};

use duroxide_provider::{SessionFetchConfig, TagFilter};
use futures_util::future::join_all;

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, LONG_LEASE, Work},
    message::{activity, session_activity},
};

/// An owner whose sessions do not end while a validation runs.
fn owner(id: &str) -> SessionFetchConfig {
    leased_owner(id, LONG_LEASE)
}

fn leased_owner(id: &str, lock_timeout: Duration) -> SessionFetchConfig {
    SessionFetchConfig { owner_id: id.to_owned(), lock_timeout }
}

async fn try_as(fixture: &Fixture, owner: &SessionFetchConfig) -> Option<Work> {
    fixture.try_work_with(LONG_LEASE, Some(owner), &TagFilter::DefaultOnly).await
}

/// Fetches as this owner, which must get an activity.
async fn fetch_as(fixture: &Fixture, owner: &SessionFetchConfig, why: &str) -> Work {
    try_as(fixture, owner).await.unwrap_or_else(|| panic!("{why}: {} must get an activity", owner.owner_id))
}

async fn expect_nothing(fixture: &Fixture, owner: &SessionFetchConfig, why: &str) {
    if let Some(work) = try_as(fixture, owner).await {
        panic!("{why}: {} must get nothing, but got {:?}", owner.owner_id, work.item);
    }
}

async fn ack(fixture: &Fixture, work: &Work) {
    fixture.provider.ack_work_item(&work.token, None).await.expect("a live activity lock must be ackable");
}

async fn renew(fixture: &Fixture, owner: &str, extend_for: Duration, idle_timeout: Duration) -> usize {
    let renewed = fixture.provider.renew_session_lock(&[owner], extend_for, idle_timeout).await;
    renewed.expect("renew_session_lock must work")
}

async fn cleanup(fixture: &Fixture) -> usize {
    let removed = fixture.provider.cleanup_orphaned_sessions(LONG_LEASE).await;
    removed.expect("cleanup_orphaned_sessions must work")
}

/// A store with these activities of session `s`.
async fn with_session_items<F: ProviderFactory + ?Sized>(factory: &F, ids: &[u64]) -> Fixture {
    let fixture = Fixture::new(factory).await;
    for id in ids {
        fixture.schedule(session_activity("i", *id, "s")).await;
    }
    fixture
}

/// Activities without session go to any worker (13.1).
pub async fn test_non_session_items_fetchable_by_any_worker<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    for id in [2, 3, 4] {
        fixture.schedule(activity("i", 1, id)).await;
    }
    fetch_as(&fixture, &owner("A"), "the activity has no session").await;
    fetch_as(&fixture, &owner("B"), "the activity has no session").await;
    fixture.work().await;
}

/// A fetch claims a session that has no owner (13.1).
pub async fn test_session_item_claimable_when_no_session<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let work = fetch_as(&fixture, &owner("A"), "the session has no owner").await;
    assert_eq!((work.item, work.attempts), (session_activity("i", 2, "s"), 1));
    assert_eq!(renew(&fixture, "A", LONG_LEASE, LONG_LEASE).await, 1, "the fetch must claim the session");
}

/// The owner gets further activities of its session (13.1).
pub async fn test_session_affinity_same_worker<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2, 3]).await;
    fetch_as(&fixture, &owner("A"), "the session has no owner").await;
    let second = fetch_as(&fixture, &owner("A"), "A owns the session").await;
    assert_eq!(second.item, session_activity("i", 3, "s"));
}

/// Other owners get no activities of an owned session (13.1).
pub async fn test_session_affinity_blocks_other_worker<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2, 3]).await;
    fetch_as(&fixture, &owner("A"), "the session has no owner").await;
    expect_nothing(&fixture, &owner("B"), "A owns the session").await;
}

/// Different sessions may have different owners (13.1).
pub async fn test_different_sessions_different_workers<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(session_activity("i", 2, "s1")).await;
    fixture.schedule(session_activity("i", 3, "s2")).await;
    fixture.schedule(session_activity("i", 4, "s1")).await;
    fetch_as(&fixture, &owner("A"), "s1 has no owner").await;
    let second = fetch_as(&fixture, &owner("B"), "s2 has no owner").await;
    assert_eq!(second.item, session_activity("i", 3, "s2"));
    expect_nothing(&fixture, &owner("B"), "A owns s1").await;
    fetch_as(&fixture, &owner("A"), "A owns s1").await;
}

/// A session of another owner does not hold back activities without session (13.1).
pub async fn test_mixed_session_and_non_session_items<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2, 3]).await;
    fixture.schedule(activity("i", 1, 4)).await;
    fetch_as(&fixture, &owner("A"), "the session has no owner").await;
    let plain = fetch_as(&fixture, &owner("B"), "one activity has no session").await;
    assert_eq!(plain.item, activity("i", 1, 4), "an owned session must be passed over");
}

/// After the lease of a session has ended, other owners may claim it (13.1).
pub async fn test_session_claimable_after_lock_expiry<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2, 3]).await;
    let first = fetch_as(&fixture, &leased_owner("A", fixture.lease), "the session has no owner").await;
    let second = fixture.work_with(LONG_LEASE, Some(&owner("B")), &TagFilter::DefaultOnly).await;
    first.times.assert_kept_for(fixture.lease, second.times);
    assert_eq!(second.item, session_activity("i", 3, "s"));
}

/// `session: None` returns only activities without session (A11).
pub async fn test_none_session_skips_session_items<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    fixture.expect_no_work("a fetch without session must not take session activities").await;
    fixture.schedule(activity("i", 1, 3)).await;
    assert_eq!(fixture.work().await.item, activity("i", 1, 3));
}

/// With a session config, activities with and without session are fetched in queue order (A11).
pub async fn test_some_session_returns_all_items<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    fixture.schedule(activity("i", 1, 3)).await;
    let first = fetch_as(&fixture, &owner("A"), "the session has no owner").await;
    let second = fetch_as(&fixture, &owner("A"), "one activity has no session").await;
    assert_eq!([first.item, second.item], [session_activity("i", 2, "s"), activity("i", 1, 3)]);
}

/// A live session is renewed (13.2).
pub async fn test_renew_session_lock_active<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    for (id, session) in [(2, "s1"), (3, "s2")] {
        fixture.schedule(session_activity("i", id, session)).await;
        fetch_as(&fixture, &owner("A"), "the session has no owner").await;
    }
    fixture.schedule(session_activity("i", 4, "s3")).await;
    fetch_as(&fixture, &owner("B"), "s3 has no owner").await;
    assert_eq!(renew(&fixture, "A", LONG_LEASE, LONG_LEASE).await, 2, "A owns two live sessions");
    let both = fixture.provider.renew_session_lock(&["A", "B"], LONG_LEASE, LONG_LEASE).await;
    assert_eq!(both.expect("renew_session_lock must work"), 3, "A and B own three live sessions");
}

/// An idle session is not renewed (13.2).
pub async fn test_renew_session_lock_skips_idle<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let work = fetch_as(&fixture, &owner("A"), "the session has no owner").await;
    work.times.lease_ends(fixture.lease).await;
    assert_eq!(
        renew(&fixture, "A", LONG_LEASE, fixture.lease).await,
        0,
        "the session has been idle too long"
    );
    assert_eq!(renew(&fixture, "A", LONG_LEASE, LONG_LEASE).await, 1, "by a longer measure it is not idle");
}

/// Renewing without sessions renews nothing and is not an error (A11).
pub async fn test_renew_session_lock_no_sessions<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    assert_eq!(renew(&fixture, "A", LONG_LEASE, LONG_LEASE).await, 0, "A owns no session");
    let renewed = fixture.provider.renew_session_lock(&[], LONG_LEASE, LONG_LEASE).await;
    assert_eq!(renewed.expect("no owner is no error"), 0);
}

/// A session whose lease ended is not renewed (13.2).
pub async fn test_renew_session_lock_after_expiry_returns_zero<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let work = fetch_as(&fixture, &leased_owner("A", fixture.lease), "the session has no owner").await;
    work.times.lease_ends(fixture.lease).await;
    assert_eq!(
        renew(&fixture, "A", LONG_LEASE, LONG_LEASE).await,
        0,
        "a lease that ended must not come back"
    );
}

/// Expired sessions without activities are removed (A11).
pub async fn test_cleanup_removes_expired_no_items<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let work = fetch_as(&fixture, &leased_owner("A", fixture.lease), "the session has no owner").await;
    ack(&fixture, &work).await;
    work.times.lease_ends(fixture.lease).await;
    assert_eq!(cleanup(&fixture).await, 1, "an expired session without activities must be removed");
    assert_eq!(cleanup(&fixture).await, 0, "it is gone");
}

/// Expired sessions with activities are kept (A11).
pub async fn test_cleanup_keeps_sessions_with_pending_items<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2, 3]).await;
    let work = fetch_as(&fixture, &leased_owner("A", fixture.lease), "the session has no owner").await;
    ack(&fixture, &work).await;
    work.times.lease_ends(fixture.lease).await;
    assert_eq!(cleanup(&fixture).await, 0, "a session with a queued activity must be kept");
}

/// Live sessions are kept (A11).
pub async fn test_cleanup_keeps_active_sessions<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let work = fetch_as(&fixture, &owner("A"), "the session has no owner").await;
    ack(&fixture, &work).await;
    assert_eq!(cleanup(&fixture).await, 0, "a live session must be kept");
    fixture.schedule(session_activity("i", 3, "s")).await;
    expect_nothing(&fixture, &owner("B"), "A still owns the session").await;
}

/// A removed session is created again by its next activity, and anyone may claim it (13.1).
pub async fn test_cleanup_then_new_item_recreates_session<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let work = fetch_as(&fixture, &leased_owner("A", fixture.lease), "the session has no owner").await;
    ack(&fixture, &work).await;
    work.times.lease_ends(fixture.lease).await;
    cleanup(&fixture).await;
    fixture.schedule(session_activity("i", 3, "s")).await;
    fetch_as(&fixture, &owner("B"), "the session was removed").await;
    expect_nothing(&fixture, &owner("A"), "B owns the session now").await;
}

/// Waits until the session of `work` was idle for one lease, refreshes it, and asserts that a renewal finds it active.
async fn assert_refreshed_by<R: AsyncFnOnce()>(fixture: &Fixture, work: &Work, refresh: R) {
    work.times.lease_ends(fixture.lease).await;
    let refreshed = std::time::Instant::now();
    refresh().await;
    let renewed = renew(fixture, "A", LONG_LEASE, fixture.lease).await;
    if refreshed.elapsed() < fixture.lease {
        assert_eq!(renewed, 1, "a session whose activity was just touched must not be idle");
    }
}

/// The ack of an activity counts as activity of its session (13.2).
pub async fn test_ack_updates_session_last_activity<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let work = fetch_as(&fixture, &owner("A"), "the session has no owner").await;
    assert_refreshed_by(&fixture, &work, async || ack(&fixture, &work).await).await;
}

/// The renewal of an activity counts as activity of its session (13.2).
pub async fn test_renew_work_item_updates_session_last_activity<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let work = fetch_as(&fixture, &owner("A"), "the session has no owner").await;
    let renewal = async || {
        let renewed = fixture.provider.renew_work_item_lock(&work.token, LONG_LEASE).await;
        renewed.expect("a live activity lock must be renewable");
    };
    assert_refreshed_by(&fixture, &work, renewal).await;
}

/// One worker that takes one activity after the other gets them in queue order (S1.10).
pub async fn test_session_items_processed_in_order<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2, 3, 4]).await;
    for id in [2, 3, 4] {
        let work = fetch_as(&fixture, &owner("A"), "the session has more").await;
        assert_eq!(work.item, session_activity("i", id, "s"), "activities must come in queue order");
        ack(&fixture, &work).await;
    }
}

/// A worker with a session config also gets activities without session (A11).
pub async fn test_non_session_items_returned_with_session_config<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("i", 1, 2)).await;
    let work = fetch_as(&fixture, &owner("A"), "the activity has no session").await;
    assert_eq!(work.item, activity("i", 1, 2));
    assert_eq!(renew(&fixture, "A", LONG_LEASE, LONG_LEASE).await, 0, "no session was claimed");
}

/// Callers that share an owner id share its sessions (13.1).
pub async fn test_shared_worker_id_any_caller_can_fetch_owned_session<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = with_session_items(factory, &[2, 3, 4]).await;
    let node = owner("node");
    let fetched = join_all((0..3).map(|_| try_as(&fixture, &node))).await;
    assert!(fetched.iter().all(Option::is_some), "every slot of the owning node must get an activity");
}

/// Of several owners that fetch concurrently exactly one gets the session (13.1, I08).
pub async fn test_concurrent_session_claim_only_one_wins<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Arc::new(with_session_items(factory, &[2, 3, 4, 5]).await);
    let fetches = (0..4).map(|n| {
        let fixture = Arc::clone(&fixture);
        tokio::spawn(async move { try_as(&fixture, &owner(&format!("worker-{n}"))).await.is_some() })
    });
    let winners =
        join_all(fetches).await.into_iter().filter(|won| *won.as_ref().expect("no fetch panics")).count();
    assert_eq!(winners, 1, "exactly one of four owners must get the session");
}

/// After a takeover the new owner keeps the session, and the old owner gets nothing (13.1).
pub async fn test_session_takeover_after_lock_expiry<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2, 3, 4]).await;
    let first = fetch_as(&fixture, &leased_owner("A", fixture.lease), "the session has no owner").await;
    first.times.lease_ends(fixture.lease).await;
    fetch_as(&fixture, &owner("B"), "A's lease ended").await;
    expect_nothing(&fixture, &owner("A"), "B owns the session now").await;
    fetch_as(&fixture, &owner("B"), "B owns the session").await;
}

/// An abandoned session activity is delivered to its owner again (13.1).
pub async fn test_abandoned_session_item_retryable<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let work = fetch_as(&fixture, &owner("A"), "the session has no owner").await;
    fixture.provider.abandon_work_item(&work.token, None, false).await.expect("a live lock can be abandoned");
    expect_nothing(&fixture, &owner("B"), "A still owns the session").await;
    let again = fetch_as(&fixture, &owner("A"), "A owns the session").await;
    assert_eq!(again.attempts, 2, "the attempt must be counted");
}

/// An attempt on a session activity can be taken back (13.3, 16.9).
pub async fn test_abandoned_session_item_ignore_attempt<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let work = fetch_as(&fixture, &owner("A"), "the session has no owner").await;
    fixture.provider.abandon_work_item(&work.token, None, true).await.expect("a live lock can be abandoned");
    let again = fetch_as(&fixture, &owner("A"), "A owns the session").await;
    assert_eq!(again.attempts, 1, "ignore_attempt must take the attempt back");
}

/// The former owner may claim an expired session again (13.1).
pub async fn test_original_worker_reclaims_expired_session<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2, 3, 4]).await;
    let first = fetch_as(&fixture, &leased_owner("A", fixture.lease), "the session has no owner").await;
    first.times.lease_ends(fixture.lease).await;
    fetch_as(&fixture, &owner("A"), "A may claim again").await;
    expect_nothing(&fixture, &owner("B"), "A owns the session again").await;
}

/// An activity whose lock ended is delivered to the owner of its live session again, and to no other worker (13.1, 16.1).
pub async fn test_activity_lock_expires_session_lock_valid_same_worker_refetches<
    F: ProviderFactory + ?Sized,
>(
    factory: &F,
) {
    let fixture = with_session_items(factory, &[2]).await;
    let lost = fixture.try_work_with(fixture.lease, Some(&owner("A")), &TagFilter::DefaultOnly).await;
    let lost = lost.expect("the session has no owner");
    lost.times.lease_ends(fixture.lease).await;
    expect_nothing(&fixture, &owner("B"), "A still owns the session").await;
    let again = fetch_as(&fixture, &owner("A"), "the activity's lock ended").await;
    assert_eq!(again.attempts, 2, "the lease that ended counts as an attempt");
}

/// When the leases of activity and session have ended, the activity is redelivered to a new owner (13.1, 16.1).
pub async fn test_session_lock_expires_new_owner_gets_redelivery<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let config = leased_owner("A", fixture.lease);
    let lost = fixture.try_work_with(fixture.lease, Some(&config), &TagFilter::DefaultOnly).await;
    let lost = lost.expect("the session has no owner");
    let taken = fixture.work_with(LONG_LEASE, Some(&owner("B")), &TagFilter::DefaultOnly).await;
    lost.times.assert_kept_for(fixture.lease, taken.times);
    assert_eq!((taken.item, taken.attempts), (lost.item, 2), "the same activity must come, attempt counted");
}

/// The same owner may take the redelivery (13.1, 16.1).
pub async fn test_session_lock_expires_same_worker_reacquires<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let config = leased_owner("A", fixture.lease);
    let lost = fixture.try_work_with(fixture.lease, Some(&config), &TagFilter::DefaultOnly).await;
    let lost = lost.expect("the session has no owner");
    let taken = fixture.work_with(LONG_LEASE, Some(&owner("A")), &TagFilter::DefaultOnly).await;
    lost.times.assert_kept_for(fixture.lease, taken.times);
    assert_eq!(taken.attempts, 2, "the lease that ended counts as an attempt");
    assert_eq!(renew(&fixture, "A", LONG_LEASE, LONG_LEASE).await, 1, "the session is owned again");
}

/// The end of a session's lease does not end the lock of an activity (16.1).
pub async fn test_session_lock_expires_activity_lock_valid_ack_succeeds<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = with_session_items(factory, &[2]).await;
    let work = fetch_as(&fixture, &leased_owner("A", fixture.lease), "the session has no owner").await;
    work.times.lease_ends(fixture.lease).await;
    expect_nothing(&fixture, &owner("B"), "the activity itself is still locked").await;
    ack(&fixture, &work).await;
}

/// Another worker may claim when both leases have ended, not before the later one (13.1, 16.1).
pub async fn test_both_locks_expire_different_worker_claims<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_session_items(factory, &[2]).await;
    let config = leased_owner("A", fixture.lease * 2);
    let lost = fixture.try_work_with(fixture.lease, Some(&config), &TagFilter::DefaultOnly).await;
    let lost = lost.expect("the session has no owner");
    let taken = fixture.work_with(LONG_LEASE, Some(&owner("B")), &TagFilter::DefaultOnly).await;
    lost.times.assert_kept_for(fixture.lease * 2, taken.times);
    assert_eq!(taken.attempts, 2, "the lease that ended counts as an attempt");
}

/// A renewal moves the end of a session's lease (13.2).
pub async fn test_session_lock_renewal_extends_past_original_timeout<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let (fixture, work) = loop {
        let fixture = with_session_items(factory, &[2, 3]).await;
        let work = fetch_as(&fixture, &leased_owner("A", fixture.lease), "the session has no owner").await;
        let renewed = renew(&fixture, "A", LONG_LEASE, LONG_LEASE).await;
        if renewed == 1 {
            break (fixture, work);
        }
        assert!(work.times.may_have_ended(fixture.lease), "a live session must be renewed");
    };
    work.times.lease_ends(fixture.lease).await;
    expect_nothing(&fixture, &owner("B"), "the lease of the session was renewed").await;
    fetch_as(&fixture, &owner("A"), "A owns the session").await;
}
