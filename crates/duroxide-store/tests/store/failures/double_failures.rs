//! A second failure while the first is being handled.

use std::{pin::pin, time::Duration};

use duroxide_core::WorkItem;
use duroxide_provider::{Provider, ProviderError, store::FailureClass};

use crate::support::*;

const SECOND: Duration = Duration::from_secs(1);

/// Where the second failure is: the call, and how it fails.
const SECONDS: [(Point, FailureClass); 7] = [
    (Point::Begin, FailureClass::Retryable),
    (Point::Begin, FailureClass::OutcomeUnknown),
    (Point::Commit, FailureClass::Retryable),
    (Point::Commit, FailureClass::Permanent),
    (Point::Commit, FailureClass::OutcomeUnknown),
    (Point::AfterCommit, FailureClass::OutcomeUnknown),
    (Point::Apply, FailureClass::Retryable),
];

fn raise(instance: &str, name: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.to_owned(), name: name.to_owned(), data: String::new() }
}

/// Lets the store recover from its failures.
fn recover(f: &mut Fixture) {
    f.plan.forgive_all();
    for _ in 0..4 {
        f.clock.advance(SECOND);
        f.store.run();
    }
}

/// The names of the events that instance `a` would get now.
fn waiting_events(f: &mut Fixture) -> Vec<String> {
    let claims = complete(&mut f.store, look_for_instances(&f.provider));
    let messages = claims.into_iter().filter(|claim| claim.instance == "a").flat_map(|claim| claim.messages);
    let name = |item| match item {
        WorkItem::ExternalRaised { name, .. } => Some(name),
        _ => None,
    };
    messages.filter_map(name).collect()
}

/// S4.22, I18: the batch is run one by one because of a broken operation, and then another transaction fails, each one in
/// turn. A caller with `Ok` finds its message stored once, one with a permanent error does not find it, and one with a
/// retryable error may.
#[test]
fn a_failure_while_operations_run_one_by_one_makes_no_answer_wrong() {
    for (point, class) in SECONDS {
        for number in 0..5 {
            let mut f = fixture();
            let turn = claim_new(&mut f, "a");
            complete(&mut f.store, f.provider.commit_round(&turn.lock_token, first_round("a"))).unwrap();
            f.plan.break_ops_with("broken", FailureClass::Permanent);
            let names = ["one", "two", "broken", "three"];
            let answers: Vec<Result<(), ProviderError>> = {
                let mut calls: Vec<_> = names
                    .iter()
                    .map(|name| Box::pin(f.provider.enqueue_for_orchestrator(raise("a", name), None)))
                    .collect();
                calls.iter_mut().for_each(|call| hand_in(&mut call.as_mut()));
                // The first transaction is the batch as a whole.
                f.plan.fail_after(point, number, class);
                f.store.run();
                calls.iter_mut().map(|call| answer(&mut call.as_mut())).collect()
            };
            recover(&mut f);
            let stored = waiting_events(&mut f);
            for (name, answer) in names.iter().zip(&answers) {
                let found = stored.iter().filter(|stored| stored == name).count();
                let case = format!("{name} after {point:?} {number} {class:?}: {answer:?}, {stored:?}");
                match answer {
                    Ok(()) => assert_eq!(found, 1, "{case}"),
                    Err(error) if !error.is_retryable() => assert_eq!(found, 0, "{case}"),
                    Err(_) => assert!(found <= 1, "{case}"),
                }
            }
            assert!(answers[2].is_err());
        }
    }
}

/// I10, S4.25: a round that fails is tried again under its lock, after any failures, until it is stored: once, with all
/// its parts.
#[test]
fn a_round_that_fails_twice_is_stored_once_and_whole() {
    for (first, first_class) in SECONDS {
        for (second, second_class) in SECONDS {
            let mut f = fixture();
            let claim = claim_new(&mut f, "a");
            f.plan.fail_after(first, 0, first_class);
            f.plan.fail_after(second, 1, second_class);
            let case = format!("{first:?} {first_class:?}, {second:?} {second_class:?}");
            let stored = (0..6).any(|_| {
                let commit = f.provider.commit_round(&claim.lock_token, first_round("a"));
                let answer = complete(&mut f.store, commit);
                f.clock.advance(SECOND);
                f.store.run();
                // The lock has ended: an earlier try was stored, and its answer lost.
                answer.is_ok() || answer.is_err_and(|error| error.is_lock_lost())
            });
            recover(&mut f);
            assert!(stored, "{case}");
            assert_eq!(complete(&mut f.store, f.provider.read("a")).unwrap().len(), 1, "{case}");
            assert_eq!(complete(&mut f.store, fetch_activities(&f.provider, 8)).len(), 1, "{case}");
            assert!(complete(&mut f.store, look_for_instances(&f.provider)).is_empty(), "{case}");
        }
    }
}

/// D4, D8: a claim that its caller never saw is given back, also if that fails at first, and then again.
#[test]
fn a_release_that_fails_is_tried_again_before_the_lease_ends() {
    for (first, first_class) in SECONDS {
        for (second, second_class) in SECONDS {
            // A commit that fails for good, and does so again with the release alone, blames the release.
            if (first_class, second_class) == (FailureClass::Permanent, FailureClass::Permanent) {
                continue;
            }
            let mut f = fixture();
            complete(&mut f.store, f.provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
            {
                let mut fetch = pin!(fetch_instances(&f.provider, 1));
                hand_in(&mut fetch);
                f.store.run();
            }
            f.plan.fail_after(first, 0, first_class);
            f.plan.fail_after(second, 1, second_class);
            for _ in 0..8 {
                f.store.run();
                f.clock.advance(SECOND);
            }
            recover(&mut f);
            let claims = complete(&mut f.store, look_for_instances(&f.provider));
            let case = format!("{first:?} {first_class:?}, {second:?} {second_class:?}");
            assert_eq!(claims.len(), 1, "{case}");
            assert_eq!(claims[0].attempt_count, 1, "{case}");
        }
    }
}

/// The runtime posts its setting and waits for no answer.
#[test]
fn a_setting_without_a_waiting_caller_survives_a_failed_transaction() {
    for (point, class) in [
        (Point::Begin, FailureClass::Retryable),
        (Point::Commit, FailureClass::Retryable),
        (Point::Commit, FailureClass::OutcomeUnknown),
    ] {
        let mut f = fixture();
        f.plan.fail_next(point, class);
        f.provider.set_max_attempts(3);
        f.store.run();
        let batches = f.plan.batches().len();
        recover(&mut f);
        assert_eq!(f.plan.batches()[batches..].iter().sum::<usize>(), 1, "{point:?} {class:?}");
    }
}

/// I09, I10: a refused round stores none of its parts, whatever the outcome of its batch.
#[test]
fn a_refused_round_stores_none_of_its_parts() {
    for (point, class) in SECONDS {
        let mut f = fixture();
        let claim = claim_new(&mut f, "a");
        f.clock.advance(LOCK);
        let case = format!("{point:?} {class:?}");
        let other = {
            let mut refused = pin!(f.provider.commit_round(&claim.lock_token, first_round("a")));
            let mut other = pin!(f.provider.enqueue_for_orchestrator(start("b"), None));
            hand_in(&mut refused);
            hand_in(&mut other);
            f.plan.fail_after(point, 0, class);
            f.store.run();
            assert!(answer(&mut refused).is_err(), "{case}");
            answer(&mut other)
        };
        recover(&mut f);
        assert!(complete(&mut f.store, f.provider.read("a")).unwrap().is_empty(), "{case}");
        assert!(complete(&mut f.store, look_for_activities(&f.provider)).is_empty(), "{case}");
        let instances: Vec<_> = complete(&mut f.store, fetch_instances(&f.provider, 8))
            .into_iter()
            .map(|claim| (claim.instance, claim.attempt_count))
            .collect();
        assert!(instances.contains(&("a".to_owned(), 2)), "{case}: {instances:?}");
        let stored = instances.iter().any(|(instance, _)| instance == "b");
        assert!(stored || other.is_err_and(|error| error.is_retryable()), "{case}: {instances:?}");
    }
}

/// A call that is refused while the store is reopened gets an error, and is not stored afterwards: the caller retries.
#[test]
fn calls_refused_while_the_store_is_reopened_are_not_stored_later() {
    let mut f = fixture();
    f.plan.fail_next(Point::Commit, FailureClass::OutcomeUnknown);
    complete(&mut f.store, f.provider.enqueue_for_orchestrator(start("a"), None)).unwrap_err();
    let refused = complete(&mut f.store, f.provider.enqueue_for_orchestrator(start("b"), None)).unwrap_err();
    assert!(refused.is_retryable() && refused.message.contains("the store is being reopened"), "{refused}");
    recover(&mut f);
    let claims = complete(&mut f.store, look_for_instances(&f.provider));
    assert!(claims.iter().all(|claim| claim.instance != "b"), "{claims:?}");
}
