//! Calls to the store that fail.

use duroxide::testing::{Mock, StoreFault, TestCluster};

use crate::order::{charge, handlers, order};

/// One approved order under this fault; returns how often the card was charged.
fn charges_under(fault: StoreFault) -> usize {
    let charge = Mock::<charge>::returning(&"receipt".to_owned());
    TestCluster::builder().handlers(handlers()).mock(&charge).run(async |cluster| {
        cluster.store_fails(fault);
        let order = cluster.client().start::<order>("o-1", 700).await.unwrap();
        order.raise("approval", &"Kim").await.unwrap();
        order.result().await.unwrap().unwrap_err();
        assert!(cluster.history("o-1").await.len() > 5);
    });
    charge.calls().len()
}

#[test]
fn a_store_that_cannot_be_reached_only_takes_time() {
    assert_eq!(charges_under(StoreFault::next(20)), 1);
}

#[test]
fn a_commit_whose_answer_is_lost_counts_once() {
    assert_eq!(charges_under(StoreFault::next(3).of("commit_round").answer_lost()), 1);
}

#[test]
fn a_lost_ack_counts_once() {
    assert_eq!(charges_under(StoreFault::next(2).of("ack_work_item").answer_lost()), 1);
}
