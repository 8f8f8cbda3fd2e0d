//! Virtual time: it jumps when nothing can run.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use duroxide::testing::{Mock, TestCluster};

use crate::order::{DEADLINE, charge, handlers, nightly, order};

#[test]
fn a_deadline_in_two_minutes_is_tested_in_no_time() {
    TestCluster::builder().handlers(handlers()).run(async |cluster| {
        let order = cluster.client().start::<order>("o-1", 700).await.unwrap();
        let ended = order.result().await.unwrap();
        assert_eq!(ended.unwrap_err().to_string(), "nobody approved");
        assert_eq!(cluster.elapsed(), DEADLINE);
    });
}

#[test]
fn an_approval_before_the_deadline_is_in_time() {
    TestCluster::builder().handlers(handlers()).run(async |cluster| {
        let order = cluster.client().start::<order>("o-1", 700).await.unwrap();
        cluster.sleep(DEADLINE - Duration::from_secs(1)).await;
        order.raise("approval", &"Kim").await.unwrap();
        assert_eq!(order.result().await.unwrap().unwrap(), "receipt of 700 for o-1, approved by Kim");
    });
}

/// A jump over a day takes few steps: the periodic tasks of a node do not interrupt it. Audits read the store and are
/// off, so that only such steps are counted.
#[test]
fn a_loop_over_thirty_days_takes_few_steps() {
    let cluster = TestCluster::builder().handlers(handlers()).options(|options| options.audit.fraction = 0.0);
    cluster.run(async |cluster| {
        let nights = cluster.client().start::<nightly>("n", 30).await.unwrap();
        assert_eq!(nights.result().await.unwrap().unwrap(), "done");
        assert_eq!(cluster.elapsed(), Duration::from_secs(30 * 86_400));
        assert!(cluster.awaits() < 1_000, "{} awaits", cluster.awaits());
    });
}

/// Real activities that sleep do so in virtual time.
#[test]
fn activities_take_virtual_time() {
    let slow = Mock::<charge>::returning(&"receipt".to_owned()).taking(Duration::from_secs(90));
    TestCluster::builder().handlers(handlers()).mock(&slow).run(async |cluster| {
        let order = cluster.client().start::<order>("o-1", 700).await.unwrap();
        order.result().await.unwrap().unwrap_err();
        assert_eq!(cluster.elapsed(), Duration::from_secs(90) + DEADLINE);
    });
}

#[test]
fn a_test_that_waits_for_ever_fails_with_the_open_instances() {
    let waiting = catch_unwind(AssertUnwindSafe(|| {
        let cluster = TestCluster::builder().handlers(handlers()).time_limit(Duration::from_secs(86_400));
        cluster.run(async |cluster| {
            let nights = cluster.client().start::<nightly>("n", 400).await.unwrap();
            let _ = nights.result().await;
        });
    }));
    let text = waiting.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(*text, "the test has not ended within 1 days of virtual time; open instances: [\"n\"]");
}
