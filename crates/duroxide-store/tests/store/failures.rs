//! Which callers a failure affects, and which it must not.

mod double_failures;
mod lost_races;

use std::{pin::pin, task::Poll, time::Duration};

use duroxide_core::{Clock, WorkItem};
use duroxide_provider::{OrchestrationFetch, Provider, ProviderAdmin, store::FailureClass};
use duroxide_store::Idle;

use crate::support::*;

/// D7, S4.22: the batch is rolled back and run one by one; the broken operation fails alone.
#[test]
fn a_broken_operation_fails_alone() {
    for class in [FailureClass::Retryable, FailureClass::Permanent] {
        let Fixture { provider, mut store, plan, .. } = fixture();
        plan.break_ops_with("bad", class);
        let mut before = pin!(provider.enqueue_for_orchestrator(start("before"), None));
        let mut bad = pin!(provider.enqueue_for_orchestrator(start("bad"), None));
        let mut after = pin!(provider.enqueue_for_orchestrator(start("after"), None));
        hand_in(&mut before);
        hand_in(&mut bad);
        hand_in(&mut after);
        store.run();
        answer(&mut before).unwrap();
        let error = answer(&mut bad).unwrap_err();
        answer(&mut after).unwrap();
        assert_eq!(error.is_retryable(), class == FailureClass::Retryable, "{error}");
        assert_eq!(plan.batches(), [1, 1]);

        let claims = complete(&mut store, fetch_instances(&provider, 8));
        let instances: Vec<_> = claims.iter().map(|claim| claim.instance.as_str()).collect();
        assert_eq!(instances, ["before", "after"]);
    }
}

/// Items that the other operations of a failed batch made ready are still handed over.
#[test]
fn a_waiting_fetch_gets_the_items_that_a_failed_batch_still_made_ready() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    let mut fetch = pin!(fetch_instances(&provider, 8));
    hand_in(&mut fetch);
    store.run();
    plan.break_ops_with("bad", FailureClass::Permanent);
    let mut good = pin!(provider.enqueue_for_orchestrator(start("good"), None));
    let mut bad = pin!(provider.enqueue_for_orchestrator(start("bad"), None));
    hand_in(&mut good);
    hand_in(&mut bad);
    store.run();
    answer(&mut good).unwrap();
    answer(&mut bad).unwrap_err();
    assert_eq!(answer(&mut fetch)[0].instance, "good");
}

/// D7: a refused operation was checked before its first write, so the batch goes on.
#[test]
fn a_refused_operation_leaves_the_rest_of_its_batch_alone() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    let mut stale = pin!(provider.ack_work_item("1-77", Some(completed("a", 2))));
    let mut fine = pin!(provider.enqueue_for_orchestrator(start("a"), None));
    hand_in(&mut stale);
    hand_in(&mut fine);
    store.run();
    assert!(answer(&mut stale).unwrap_err().is_lock_lost());
    answer(&mut fine).unwrap();
    assert_eq!(plan.count(Point::Rollback), 0);
    assert_eq!(plan.count(Point::Commit), 1);
}

#[test]
fn many_callers_share_one_commit() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    let mut calls: Vec<_> = (0..100)
        .map(|n| Box::pin(provider.enqueue_for_orchestrator(start(&format!("i{n}")), None)))
        .collect();
    for call in &mut calls {
        hand_in(&mut call.as_mut());
    }
    store.run();
    for call in &mut calls {
        answer(&mut call.as_mut()).unwrap();
    }
    assert_eq!(plan.batches(), [100]);
}

/// S4.25: after any failure before the commit no part of the batch is stored, and a retry works.
#[test]
fn a_failure_before_the_commit_leaves_nothing_behind() {
    for point in [Point::Begin, Point::Commit] {
        let mut f = fixture();
        let claim = claim_new(&mut f, "a");
        let Fixture { provider, mut store, plan, .. } = f;
        plan.fail_next(point, FailureClass::Retryable);
        let commit = || provider.commit_round(&claim.lock_token, first_round("a"));
        assert!(complete(&mut store, commit()).unwrap_err().is_retryable());
        assert!(complete(&mut store, provider.read("a")).unwrap().is_empty());

        complete(&mut store, commit()).unwrap();
        assert_eq!(complete(&mut store, provider.read("a")).unwrap().len(), 1);
        assert_eq!(complete(&mut store, fetch_activities(&provider, 8)).len(), 1);
    }
}

#[test]
fn a_store_that_cannot_begin_fails_its_fetches_instead_of_spinning() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    plan.fail_next(Point::Begin, FailureClass::Retryable);
    let request = OrchestrationFetch::new(LOCK, LONG);
    let error = complete(&mut store, provider.fetch_orchestration_items(&request)).unwrap_err();
    assert!(error.is_retryable());
    assert_eq!(plan.count(Point::Begin), 1);
}

/// Q1: a claim that breaks concerns its own fetch only.
#[test]
fn a_broken_claim_fails_only_its_fetch() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    plan.fail_next(Point::ClaimInstances, FailureClass::Permanent);
    let request = OrchestrationFetch::new(LOCK, LONG);
    let mut unlucky = pin!(provider.fetch_orchestration_items(&request));
    let mut other = pin!(fetch_instances(&provider, 1));
    let mut enqueue = pin!(provider.enqueue_for_orchestrator(start("a"), None));
    hand_in(&mut unlucky);
    hand_in(&mut other);
    hand_in(&mut enqueue);
    store.run();
    assert!(!answer(&mut unlucky).unwrap_err().is_retryable());
    answer(&mut enqueue).unwrap();
    assert_eq!(answer(&mut other)[0].instance, "a");
}

/// Fetches that wait: the answer to one that fails for good comes after a pause that grows, and at once if one in between
/// did not fail. One that does not wait is answered at once.
#[test]
fn claims_that_fail_for_good_are_tried_more_and_more_rarely() {
    let Fixture { provider, mut store, clock, plan } = fixture();
    let mut pauses = |first: &str, second: &str| {
        let mut pauses = Vec::new();
        for _ in 0..8 {
            plan.fail_next(Point::ClaimInstances, FailureClass::Permanent);
            let request = OrchestrationFetch::new(LOCK, LONG);
            let mut fetch = pin!(provider.fetch_orchestration_items(&request));
            hand_in(&mut fetch);
            let asked = clock.elapsed();
            let told = loop {
                let idle = store.run();
                if let Poll::Ready(answer) = poll(&mut fetch) {
                    break answer;
                }
                let Idle::Until(due) = idle else { panic!("{idle:?}") };
                clock.advance(due.saturating_since(clock.now()));
            };
            assert!(!told.unwrap_err().is_retryable());
            pauses.push((clock.elapsed() - asked).as_millis());
        }
        plan.fail_next(Point::ClaimInstances, FailureClass::Permanent);
        let request = OrchestrationFetch::new(LOCK, Duration::ZERO);
        let mut fetch = pin!(provider.fetch_orchestration_items(&request));
        hand_in(&mut fetch);
        store.run();
        answer(&mut fetch).unwrap_err();
        // A store whose fetches fail refuses messages, so a fetch comes before the message.
        complete(&mut store, look_for_instances(&provider));
        complete(&mut store, provider.enqueue_for_orchestrator(start(first), None)).unwrap();
        assert!(!complete(&mut store, look_for_instances(&provider)).is_empty());
        // Without this nothing would be asked of a store that is known to have nothing.
        complete(&mut store, provider.enqueue_for_orchestrator(start(second), None)).unwrap();
        pauses
    };
    let growing = [0, 100, 200, 400, 800, 1_600, 3_000, 3_000];
    assert_eq!(pauses("a", "b"), growing);
    assert_eq!(pauses("c", "d"), growing, "a fetch did not fail in between");
}

/// A message that no turn can ever get is refused, not acknowledged: also the first one, which finds the damage. It is
/// not stored. As soon as a fetch succeeds, or none was tried for a while, messages are accepted again.
#[test]
fn a_store_that_cannot_hand_out_instances_takes_no_messages() {
    let Fixture { provider, mut store, clock, plan } = fixture();
    let request = OrchestrationFetch::new(LOCK, LONG);
    let send = |instance: &str| provider.enqueue_for_orchestrator(start(instance), None);
    for first in [true, false] {
        let mut fetch = pin!(provider.fetch_orchestration_items(&request));
        hand_in(&mut fetch);
        store.run();
        plan.fail_next(Point::ClaimInstances, FailureClass::Permanent);
        let error = complete(&mut store, send("lost")).unwrap_err();
        assert!(!error.is_retryable() && error.message.contains("planned failure"), "{first}: {error}");
        let error = complete(&mut store, send("lost too")).unwrap_err();
        assert!(error.message.contains("takes no messages"), "{first}: {error}");
        if first {
            assert!(complete(&mut store, look_for_instances(&provider)).is_empty(), "nothing was stored");
        } else {
            clock.advance(Duration::from_secs(10));
            complete(&mut store, send("later")).unwrap();
        }
    }
    let claims = complete(&mut store, fetch_instances(&provider, 8));
    let instances: Vec<_> = claims.iter().map(|claim| claim.instance.as_str()).collect();
    assert_eq!(instances, ["later"]);
}

#[test]
fn a_failed_promotion_blocks_no_other_work_and_is_retried_later() {
    let Fixture { provider, mut store, clock, plan } = fixture();
    let delay = Some(Duration::from_secs(1));
    complete(&mut store, provider.enqueue_for_orchestrator(start("later"), delay)).unwrap();
    plan.fail_next(Point::Promote, FailureClass::Retryable);
    clock.advance(Duration::from_secs(1));
    complete(&mut store, provider.enqueue_for_orchestrator(start("now"), None)).unwrap();
    assert_eq!(complete(&mut store, fetch_instances(&provider, 8)).len(), 1);

    let mut fetch = pin!(fetch_instances(&provider, 8));
    hand_in(&mut fetch);
    store.run();
    clock.advance(Duration::from_secs(1));
    store.run();
    assert_eq!(answer(&mut fetch)[0].instance, "later");
}

// ---- unknown outcomes ---------------------------------------------------------------------------------------

/// S4.24: the commit happened, its answer was lost. The caller tries again and finds an invalid token.
#[test]
fn a_commit_whose_answer_was_lost_shows_as_an_invalid_token() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    let Fixture { provider, mut store, clock, plan } = f;
    plan.fail_next(Point::AfterCommit, FailureClass::OutcomeUnknown);
    let commit = || provider.commit_round(&claim.lock_token, first_round("a"));
    assert!(complete(&mut store, commit()).unwrap_err().is_retryable());

    clock.advance(Duration::from_millis(10));
    let error = complete(&mut store, commit()).unwrap_err();
    assert!(error.is_lock_lost(), "{error}");
    assert_eq!(complete(&mut store, provider.read("a")).unwrap().len(), 1);
}

/// S4.24, the other case: it did not happen, and the second attempt commits.
#[test]
fn a_commit_that_did_not_happen_succeeds_after_the_reopen() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    let Fixture { provider, mut store, clock, plan } = f;
    plan.fail_next(Point::Commit, FailureClass::OutcomeUnknown);
    let commit = || provider.commit_round(&claim.lock_token, first_round("a"));
    assert!(complete(&mut store, commit()).unwrap_err().is_retryable());

    clock.advance(Duration::from_millis(10));
    complete(&mut store, commit()).unwrap();
    assert_eq!(plan.count(Point::Reopen), 1);
}

/// D8: 10 ms, then twice as long each time up to 1 s; until then all callers get a retryable error.
#[test]
fn the_store_is_reopened_with_growing_pauses_and_refuses_work_until_then() {
    let Fixture { provider, mut store, clock, plan } = fixture();
    plan.fail_next(Point::Commit, FailureClass::OutcomeUnknown);
    for _ in 0..8 {
        plan.fail_next(Point::Reopen, FailureClass::Retryable);
    }
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap_err();
    let mut pauses = Vec::new();
    while let Idle::Until(time) = store.run() {
        let begins = plan.count(Point::Begin);
        let error = complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert!(complete(&mut store, provider.get_queue_depths()).unwrap_err().is_retryable());
        assert_eq!(plan.count(Point::Begin), begins, "nothing is tried while the store is lost");

        let pause = time.saturating_since(duroxide_core::Clock::now(&*clock));
        pauses.push(u64::try_from(pause.as_millis()).unwrap());
        clock.advance(pause);
    }
    assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]);
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
}

/// D8: the claims of a lost transaction were not handed over, so they are given back.
#[test]
fn claims_of_a_lost_transaction_are_released_after_the_reopen() {
    let Fixture { provider, mut store, clock, plan } = fixture();
    let request = OrchestrationFetch::new(LOCK, LONG);
    let mut fetch = pin!(provider.fetch_orchestration_items(&request));
    hand_in(&mut fetch);
    store.run();
    plan.fail_next(Point::AfterCommit, FailureClass::OutcomeUnknown);
    let mut enqueue = pin!(provider.enqueue_for_orchestrator(start("a"), None));
    hand_in(&mut enqueue);
    store.run();
    assert!(answer(&mut enqueue).unwrap_err().is_retryable());
    assert!(answer(&mut fetch).unwrap_err().is_retryable());

    clock.advance(Duration::from_millis(10));
    let claim = complete(&mut store, fetch_instances(&provider, 1)).remove(0);
    assert_eq!((claim.instance.as_str(), claim.attempt_count), ("a", 1));
}

/// The lost transaction may have been committed, so watchers are notified to read.
#[test]
fn watchers_are_notified_after_a_reopen() {
    let Fixture { provider, mut store, clock, plan } = fixture();
    let mut watch = provider.watch("a").unwrap();
    let mut changed = pin!(watch.changed());
    hand_in(&mut changed);
    plan.fail_next(Point::AfterCommit, FailureClass::OutcomeUnknown);
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap_err();
    assert!(poll(&mut changed).is_pending());
    clock.advance(Duration::from_millis(10));
    store.run();
    answer(&mut changed);
}

/// The ends of the lost transaction were not reported, so no watch counts on an end afterwards.
#[test]
fn after_a_reopen_nothing_is_known_of_ends() {
    let Fixture { provider, mut store, clock, plan } = fixture();
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    assert!(provider.watch("a").unwrap().has_not_ended());
    plan.fail_next(Point::AfterCommit, FailureClass::OutcomeUnknown);
    complete(&mut store, provider.enqueue_for_orchestrator(start("b"), None)).unwrap_err();
    assert!(!provider.watch("b").unwrap().has_not_ended());
    clock.advance(Duration::from_millis(10));
    store.run();
    assert!(!provider.watch("a").unwrap().has_not_ended());
}

/// Upkeep follows every transaction, and its failure fails no call.
#[test]
fn upkeep_runs_between_transactions_and_may_fail() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    plan.fail_next(Point::Maintain, FailureClass::Retryable);
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    complete(&mut store, provider.enqueue_for_orchestrator(start("b"), None)).unwrap();
    assert_eq!(plan.count(Point::Maintain), 2);
}

/// L2: an engine whose poll for changes fails is polled again after a second, not in a loop.
#[test]
fn a_failed_poll_for_changes_is_repeated_after_a_pause() {
    let Fixture { provider, mut store, clock, plan } = fixture();
    plan.fail_next(Point::ChangedElsewhere, FailureClass::Retryable);
    let mut fetch = pin!(fetch_instances(&provider, 1));
    hand_in(&mut fetch);
    let now = duroxide_core::Clock::now(&*clock);
    assert_eq!(store.run(), Idle::Until(now.saturating_add(Duration::from_secs(1))));
    // A clock that is set back does not make the pause longer.
    clock.set_back(LONG);
    let now = duroxide_core::Clock::now(&*clock);
    assert_eq!(store.run(), Idle::Until(now.saturating_add(Duration::from_millis(50))));
}

/// A release without a waiting caller survives a failing store.
#[test]
fn a_claim_dropped_while_the_store_is_lost_is_released_afterwards() {
    let Fixture { provider, mut store, clock, plan } = fixture();
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    {
        let mut unread = pin!(fetch_instances(&provider, 1));
        hand_in(&mut unread);
        store.run();
        plan.fail_next(Point::Commit, FailureClass::OutcomeUnknown);
        complete(&mut store, provider.enqueue_for_orchestrator(start("b"), None)).unwrap_err();
    }
    store.run();
    clock.advance(Duration::from_millis(10));
    store.run();
    assert_eq!(complete(&mut store, fetch_instances(&provider, 1))[0].attempt_count, 1);
}

// ---- panics -------------------------------------------------------------------------------------------------

/// B14: a panic in the engine is the failure of one operation.
#[test]
fn an_operation_that_panics_fails_alone() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    plan.panic_at_ops_with("bad");
    let mut bad = pin!(provider.enqueue_for_orchestrator(start("bad"), None));
    let mut good = pin!(provider.enqueue_for_orchestrator(start("good"), None));
    hand_in(&mut bad);
    hand_in(&mut good);
    store.run();
    let error = answer(&mut bad).unwrap_err();
    assert!(error.message.contains("panicked") && !error.is_retryable(), "{error}");
    answer(&mut good).unwrap();
    assert_eq!(complete(&mut store, fetch_instances(&provider, 8)).len(), 1);
}

/// B14: wherever the engine panics, the store goes on.
#[test]
fn the_store_survives_a_panic_at_every_call() {
    use Point::*;
    for point in [Begin, Apply, ClaimInstances, ClaimActivities, Commit, AfterCommit, NextWake, Read] {
        let Fixture { provider, mut store, clock, plan } = fixture();
        plan.panic_next(point);
        let request = OrchestrationFetch::new(LOCK, Duration::ZERO);
        let _ = complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None));
        let _ = complete(&mut store, provider.fetch_orchestration_items(&request));
        let tags = duroxide_provider::TagFilter::default();
        let _ = complete(&mut store, provider.fetch_work_item(LOCK, Duration::ZERO, None, &tags));
        let _ = complete(&mut store, provider.get_queue_depths());
        clock.advance(LOCK);
        complete(&mut store, provider.enqueue_for_orchestrator(start("b"), None)).unwrap();
        let claims = complete(&mut store, fetch_instances(&provider, 8));
        assert!(claims.iter().any(|claim| claim.instance == "b"), "after a panic at {point:?}");
    }
}

// ---- leases -------------------------------------------------------------------------------------------------

/// D7: the lease counts at the time the caller handed the operation in, however busy the store is then.
#[test]
fn a_lease_that_ends_while_the_commit_waits_for_the_store_is_still_good() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    let Fixture { provider, mut store, clock, .. } = f;
    let mut commit = pin!(provider.commit_round(&claim.lock_token, first_round("a")));
    hand_in(&mut commit);
    clock.advance(LOCK * 2);
    store.run();
    answer(&mut commit).unwrap();
}

/// I09: a lease that had ended when the commit was submitted is lost, and nothing is written.
#[test]
fn a_commit_under_an_ended_lease_changes_nothing() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    let Fixture { provider, mut store, clock, .. } = f;
    clock.advance(LOCK * 2);
    let commit = provider.commit_round(&claim.lock_token, first_round("a"));
    assert!(complete(&mut store, commit).unwrap_err().is_lock_lost());
    assert!(complete(&mut store, provider.read("a")).unwrap().is_empty());
}

/// Only a completion may take an activity's place; anything else is refused before it reaches the store.
#[test]
fn a_wrong_work_item_is_refused_at_the_door() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    let wrong = WorkItem::CancelInstance { instance: "a".to_owned(), reason: String::new() };
    let error = complete(&mut store, provider.ack_work_item("1-1", Some(wrong))).unwrap_err();
    assert!(error.message.contains("Invalid work item type"), "{error}");
    let error = complete(&mut store, provider.enqueue_for_orchestrator(activity("a", 2), None)).unwrap_err();
    assert!(error.message.contains("Invalid work item type"), "{error}");
    assert_eq!(plan.count(Point::Begin), 0);
}
