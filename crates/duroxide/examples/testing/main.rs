//! Testing an orchestration: its deadline without waiting, its retries, and a crash at every await.
//!
//! In a program these are `#[test]` functions; here they are called one after the other.

#![allow(clippy::expect_used, reason = "these are tests")]

mod program;

use std::time::{Duration, Instant};

use duroxide::testing::{Mock, TestCluster, for_seeds};
use program::{charge, handlers, order, refund};

fn main() {
    nobody_approves();
    the_card_reader_is_busy();
    the_node_dies_anywhere();
}

/// The deadline is two minutes away. Time jumps there as soon as nothing else can run.
fn nobody_approves() {
    let began = Instant::now();
    let (charge, refund) = (Mock::<charge>::returning(&"receipt".to_owned()), Mock::<refund>::returning(&()));
    TestCluster::builder().handlers(handlers()).mock(&charge).mock(&refund).run(async |cluster| {
        let order = cluster.client().start::<order>("order-1", 700).await.expect("the store takes it");
        let ended = order.result().await.expect("the store answers");
        println!("order-1: {}", ended.expect_err("nobody approves"));
        println!("virtual time: {} s", cluster.elapsed().as_secs());
    });
    println!("refunded: {:?}", refund.calls());
    assert!(began.elapsed() < Duration::from_secs(60), "the test did not wait");
}

/// The first two attempts fail; the mock records all of them.
fn the_card_reader_is_busy() {
    let charge = Mock::<charge>::returning(&"receipt".to_owned()).failing_first(2, &"busy".to_owned());
    TestCluster::builder().handlers(handlers()).mock(&charge).run(async |cluster| {
        let order = cluster.client().start::<order>("order-2", 700).await.expect("the store takes it");
        cluster.sleep(Duration::from_secs(60)).await;
        order.raise("approval", &"Ada").await.expect("the store takes it");
        println!("order-2: {}", order.result().await.expect("the store answers").expect("it is approved"));
    });
    println!("attempts: {}", charge.calls().len());
}

/// Each seed kills the node at another await. The order ends correctly each time.
fn the_node_dies_anywhere() {
    let (mut runs, mut charged_twice) = (0, 0);
    for_seeds(0..50, |cluster| {
        let charge = Mock::<charge>::returning(&"receipt".to_owned()).taking(Duration::from_secs(5));
        cluster.handlers(handlers()).mock(&charge).run(async |cluster| {
            let order = cluster.client().start::<order>("order-3", 700).await.expect("the store takes it");
            cluster.sleep(Duration::from_secs(90)).await;
            order.raise("approval", &"Ada").await.expect("the store takes it");
            let ended = order.result().await.expect("the store answers");
            assert_eq!(ended.expect("it is approved"), "receipt, approved by Ada");
        });
        runs += 1;
        charged_twice += u32::from(charge.calls().len() > 1);
    });
    println!("{runs} runs ended well, one of them without a crash");
    println!("some ran the activity twice: {}", charged_twice > 0);
}
