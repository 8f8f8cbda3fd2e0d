//! Times that a store waits for: clocks that jump between two openings, and transactions that fail.

use std::time::Duration;

use duroxide_core::{Timestamp, WorkItem};
use duroxide_provider::{
    SessionFetchConfig,
    store::{ActivityFetch, Op, StoreEngine, TransactionSteps},
};

use crate::fixture::*;

const HOUR: Duration = Duration::from_secs(3_600);

fn an_hour_earlier(time: Timestamp) -> Timestamp {
    Timestamp::from_micros(time.as_micros() - u64::try_from(HOUR.as_micros()).unwrap())
}

/// D11: a lease given by a clock that was an hour ahead ends one lease after the store is opened again.
#[test]
fn a_clock_set_back_while_the_store_was_closed_locks_nothing_away() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    store.pass(HOUR);
    store.send(&start("order-1"));
    store.queue(&activity("order-2", 2));
    store.claim().unwrap();
    store.claim_work().unwrap();
    let ahead = store.now;
    drop(store);

    let mut store = Store::file(&path);
    store.now = an_hour_earlier(ahead);
    assert!(store.claim().is_none() && store.claim_work().is_none());
    store.pass(LEASE);
    assert_eq!(store.claim().unwrap().attempt_count, 2);
    assert_eq!(store.claim_work().unwrap().attempt_count, 2);
}

/// The length of a lease is that of its last renewal, so a long one is not cut short.
#[test]
fn a_renewed_lease_survives_a_reopen_in_full() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    store.apply(&Op::RenewInstance { token: claim.lock_token, extend_for: HOUR });
    drop(store);

    let mut store = Store::file(&path);
    store.pass(HOUR - Duration::from_millis(1));
    assert!(store.claim().is_none());
    store.pass(Duration::from_millis(1));
    assert!(store.claim().is_some());
}

/// 13.1, I10: a commit that failed has noticed nothing, so the end of a session is still to come.
#[test]
fn the_end_of_a_session_is_noticed_again_after_a_failed_commit() {
    let mut store = Store::in_memory();
    for id in [2, 3] {
        let mut item = activity("order-1", id);
        if let WorkItem::ActivityExecute { session_id, .. } = &mut item {
            *session_id = Some("s".to_owned());
        }
        store.queue(&item);
    }
    let session = |owner: &str| SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout: LEASE };
    let fetch = |owner: &str| ActivityFetch { session: Some(session(owner)), ..one_activity() };
    let held = store.claim_work_with(&fetch("w1")).items.remove(0);
    store.apply(&Op::RenewActivity { token: held.lock_token, extend_for: HOUR });
    let end = store.now.saturating_add(LEASE);
    assert_eq!(store.engine.next_wake(store.now).unwrap(), Some(end));

    store.pass(LEASE);
    store.engine.steps().begin(store.now).unwrap();
    store.engine.steps().promote().unwrap();
    store.engine.steps().rollback();
    assert_eq!(store.engine.next_wake(store.now).unwrap(), Some(end));
    assert_eq!(store.claim_work_with(&fetch("w2")).items.len(), 1);
}
