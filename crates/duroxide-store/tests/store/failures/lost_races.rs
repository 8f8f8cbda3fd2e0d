//! Transactions that the database rolls back because of other ones: serialization failures and deadlocks.

use std::pin::pin;

use duroxide_provider::{OrchestrationFetch, Provider, store::FailureClass};

use crate::support::*;

/// How often a batch is tried again at once.
const TRIES_AGAIN: usize = 16;

/// 24.4: callers do not notice, nothing happens twice, and each retry carries the same operations.
#[test]
fn a_batch_that_loses_races_is_tried_again_as_it_was() {
    for races in [1, TRIES_AGAIN] {
        let mut f = fixture();
        let claim = claim_new(&mut f, "old");
        let Fixture { provider, mut store, plan, .. } = f;
        let mut fetch = pin!(fetch_instances(&provider, 8));
        hand_in(&mut fetch);
        store.run();
        let before = plan.batches().len();
        plan.lose_races(1..=races);
        let mut starts = ["a", "b"].map(|id| Box::pin(provider.enqueue_for_orchestrator(start(id), None)));
        let mut round = pin!(provider.commit_round(&claim.lock_token, first_round("old")));
        starts.iter_mut().for_each(|call| hand_in(&mut call.as_mut()));
        hand_in(&mut round);
        store.run();
        starts.iter_mut().for_each(|call| answer(&mut call.as_mut()).unwrap());
        answer(&mut round).unwrap();

        assert_eq!(plan.batches()[before..], [3], "one commit of all");
        let asked = plan.asked();
        assert_eq!(asked.len(), races + 1);
        assert!(asked.iter().all(|batch| *batch == asked[0]), "{asked:#?}");
        let claims = answer(&mut fetch);
        let claimed: Vec<_> =
            claims.iter().map(|claim| (claim.instance.as_str(), claim.attempt_count)).collect();
        assert_eq!(claimed, [("a", 1), ("b", 1)]);
        assert!(claims.iter().all(|claim| claim.messages.len() == 1), "{claims:?}");
        assert_eq!(complete(&mut store, provider.read("old")).unwrap().len(), 1);
        assert_eq!(complete(&mut store, fetch_activities(&provider, 8)).len(), 1);
    }
}

/// 24.4: callers get a retryable error, and do not wait for ever.
#[test]
fn a_batch_that_loses_every_race_fails_and_may_be_repeated() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    plan.lose_races(1..=TRIES_AGAIN + 1);
    let request = OrchestrationFetch::new(LOCK, LONG);
    let mut fetch = pin!(provider.fetch_orchestration_items(&request));
    let mut one = pin!(provider.enqueue_for_orchestrator(start("a"), None));
    let mut other = pin!(provider.enqueue_for_orchestrator(start("b"), None));
    hand_in(&mut fetch);
    hand_in(&mut one);
    hand_in(&mut other);
    store.run();
    assert!(answer(&mut one).unwrap_err().is_retryable());
    assert!(answer(&mut other).unwrap_err().is_retryable());
    assert!(answer(&mut fetch).unwrap_err().is_retryable());
    assert_eq!(plan.asked().len(), TRIES_AGAIN + 1);
    assert!(complete(&mut store, look_for_instances(&provider)).is_empty(), "nothing has happened");

    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    let claims = complete(&mut store, fetch_instances(&provider, 8));
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].messages.len(), 1);
}

/// The operations of a broken batch run alone, and lose races like any other.
#[test]
fn an_operation_that_runs_alone_is_tried_again_too() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    plan.break_ops_with("bad", FailureClass::Permanent);
    // The first transaction breaks. Then the good operation runs alone.
    plan.lose_races(2..=1 + TRIES_AGAIN);
    let mut good = pin!(provider.enqueue_for_orchestrator(start("good"), None));
    let mut bad = pin!(provider.enqueue_for_orchestrator(start("bad"), None));
    hand_in(&mut good);
    hand_in(&mut bad);
    store.run();
    answer(&mut good).unwrap();
    assert!(!answer(&mut bad).unwrap_err().is_retryable());
    let asked = plan.asked();
    assert!(asked[1..=1 + TRIES_AGAIN].iter().all(|batch| *batch == asked[1]), "{asked:#?}");
    assert_eq!(plan.batches(), [1]);
    assert_eq!(complete(&mut store, fetch_instances(&provider, 8)).len(), 1);
}
