//! One seed, one story; many seeds, many crashes.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
    time::Duration,
};

use duroxide::{
    Event,
    testing::{ClusterBuilder, Mock, TestCluster, for_seeds},
};

use crate::order::{charge, fan_out, handlers, nightly, order};

/// Everything that two runs of one seed must share: histories, calls, virtual time, the whole store.
#[derive(Debug, PartialEq)]
struct Story {
    histories: Vec<Vec<Event>>,
    calls: Vec<u64>,
    elapsed: Duration,
    awaits: u64,
    store: String,
}

/// Orders, a loop and a fan-out on two nodes, one of which dies and comes back.
fn story(cluster: ClusterBuilder) -> Story {
    let charge = Mock::<charge>::answering(|amount| Ok(format!("{amount} taken")))
        .failing_first(2, &"busy".to_owned())
        .taking(Duration::from_millis(700));
    let cluster = cluster.handlers(handlers()).handlers(handlers()).mock(&charge);
    cluster.run(async |cluster| {
        let client = cluster.client();
        for n in 0..5 {
            client.start::<order>(format!("order-{n}"), n).await.unwrap();
        }
        let nights = client.start::<nightly>("nights", 5).await.unwrap();
        let many = client.start::<fan_out>("many", 100).await.unwrap();
        cluster.sleep(Duration::from_millis(1_500)).await;
        cluster.crash(1);
        client.handle::<order>("order-3").raise("approval", &"Kim").await.unwrap();
        cluster.sleep(Duration::from_secs(30)).await;
        cluster.restart(1).await;
        let _ = many.result().await.unwrap();
        let _ = nights.result().await.unwrap();
        let mut histories = Vec::new();
        for id in client.list_all_instances().await.unwrap() {
            histories.push(cluster.history(&id).await);
        }
        Story {
            histories,
            calls: charge.calls(),
            elapsed: cluster.elapsed(),
            awaits: cluster.awaits(),
            store: format!("{:?}", cluster.snapshot().await),
        }
    })
}

#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in 0..8 {
        let (first, second) =
            (story(TestCluster::builder().seed(seed)), story(TestCluster::builder().seed(seed)));
        assert!(first.awaits > 100, "there is something to compare");
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn other_seeds_tell_other_stories() {
    let awaits: std::collections::BTreeSet<u64> =
        (0..5).map(|seed| story(TestCluster::builder().seed(seed)).awaits).collect();
    assert!(awaits.len() > 1);
}

#[test]
fn a_sqlite_file_tells_the_same_story_too() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = |seed| TestCluster::builder().seed(seed).sqlite(folder.path());
    for seed in 0..3 {
        assert_eq!(story(sqlite(seed)), story(sqlite(seed)), "seed {seed}");
    }
}

/// Charged at least once, recorded once, for every await at which a node dies.
#[test]
fn an_order_survives_a_crash_at_every_await() {
    let charged_again = Mutex::new(0);
    for_seeds(0..500, |cluster| {
        let charge = Mock::<charge>::returning(&"receipt".to_owned()).taking(Duration::from_secs(1));
        cluster.handlers(handlers()).mock(&charge).run(async |cluster| {
            let order = cluster.client().start::<order>("o-1", 700).await.unwrap();
            cluster.sleep(Duration::from_secs(60)).await;
            order.raise("approval", &"Kim").await.unwrap();
            assert_eq!(order.result().await.unwrap().unwrap(), "receipt, approved by Kim");
        });
        assert!((1..=2).contains(&charge.calls().len()), "{:?}", charge.calls());
        *charged_again.lock().unwrap() += usize::from(charge.calls().len() == 2);
    });
    assert!(charged_again.into_inner().unwrap() > 0, "some crashes interrupted the activity");
}

/// A program that is wrong after a crash at one await is found.
#[test]
fn a_crash_that_does_harm_is_found() {
    let found = catch_unwind(AssertUnwindSafe(|| {
        for_seeds(0..500, |cluster| {
            let charge = Mock::<charge>::returning(&"receipt".to_owned());
            cluster.handlers(handlers()).mock(&charge).run(async |cluster| {
                let order = cluster.client().start::<order>("o-1", 700).await.unwrap();
                let _ = order.result().await.unwrap();
            });
            assert_eq!(charge.calls().len(), 1, "charged twice");
        });
    }));
    let text = found.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("charged twice"), "{text}");
}
