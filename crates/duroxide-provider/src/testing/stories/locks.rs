//! Leases, tokens, attempts, and instances that may be poison.

use std::time::Duration;

use duroxide_core::Timestamp;

use crate::{
    store::{InstanceFetch, Op, PreparedRound, Refusal},
    testing::{
        Scenario, Turn,
        items::*,
        scenario::{LEASE, batch_fetch},
    },
};

const HOUR: Duration = Duration::from_secs(3_600);

/// I08
pub fn one_instance_is_claimed_once(mut s: Scenario) {
    s.send(&start("a"));
    assert!(s.claim().is_some());
    s.send(&raise("a", "more"));
    assert!(s.claim().is_none());
}

/// A11: delete the locked messages only
pub fn a_message_that_arrives_during_a_turn_stays_for_the_next(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    s.send(&raise("a", "late"));
    s.commit(&claim, Turn::first("a")).unwrap();
    assert_eq!(s.claim().unwrap().messages, [raise("a", "late")]);
}

/// 16.1, I09
pub fn an_ended_lease_gives_the_messages_to_the_next_and_fences_the_first(mut s: Scenario) {
    s.send(&start("a"));
    let first = s.claim().unwrap();
    s.pass_lease();
    let second = s.claim().unwrap();
    assert_eq!(second.attempt_count, 2);
    assert_ne!(first.lock_token, second.lock_token);
    let before = s.snapshot();
    assert_eq!(s.commit(&first, Turn::first("a")), Err(Refusal::InvalidLockToken));
    assert_eq!(s.abandon(&first, None, false), Err(Refusal::InvalidLockToken));
    assert_eq!(s.renew(&first), Err(Refusal::InvalidLockToken));
    assert_eq!(s.snapshot(), before);
    s.commit(&second, Turn::first("a")).unwrap();
}

/// D7: a busy store does not end healthy leases.
pub fn a_commit_handed_in_before_the_lease_ended_is_served(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    let handed_in = s.now();
    s.pass_lease();
    s.send(&raise("a", "in between"));
    let round = PreparedRound::new(&claim.lock_token, &Turn::first("a").round()).unwrap();
    s.apply_handed_in(&Op::CommitRound(Box::new(round)), handed_in).unwrap();
    assert_eq!(s.claim().unwrap().attempt_count, 1);
}

/// 16.1
pub fn a_commit_after_the_lease_ended_is_refused(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    s.pass_lease();
    assert_eq!(s.commit(&claim, Turn::first("a")), Err(Refusal::InstanceLockExpired));
    assert_eq!(s.renew(&claim), Err(Refusal::InstanceLockExpired));
    assert!(s.read().history("a", None).unwrap().is_empty());
}

/// D7
pub fn a_renewal_handed_in_before_the_lease_ended_takes_the_lock_back(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    let handed_in = s.now();
    s.pass_lease();
    s.send(&raise("a", "makes it ready"));
    let op = Op::RenewInstance { token: claim.lock_token.clone(), extend_for: LEASE };
    s.apply_handed_in(&op, handed_in).unwrap();
    assert!(s.claim().is_none());
    s.commit(&claim, Turn::first("a")).unwrap();
}

/// A11: only an unknown token is refused.
pub fn an_abandon_needs_only_its_token(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    s.pass_lease();
    s.abandon(&claim, Some(Duration::from_secs(5)), false).unwrap();
    assert!(s.claim().is_none());
    assert_eq!(s.abandon(&claim, None, false), Err(Refusal::InvalidLockToken));
}

/// 16.3
pub fn a_renewed_lease_holds(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    s.pass(LEASE - Duration::from_millis(1));
    s.renew(&claim).unwrap();
    s.pass(LEASE - Duration::from_millis(1));
    assert!(s.claim().is_none());
    s.commit(&claim, Turn::first("a")).unwrap();
}

/// A11
pub fn an_unknown_token_is_refused(mut s: Scenario) {
    s.send(&start("a"));
    let mut claim = s.claim().unwrap();
    for token in ["", "nonsense", "1-0", "999-00000000000000000000000000000001"] {
        claim.lock_token = token.to_owned();
        assert_eq!(s.commit(&claim, Turn::first("a")), Err(Refusal::InvalidLockToken), "{token}");
        assert_eq!(s.abandon(&claim, None, false), Err(Refusal::InvalidLockToken), "{token}");
    }
}

/// 16.2, S1.7
pub fn attempts_count_fetches_and_are_per_message(mut s: Scenario) {
    s.running("a");
    s.send(&raise("a", "old"));
    assert_eq!(s.claim().unwrap().attempt_count, 1);
    s.pass_lease();
    s.send(&raise("a", "new"));
    let claim = s.claim().unwrap();
    assert_eq!(claim.attempt_count, 2, "the highest counts");
    assert_eq!(s.attempts("a"), [2, 1]);
}

/// A11
pub fn an_abandon_changes_only_rows_under_its_token(mut s: Scenario) {
    s.running("a");
    s.send(&raise("a", "locked"));
    let claim = s.claim().unwrap();
    s.send(&raise("a", "free"));
    s.abandon(&claim, Some(Duration::from_secs(60)), false).unwrap();
    let next = s.claim().unwrap();
    assert_eq!(next.messages, [raise("a", "free")]);
    assert_eq!(next.attempt_count, 1);
}

/// A11: all visible messages, also those that become visible later than others.
pub fn a_hidden_message_joins_a_batch_that_is_ready_before_it(mut s: Scenario) {
    s.running("a");
    s.send(&raise("a", "hidden"));
    let claim = s.claim().unwrap();
    s.abandon(&claim, Some(Duration::from_secs(1)), false).unwrap();
    s.send(&raise("a", "ready"));
    s.pass(Duration::from_secs(1));
    assert_eq!(s.claim().unwrap().messages, [raise("a", "hidden"), raise("a", "ready")]);
}

/// 16.2
pub fn an_ignored_attempt_is_taken_back_and_never_below_zero(mut s: Scenario) {
    s.running("a");
    s.send(&raise("a", "e"));
    for _ in 0..3 {
        let claim = s.claim().unwrap();
        assert_eq!(claim.attempt_count, 1);
        s.abandon(&claim, None, true).unwrap();
        assert_eq!(s.attempts("a"), [0]);
    }
}

/// A16: `orchestration_ignore_attempt_preserves_hidden_start`
pub fn a_hidden_start_keeps_its_place_when_others_are_released(mut s: Scenario) {
    s.running("a");
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    s.abandon(&claim, Some(Duration::from_secs(60)), false).unwrap();
    s.send(&raise("a", "e"));
    let claim = s.claim().unwrap();
    s.abandon(&claim, None, true).unwrap();
    assert_eq!(s.attempts("a"), [1, 0]);
    assert_eq!(s.claim().unwrap().messages, [raise("a", "e")], "the start is still hidden");
}

/// D5: prefetch must not spread poison.
pub fn what_may_be_poison_is_claimed_only_into_free_slots(mut s: Scenario) {
    s.send(&start("lost"));
    s.claim().unwrap();
    s.pass_lease();
    let with_slots = |max, free_slots| InstanceFetch { free_slots, ..batch_fetch(max) };
    assert!(s.claim_all(&with_slots(3, 0)).items.is_empty());
    s.send(&start("healthy 1"));
    s.send(&start("healthy 2"));
    assert!(
        s.claim_all(&with_slots(3, 0)).items.is_empty(),
        "the claim stops in front of what may be poison"
    );
    let claimed = s.claim_all(&with_slots(3, 1)).items;
    let instances: Vec<_> = claimed.iter().map(|claim| claim.instance.as_str()).collect();
    assert_eq!(instances, ["lost", "healthy 1", "healthy 2"]);
}

/// D5
pub fn a_healthy_commit_clears_the_suspicion(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    s.abandon(&claim, None, false).unwrap();
    let ahead = InstanceFetch { free_slots: 0, ..batch_fetch(1) };
    assert!(s.claim_all(&ahead).items.is_empty());
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::first("a")).unwrap();
    s.send(&raise("a", "e"));
    assert_eq!(s.claim_all(&ahead).items.len(), 1);
}

/// L2: the store sleeps until something is due.
pub fn the_engine_wakes_for_leases_timers_and_hidden_rows(mut s: Scenario) {
    assert_eq!(s.next_wake(), None);
    s.running("a");
    assert_eq!(s.next_wake(), None);
    let fire_at = s.now_ms() + 700;
    s.send(&timer("a", 2, fire_at));
    assert_eq!(s.next_wake(), Some(Timestamp::from_millis(fire_at)));
    s.pass(Duration::from_secs(1));
    let claim = s.claim().unwrap();
    assert_eq!(s.next_wake(), Some(s.now().saturating_add(LEASE)));
    s.abandon(&claim, Some(Duration::from_secs(2)), false).unwrap();
    assert_eq!(s.next_wake(), Some(s.now().saturating_add(Duration::from_secs(2))));
    s.pass(Duration::from_secs(2));
    s.claim().unwrap();
}

/// D11: a lock from before the clock was set back lasts one lease from then on.
pub fn a_clock_set_back_leaves_no_lease_longer_than_it_is(mut s: Scenario) {
    s.pass(HOUR);
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    s.send(&activity("b", 2));
    s.work().unwrap();
    s.notice_turn_back(HOUR);
    assert_eq!(s.next_wake(), Some(s.now().saturating_add(LEASE)));
    s.pass(LEASE - Duration::from_millis(1));
    assert!(s.claim().is_none() && s.work().is_none());
    s.renew(&claim).unwrap();
    s.pass(Duration::from_millis(1));
    assert!(s.claim().is_none(), "its holder lives and renewed it");
    assert_eq!(s.work().unwrap().attempt_count, 2);
    s.pass_lease();
    assert_eq!(s.claim().unwrap().attempt_count, 2);
}

/// D11: a lease is as long as its last renewal made it.
pub fn a_clock_set_back_cuts_no_long_lease_short(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    s.apply(&Op::RenewInstance { token: claim.lock_token, extend_for: HOUR }).unwrap();
    s.notice_turn_back(Duration::from_secs(60));
    s.pass(HOUR - Duration::from_millis(1));
    assert!(s.claim().is_none());
    s.pass(Duration::from_millis(1));
    assert!(s.claim().is_some());
}

/// D11: a ready item stays ready, although its ended lease ends later by the new clock.
pub fn a_clock_set_back_gives_no_ended_lease_new_life(mut s: Scenario) {
    s.send(&start("a"));
    let first = s.claim().unwrap();
    s.send(&activity("b", 2));
    let work = s.work().unwrap();
    s.pass_lease();
    s.promote();
    s.notice_turn_back(HOUR / 6);
    s.send(&raise("a", "more"));
    assert_eq!(s.renew(&first), Err(Refusal::InstanceLockExpired));
    assert_eq!(s.renew_work(&work), Err(Refusal::WorkItemLockLost));
    assert_eq!(s.claim().unwrap().messages.len(), 2);
    assert_eq!(s.work().unwrap().attempt_count, 2);
}

/// D11: times that code asked for are times of the clock, wherever it was set.
pub fn a_clock_set_back_moves_no_timer(mut s: Scenario) {
    s.running("a");
    let fire_at = s.now_ms() + 700;
    s.send(&timer("a", 2, fire_at));
    s.notice_turn_back(Duration::from_secs(60));
    assert_eq!(s.next_wake(), Some(Timestamp::from_millis(fire_at)));
    s.pass(Duration::from_secs(60));
    assert!(s.claim().is_none());
    s.pass(Duration::from_millis(700));
    assert!(s.claim().is_some());
}

/// D11: for a holder that lives no time has passed, so its lease goes on where it was.
pub fn a_clock_set_forward_moves_the_leases_of_its_holders(mut s: Scenario) {
    s.send(&start("a"));
    let claim = s.claim().unwrap();
    s.send(&activity("b", 2));
    let work = s.work().unwrap();
    let second = Duration::from_secs(1);
    for _ in 0..10 {
        s.pass(second);
        s.notice_turn_forward(HOUR);
        s.promote();
        assert!(s.claim().is_none() && s.work().is_none());
        s.renew(&claim).unwrap();
        s.renew_work(&work).unwrap();
    }
    s.pass(second);
    s.notice_turn_forward(HOUR);
    assert_eq!(s.next_wake(), Some(s.now().saturating_add(LEASE - second)), "what has passed has passed");
    s.pass(LEASE - second);
    s.promote();
    assert_eq!((s.claim().unwrap().attempt_count, s.work().unwrap().attempt_count), (2, 2));
}

/// D11: several processes may notice the same step. Together they add no more than one lease.
pub fn a_step_forward_that_is_noticed_twice_adds_at_most_a_lease(mut s: Scenario) {
    s.send(&start("a"));
    s.claim().unwrap();
    s.send(&activity("b", 2));
    s.work().unwrap();
    s.pass(LEASE / 2);
    s.notice_turn_forward(HOUR);
    s.notice_again(HOUR);
    assert_eq!(s.next_wake(), Some(s.now().saturating_add(LEASE)));
    s.pass_lease();
    assert!(s.claim().is_some() && s.work().is_some());
}

/// D11: an ended lease stays ended, and its item can still be claimed.
pub fn a_clock_set_forward_gives_no_ended_lease_new_life(mut s: Scenario) {
    s.send(&start("a"));
    let first = s.claim().unwrap();
    s.send(&activity("b", 2));
    let work = s.work().unwrap();
    s.pass_lease();
    s.promote();
    s.notice_turn_forward(HOUR);
    assert_eq!(s.renew(&first), Err(Refusal::InstanceLockExpired));
    assert_eq!(s.renew_work(&work), Err(Refusal::WorkItemLockLost));
    assert_eq!(s.claim().unwrap().attempt_count, 2);
    assert_eq!(s.work().unwrap().attempt_count, 2);
}

/// D11: times that code asked for have come.
pub fn a_clock_set_forward_lets_timers_fire(mut s: Scenario) {
    s.running("a");
    let fire_at = s.now_ms() + 700;
    s.send(&timer("a", 2, fire_at));
    s.running("b");
    s.send(&raise("b", "e"));
    let claim = s.claim().unwrap();
    s.abandon(&claim, Some(Duration::from_secs(2)), false).unwrap();
    s.notice_turn_forward(HOUR);
    s.promote();
    assert!(s.claim().is_some() && s.claim().is_some(), "the timer, and what was hidden");
}
