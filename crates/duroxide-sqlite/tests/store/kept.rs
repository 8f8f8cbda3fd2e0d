//! What the engine keeps of instances is never older than what is stored.

use duroxide_provider::store::{Answer, Op, Refusal, StoreEngine, StoreReader};

use crate::fixture::{LEASE, Store, first_round, one_instance, raise, start};

/// A store on a file, and another process on the same.
fn two_processes() -> (tempfile::TempDir, Store, Store) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let (one, other) = (Store::file(&path), Store::file(&path));
    (directory, one, other)
}

/// I05: the token of a lock that ended and was taken over opens nothing.
#[test]
fn a_lock_that_another_process_took_over_is_lost() {
    let (_directory, mut one, mut other) = two_processes();
    one.send(&start("order-1"));
    let claim = one.claim().unwrap();
    other.pass(LEASE);
    let takeover = other.claim().unwrap();
    let refused = one.commit(&claim.lock_token, first_round("order-1"));
    assert!(matches!(refused, Err(Refusal::InvalidLockToken)), "{refused:?}");
    assert!(other.commit(&takeover.lock_token, first_round("order-1")).is_ok());
}

#[test]
fn an_instance_that_another_process_deleted_stays_gone() {
    let (_directory, mut one, mut other) = two_processes();
    one.send(&start("order-1"));
    let claim = one.claim().unwrap();
    one.commit(&claim.lock_token, first_round("order-1")).unwrap();
    one.send(&raise("order-1", "1"));
    let claim = one.claim().unwrap();
    let delete = Op::DeleteInstances { ids: vec!["order-1".to_owned()], force: true };
    assert!(matches!(other.apply(&delete), Answer::Deleted(result) if result.instances_deleted == 1));
    let refused = one.commit(&claim.lock_token, first_round("order-1"));
    assert!(matches!(refused, Err(Refusal::InvalidLockToken)), "{refused:?}");
    assert_eq!(one.event_ids("order-1"), Vec::<u64>::new());
}

/// A message that another process sent while a turn ran is left to the next.
#[test]
fn a_message_of_another_process_is_not_forgotten() {
    let (_directory, mut one, mut other) = two_processes();
    one.send(&start("order-1"));
    let claim = one.claim().unwrap();
    other.send(&raise("order-1", "1"));
    one.commit(&claim.lock_token, first_round("order-1")).unwrap();
    assert_eq!(one.claim().unwrap().messages, [raise("order-1", "1")]);
}

#[test]
fn what_was_rolled_back_is_not_kept() {
    let mut store = Store::in_memory();
    store.send(&start("order-1"));
    store.engine.begin(store.now).unwrap();
    let claim = store.engine.claim_instances(&one_instance(), 7).unwrap().items.remove(0);
    store.engine.rollback();
    let refused = store.commit(&claim.lock_token, first_round("order-1"));
    assert!(matches!(refused, Err(Refusal::InvalidLockToken)), "{refused:?}");
    assert_eq!(store.engine.snapshot().unwrap().instances[0].messages[0].attempt_count, 0);
    assert!(store.claim().is_some());
}
