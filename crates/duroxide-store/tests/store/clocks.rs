//! Clocks that are set while the store runs (D11).

use std::{pin::pin, time::Duration};

use duroxide_provider::{Provider, store::FailureClass};
use duroxide_store::StoreOptions;

use crate::support::*;

const DAY: Duration = Duration::from_secs(86_400);
const MILLI: Duration = Duration::from_millis(1);

/// Lets time pass in steps as long as the store's thread sleeps at most.
fn pass(f: &mut Fixture, time: Duration) {
    let end = f.clock.elapsed() + time;
    while f.clock.elapsed() < end {
        f.clock.advance(Duration::from_secs(1).min(end - f.clock.elapsed()));
        f.store.run();
    }
}

/// A dead holder is replaced one lease later, whatever the clock shows, without a call.
#[test]
fn a_clock_set_back_by_a_day_freezes_no_lease() {
    let mut f = fixture();
    claim_new(&mut f, "a");
    f.clock.set_back(DAY);
    f.store.run();
    pass(&mut f, LOCK - MILLI);
    let provider = f.provider;
    let mut fetch = pin!(fetch_instances(&provider, 1));
    hand_in(&mut fetch);
    f.store.run();
    assert!(poll(&mut fetch).is_pending(), "the lease has not ended");
    f.clock.advance(MILLI);
    f.store.run();
    assert_eq!(answer(&mut fetch)[0].attempt_count, 2);
}

/// A jump that is shorter than the store's sleep shows no earlier time than the last one seen.
#[test]
fn a_clock_set_back_during_a_sleep_is_noticed() {
    let mut f = fixture();
    claim_new(&mut f, "a");
    f.clock.advance(Duration::from_secs(20));
    f.clock.set_back(Duration::from_secs(15));
    f.store.run();
    assert_eq!(f.plan.count(Point::ClampLeases), 1);
    f.store.run();
    assert_eq!(f.plan.count(Point::ClampLeases), 1, "once for each jump");
}

#[test]
fn a_holder_keeps_its_lease_across_a_jump_back() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    pass(&mut f, LOCK / 2);
    f.clock.set_back(DAY);
    complete(&mut f.store, f.provider.renew_orchestration_item_lock(&claim.lock_token, LOCK)).unwrap();
    pass(&mut f, LOCK - MILLI);
    complete(&mut f.store, f.provider.commit_round(&claim.lock_token, first_round("a"))).unwrap();
}

/// The lease is checked at the time the operation was submitted; that time may be in the future now, also after the
/// leases were shortened by an earlier batch.
#[test]
fn operations_submitted_before_a_jump_back_are_served() {
    let mut f = fixture_with(StoreOptions { batch_ops_max: 1, ..StoreOptions::default() });
    let claim = claim_new(&mut f, "a");
    let (provider, mut store) = (f.provider, f.store);
    let mut ahead = pin!(provider.renew_orchestration_item_lock(&claim.lock_token, LOCK));
    let mut commit = pin!(provider.commit_round(&claim.lock_token, first_round("a")));
    hand_in(&mut ahead);
    hand_in(&mut commit);
    f.clock.set_back(DAY);
    store.run();
    answer(&mut ahead).unwrap();
    answer(&mut commit).unwrap();
}

/// 16.1: a suspended laptop, or a clock that is corrected. The holder lives, and its lease moves with the step, however
/// often that happens; no other worker gets the activity, and no attempt is counted.
#[test]
fn ten_steps_forward_take_nothing_from_a_running_activity() {
    let mut f = fixture();
    let turn = claim_new(&mut f, "a");
    complete(&mut f.store, f.provider.commit_round(&turn.lock_token, first_round("a"))).unwrap();
    let work = complete(&mut f.store, fetch_activities(&f.provider, 1)).pop().unwrap();
    for _ in 0..10 {
        pass(&mut f, LOCK - Duration::from_secs(1));
        f.clock.set_forward(DAY);
        let taken = complete(&mut f.store, look_for_activities(&f.provider));
        assert_eq!(taken.len(), 0);
        complete(&mut f.store, f.provider.renew_work_item_lock(&work.lock_token, LOCK)).unwrap();
    }
    let done = completed("a", 2);
    complete(&mut f.store, f.provider.ack_work_item(&work.lock_token, Some(done))).unwrap();
}

/// 16.1: a dead holder is replaced one lease later, in elapsed time.
#[test]
fn a_clock_set_forward_prolongs_no_lease_of_the_dead() {
    let mut f = fixture();
    claim_new(&mut f, "a");
    pass(&mut f, LOCK / 2);
    f.clock.set_forward(DAY);
    f.store.run();
    pass(&mut f, LOCK / 2 - MILLI);
    assert_eq!(complete(&mut f.store, look_for_instances(&f.provider)).len(), 0);
    f.clock.advance(MILLI);
    assert_eq!(complete(&mut f.store, look_for_instances(&f.provider))[0].attempt_count, 2);
}

/// 16.1: also if the transaction that would have moved the leases fails, and the next one comes at once.
#[test]
fn no_lease_ends_because_the_first_transaction_after_a_step_failed() {
    for (point, class) in [
        (Point::Begin, FailureClass::Retryable),
        (Point::Commit, FailureClass::Retryable),
        (Point::Commit, FailureClass::Permanent),
        (Point::Commit, FailureClass::OutcomeUnknown),
    ] {
        let mut f = fixture();
        let claim = claim_new(&mut f, "a");
        f.clock.set_forward(DAY);
        f.plan.fail_next(point, class);
        let _ = complete(&mut f.store, f.provider.enqueue_for_orchestrator(start("b"), None));
        f.clock.advance(Duration::from_millis(20));
        let claims = complete(&mut f.store, look_for_instances(&f.provider));
        assert!(claims.iter().all(|claim| claim.instance == "b"), "{point:?} {class:?}");
        complete(&mut f.store, f.provider.commit_round(&claim.lock_token, first_round("a"))).unwrap();
    }
}

/// 16.1: one operation of the first batch breaks, so that each runs in a transaction of its own.
#[test]
fn leases_move_before_operations_that_run_one_by_one() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    f.clock.set_forward(DAY);
    f.plan.break_ops_with("broken", FailureClass::Permanent);
    let (provider, mut store) = (f.provider, f.store);
    let mut broken = pin!(provider.enqueue_for_orchestrator(start("broken"), None));
    let mut commit = pin!(provider.commit_round(&claim.lock_token, first_round("a")));
    hand_in(&mut broken);
    hand_in(&mut commit);
    store.run();
    answer(&mut broken).unwrap_err();
    answer(&mut commit).unwrap();
}

/// Leases given while the clock was ahead do not outlive its correction.
#[test]
fn a_clock_that_was_ahead_for_a_while_leaves_no_long_lease() {
    let mut f = fixture();
    f.clock.set_forward(DAY);
    claim_new(&mut f, "a");
    f.clock.set_back(DAY);
    pass(&mut f, LOCK + Duration::from_secs(1));
    assert_eq!(complete(&mut f.store, fetch_instances(&f.provider, 1))[0].attempt_count, 2);
}

/// I03: a timer fires by the clock, and never early.
#[test]
fn a_jump_back_moves_no_delayed_message() {
    let mut f = fixture();
    complete(&mut f.store, f.provider.enqueue_for_orchestrator(start("a"), Some(LOCK))).unwrap();
    f.clock.set_back(LOCK);
    pass(&mut f, LOCK * 2 - MILLI);
    let (provider, mut store) = (f.provider, f.store);
    let mut fetch = pin!(fetch_instances(&provider, 1));
    hand_in(&mut fetch);
    store.run();
    assert!(poll(&mut fetch).is_pending());
    f.clock.advance(MILLI);
    store.run();
    assert_eq!(answer(&mut fetch).len(), 1);
}

#[test]
fn leases_that_cannot_be_shortened_do_not_block_other_work() {
    let mut f = fixture();
    claim_new(&mut f, "a");
    f.plan.fail_next(Point::ClampLeases, FailureClass::Retryable);
    f.clock.set_back(DAY);
    complete(&mut f.store, f.provider.enqueue_for_orchestrator(start("b"), None)).unwrap();
    assert_eq!(f.plan.count(Point::ClampLeases), 1);
    assert_eq!(complete(&mut f.store, fetch_instances(&f.provider, 1))[0].instance, "b");
    pass(&mut f, Duration::from_secs(1));
    assert_eq!(f.plan.count(Point::ClampLeases), 2);
}
