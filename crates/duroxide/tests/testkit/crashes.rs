//! Nodes that die, freeze and are replaced.

use std::time::Duration;

use duroxide::{
    testing::{Mock, TestCluster},
    typed::TypedStatus,
};

use crate::order::{charge, handlers, order};

fn slow_charge() -> Mock<charge> {
    Mock::returning(&"receipt".to_owned()).taking(Duration::from_secs(10))
}

#[test]
fn an_activity_runs_again_after_a_crash() {
    let charge = slow_charge();
    TestCluster::builder().handlers(handlers()).mock(&charge).run(async |cluster| {
        let order = cluster.client().start::<order>("o-1", 700).await.unwrap();
        cluster.sleep(Duration::from_secs(5)).await;
        cluster.crash(0);
        cluster.sleep(Duration::from_secs(600)).await;
        assert!(matches!(order.status().await.unwrap(), TypedStatus::Running), "nobody runs it");
        cluster.restart(0).await;
        order.raise("approval", &"Kim").await.unwrap();
        order.result().await.unwrap().unwrap_err();
    });
    assert_eq!(charge.calls(), [700, 700]);
}

#[test]
fn another_node_takes_over_the_claims_of_a_dead_one() {
    let charge = slow_charge();
    let cluster = TestCluster::builder().handlers(handlers()).handlers(handlers()).mock(&charge);
    cluster.run(async |cluster| {
        let order = cluster.client().start::<order>("o-1", 700).await.unwrap();
        cluster.sleep(Duration::from_secs(5)).await;
        cluster.crash(0);
        cluster.crash(1);
        cluster.restart(1).await;
        order.result().await.unwrap().unwrap_err();
    });
    assert_eq!(charge.calls(), [700, 700]);
}

/// Other nodes cannot see whether a frozen node lives: its lock has to end. Its commits after that are refused.
#[test]
fn a_frozen_node_loses_its_lock_and_its_result_counts_for_nothing() {
    let charge = slow_charge();
    TestCluster::builder().handlers(handlers()).mock(&charge).run(async |cluster| {
        let order = cluster.client().start::<order>("o-1", 700).await.unwrap();
        cluster.sleep(Duration::from_secs(5)).await;
        cluster.pause(0).await;
        let other = cluster.add_node(handlers()).await;
        order.result().await.unwrap().unwrap_err();
        let ended = cluster.history("o-1").await;
        cluster.resume(0);
        cluster.sleep(Duration::from_secs(600)).await;
        assert_eq!(cluster.history("o-1").await.len(), ended.len());
        cluster.crash(other);
    });
    assert_eq!(charge.calls(), [700, 700]);
}

#[test]
fn an_upgraded_node_has_the_new_code() {
    TestCluster::builder().handlers(handlers()).run(async |cluster| {
        let first = cluster.client().start::<order>("o-1", 700).await.unwrap();
        cluster.sleep(Duration::from_secs(5)).await;
        cluster.upgrade(0, v2::handlers()).await;
        let second = cluster.client().start::<v2::order>("o-2", 700).await.unwrap();
        second.result().await.unwrap().unwrap();
        first.result().await.unwrap().unwrap_err();
    });
}

/// The same order, without an approval.
mod v2 {
    use duroxide::{OrchestrationContext, typed::Handlers};

    #[duroxide::orchestration(name = "order", version = "2.0.0")]
    pub(super) async fn order(ctx: OrchestrationContext, amount: u64) -> Result<String, String> {
        ctx.activity::<crate::order::charge>(amount).await.map_err(|error| error.to_string())
    }

    pub(super) fn handlers() -> Handlers {
        crate::order::handlers().orchestration::<order>()
    }
}
