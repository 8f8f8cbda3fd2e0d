//! Several writers on one file.

mod intake;

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use duroxide_provider::{
    NodeId,
    store::{Answer, NodeRow, Op, StoreEngine, StoreReader, TellOfWrite},
};

use crate::fixture::*;

/// I08: locks and attempts are in the file, so a second writer honours them.
#[test]
fn two_writers_share_locks_and_attempts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut first = Store::file(&path);
    let mut second = Store::file(&path);
    first.send(&start("order-1"));
    let claim = second.claim().unwrap();
    assert!(first.claim().is_none());

    first.pass(LEASE);
    let taken_over = first.claim().unwrap();
    assert_eq!(taken_over.attempt_count, 2);
    assert!(second.commit(&claim.lock_token, first_round("order-1")).is_err());
    first.commit(&taken_over.lock_token, first_round("order-1")).unwrap();
    assert_eq!(second.event_ids("order-1"), [1, 2]);
}

fn join(store: &mut Store, name: &str) -> NodeId {
    let row = NodeRow { name: name.to_owned(), session_owners: Vec::new(), capability: String::new() };
    let Answer::Joined(node) = store.apply(&Op::JoinNode(row)) else { panic!("it joins") };
    node
}

#[test]
fn a_node_that_joins_again_has_its_number_and_others_have_their_own() {
    let mut store = Store::in_memory();
    let (one, other) = (join(&mut store, "one"), join(&mut store, "other"));
    assert_ne!(one, other);
    assert_eq!((join(&mut store, "one"), join(&mut store, "other")), (one, other));
}

/// Routes and lanes that another writer made are found by their number.
#[test]
fn work_of_handlers_that_only_another_writer_has_met_is_claimed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut first = Store::file(&path);
    let mut second = Store::file(&path);
    first.send(&start("order-1"));
    first.queue(&activity("order-1", 2));
    assert_eq!(second.claim().unwrap().orchestration_name, "Pay");
    assert_eq!(second.claim_work().unwrap().item, activity("order-1", 2));
    second.send(&start("order-2"));
    assert_eq!(first.claim().unwrap().instance, "order-2");
}

/// A request is notified of the next write by any process, and only of that one.
#[cfg(target_os = "linux")]
#[test]
fn a_write_notifies_its_watchers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    // A link to the file has no log next to it.
    let link = directory.path().join("link.db");
    let mut second = Store::file(&path);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let mut first = Store::file(&link);
    let (tell, told) = mpsc::channel();
    let tell: TellOfWrite = Arc::new(move || tell.send(()).unwrap());
    second.send(&start("order-1"));
    for n in 2..4 {
        assert!(first.engine.tell_of_writes(&tell) && first.engine.tell_of_writes(&tell));
        second.send(&start(&format!("order-{n}")));
        told.recv_timeout(Duration::from_secs(30)).unwrap();
    }
    assert!(first.engine.changed_elsewhere().unwrap());
    second.send(&start("order-4"));
    drop(first);
    assert!(told.try_recv().is_err(), "told more often than asked");
}

#[test]
fn a_store_in_memory_watches_no_file() {
    let tell: TellOfWrite = Arc::new(|| ());
    assert!(!Store::in_memory().engine.tell_of_writes(&tell));
}

/// D9: only commits of other connections count as a change, and a read then returns which queues may have ready items.
#[test]
fn a_change_by_another_writer_is_noticed_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut first = Store::file(&path);
    let mut second = Store::file(&path);
    assert!(!first.engine.changed_elsewhere().unwrap());
    first.send(&raise("ghost", "1"));
    assert!(!first.engine.changed_elsewhere().unwrap(), "its own commit is no news");

    second.send(&raise("ghost", "2"));
    assert!(first.engine.changed_elsewhere().unwrap());
    assert!(!first.engine.changed_elsewhere().unwrap());
    assert!(!first.engine.may_be_ready().unwrap().instances, "strays are not ready");

    second.send(&start("order-1"));
    assert!(first.engine.changed_elsewhere().unwrap());
    let ready = first.engine.may_be_ready().unwrap();
    assert!(ready.instances && !ready.activities);
}

/// B20: writers that fetch and commit at the same time wait for each other; no busy error comes out.
#[test]
fn busy_writers_wait_for_each_other() {
    const WRITERS: usize = 8;
    const ORDERS: usize = 50;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    drop(Store::file(&path));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let path = &path;
            scope.spawn(move || {
                let mut store = Store::file(path);
                for order in 0..ORDERS {
                    store.send(&start(&format!("order-{writer}-{order}")));
                    let claim = store.claim().unwrap();
                    store.commit(&claim.lock_token, first_round(&claim.instance)).unwrap();
                }
            });
        }
    });
    let mut store = Store::file(&path);
    let metrics = store.engine.system_metrics().unwrap();
    assert_eq!(metrics.total_instances, (WRITERS * ORDERS) as u64);
    assert_eq!(metrics.total_events, 2 * metrics.total_instances);
}

/// Many that open a new file at the same time get one store.
#[test]
fn a_new_file_is_made_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    thread::scope(|scope| {
        for n in 0..8 {
            let path = &path;
            scope.spawn(move || Store::file(path).send(&raise(&format!("order-{n}"), "1")));
        }
    });
    assert_eq!(Store::file(&path).engine.snapshot().unwrap().instances.len(), 8);
}
