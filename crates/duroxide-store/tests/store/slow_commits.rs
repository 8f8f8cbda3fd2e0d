//! Commits that take longer than leases are (16.1, 16.3): a lease counts from when its holder learns of it.

use std::{pin::pin, sync::Arc, time::Duration};

use duroxide_provider::{Provider, TagFilter, WorkClaim, WorkFetch, store::FailureClass};

use crate::support::*;

const SECOND: Duration = Duration::from_secs(1);
/// A short lease; the commits of these tests take longer.
const SHORT: Duration = Duration::from_secs(2);

fn make_commits_take(f: &Fixture, time: Duration) {
    let clock = Arc::clone(&f.clock);
    f.plan.during_commit(move || clock.advance(time));
}

fn with_activity() -> Fixture {
    let mut f = fixture();
    let turn = claim_new(&mut f, "a");
    complete(&mut f.store, f.provider.commit_round(&turn.lock_token, first_round("a"))).unwrap();
    f
}

fn fetch(f: &mut Fixture) -> Vec<WorkClaim> {
    let tags = TagFilter::default();
    let request = WorkFetch::new(SHORT, Duration::ZERO, &tags);
    complete(&mut f.store, f.provider.fetch_work_items(&request)).unwrap()
}

/// A holder that has just got its lease renews it, while another worker fetches.
fn renew_while_another_looks(f: &mut Fixture, work: &WorkClaim) {
    let tags = TagFilter::default();
    let request = WorkFetch::new(SHORT, Duration::ZERO, &tags);
    let mut renewal = pin!(f.provider.renew_work_item_lock(&work.lock_token, SHORT));
    hand_in(&mut renewal);
    assert!(complete(&mut f.store, f.provider.fetch_work_items(&request)).unwrap().is_empty());
    answer(&mut renewal).unwrap();
}

/// The first slow commit is a surprise: the lease it gave is over when its holder learns of it, and is renewed before
/// anybody can take it. From then on leases allow for the commit.
#[test]
fn renewals_in_time_keep_a_lease_that_is_shorter_than_a_commit() {
    let mut f = with_activity();
    make_commits_take(&f, 3 * SECOND);
    let work = fetch(&mut f).remove(0);
    for _ in 0..10 {
        renew_while_another_looks(&mut f, &work);
        f.clock.advance(SHORT / 2);
    }
    let ack = f.provider.ack_work_item(&work.lock_token, Some(completed("a", 2)));
    complete(&mut f.store, ack).unwrap();
}

/// Leases of a turn: its renewals run in transactions of their own because another operation fails.
#[test]
fn a_turn_keeps_its_short_lease_while_another_operation_breaks() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    make_commits_take(&f, 3 * SECOND);
    f.plan.break_ops_with("broken", FailureClass::Permanent);
    for _ in 0..5 {
        let (provider, store) = (&f.provider, &mut f.store);
        let mut broken = pin!(provider.enqueue_for_orchestrator(start("broken"), None));
        let mut renewal = pin!(provider.renew_orchestration_item_lock(&claim.lock_token, SHORT));
        hand_in(&mut broken);
        hand_in(&mut renewal);
        assert!(complete(store, look_for_instances(provider)).is_empty());
        answer(&mut broken).unwrap_err();
        answer(&mut renewal).unwrap();
    }
    complete(&mut f.store, f.provider.commit_round(&claim.lock_token, first_round("a"))).unwrap();
}

/// L1: the locks of a dead process end after its lease and the few commits of allowance.
#[test]
fn slow_commits_do_not_keep_the_leases_of_the_dead() {
    let mut f = with_activity();
    make_commits_take(&f, 3 * SECOND);
    let work = fetch(&mut f).remove(0);
    let died = f.clock.elapsed();
    let taken = loop {
        complete(&mut f.store, f.provider.enqueue_for_orchestrator(start("busy"), None)).unwrap();
        if let Some(taken) = fetch(&mut f).pop() {
            break taken;
        }
        assert!(f.clock.elapsed() - died < 30 * SECOND, "its lease does not end");
    };
    assert_eq!((taken.item, taken.attempt_count), (work.item, 2));
}

/// Leases are as long as asked for unless a commit takes more than a quarter of them.
#[test]
fn a_lease_that_is_long_compared_with_the_commits_is_not_extended() {
    for commit in [Duration::from_millis(49), SHORT / 4] {
        let mut f = with_activity();
        make_commits_take(&f, commit);
        complete(&mut f.store, f.provider.enqueue_for_orchestrator(start("busy"), None)).unwrap();
        let given = f.clock.elapsed();
        fetch(&mut f).remove(0);
        f.clock.advance(SHORT - commit);
        assert_eq!(fetch(&mut f)[0].attempt_count, 2, "commits take {commit:?}");
        // The lease had ended when the fetch came: one commit was enough.
        assert_eq!(f.clock.elapsed() - given, SHORT + commit, "commits take {commit:?}");
    }
}
