//! New code arrives node by node, and nothing fails.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use duroxide::{
    Client, OrchestrationRegistry, RuntimeOptions,
    providers::{Provider, sqlite::SqliteProvider},
    runtime::{UnregisteredBackoffConfig, registry::ActivityRegistry},
};

use crate::{
    bounced, caller, callers, echo,
    fixture::{File, ended, final_snapshot, node, output, quick_options},
    new_activities, no_activities,
};

/// The nodes' settings in the scenario.
fn options(max_attempts: u32, base_ms: u64, cap_ms: u64) -> RuntimeOptions {
    RuntimeOptions {
        dispatcher_min_poll_interval: Duration::from_millis(10),
        max_attempts,
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(base_ms),
            max_delay: Duration::from_millis(cap_ms),
        },
        ..RuntimeOptions::default()
    }
}

/// Nodes 1 and 2 lack `NewActivity`, node 3 has it; then 1 and 2 are replaced, one after the other.
async fn deploy_over_three_nodes(stores: [Arc<dyn Provider>; 3], options: RuntimeOptions) {
    let orchestrations = OrchestrationRegistry::builder().register("RollingDeployOrch", caller).build();
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let with_activity = ActivityRegistry::builder()
        .register("NewActivity", move |_ctx, input| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { Ok(format!("new-activity-result {input}")) }
        })
        .build();
    let client = Client::new(stores[2].clone());

    let node_1 = node(&stores[0], no_activities(), orchestrations.clone(), options.clone()).await;
    let node_2 = node(&stores[1], no_activities(), orchestrations.clone(), options.clone()).await;
    let node_3 = node(&stores[2], with_activity.clone(), orchestrations.clone(), options.clone()).await;
    client.start_orchestration("rolling-deployment-test", "RollingDeployOrch", "x").await.unwrap();

    // The times of the scenario, in which deployments have a pace of their own.
    tokio::time::sleep(Duration::from_secs(2)).await;
    node_1.shutdown(None).await;
    let node_1 = node(&stores[0], with_activity.clone(), orchestrations.clone(), options.clone()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    node_2.shutdown(None).await;
    let node_2 = node(&stores[1], with_activity, orchestrations, options).await;

    let result = output(ended(&client, "rolling-deployment-test").await);
    assert!(result.contains("new-activity-result"), "{result}");
    assert!(runs.load(Ordering::SeqCst) >= 1);
    for runtime in [node_1, node_2, node_3] {
        runtime.shutdown(None).await;
    }
}

/// S0.4, S0.45.
#[tokio::test]
async fn e2e_rolling_deployment_three_nodes() {
    let store: Arc<dyn Provider> = Arc::new(SqliteProvider::new_in_memory().await.unwrap());
    deploy_over_three_nodes([store.clone(), store.clone(), store], options(10, 100, 500)).await;
}

/// S0.45, the variant that must never fail: each node opens the file for itself.
#[tokio::test]
async fn e2e_rolling_deployment_three_nodes_on_a_file() {
    let file = File::new();
    let stores = [file.open().await, file.open().await, file.open().await];
    deploy_over_three_nodes(stores, options(50, 50, 200)).await;
}

/// S0.46: the item is fetched by nodes without the handler again and again, and then by one that has it.
#[tokio::test]
async fn an_item_that_bounced_completes_on_the_node_that_has_the_handler() {
    let file = File::new();
    let store = file.open().await;
    let patient = RuntimeOptions { max_attempts: 10_000, ..quick_options() };
    let old = node(&store, no_activities(), callers(), patient.clone()).await;
    let client = Client::new(store.clone());
    client.start_orchestration("caller", "Caller", "x").await.unwrap();
    bounced(&old, 3).await;
    let new = node(&store, new_activities(), callers(), patient).await;

    assert_eq!(output(ended(&client, "caller").await), "new-activity-result x");
    old.shutdown(None).await;
    assert_eq!(final_snapshot(new).await.activity_success, 1);
}

/// S0.A3: a new version of an orchestration is deployed node by node.
#[tokio::test]
async fn a_new_version_of_an_orchestration_is_deployed_node_by_node() {
    let file = File::new();
    let store = file.open().await;
    let patient = RuntimeOptions { max_attempts: 10_000, ..quick_options() };
    let v1 = || OrchestrationRegistry::builder().register_versioned("Echo", "1.0.0", echo);
    let old = node(&store, no_activities(), v1().build(), patient.clone()).await;
    let client = Client::new(store.clone());

    client.start_orchestration_versioned("old", "Echo", "1.0.0", "x").await.unwrap();
    client.start_orchestration_versioned("new", "Echo", "2.0.0", "y").await.unwrap();
    assert_eq!(output(ended(&client, "old").await), "x");
    bounced(&old, 3).await;
    let both =
        v1().register_versioned("Echo", "2.0.0", |_ctx, input| async move { Ok(format!("v2 {input}")) });
    let new = node(&store, no_activities(), both.build(), patient).await;

    assert_eq!(output(ended(&client, "new").await), "v2 y");
    assert_eq!(client.get_instance_info("new").await.unwrap().orchestration_version, "2.0.0");
    old.shutdown(None).await;
    new.shutdown(None).await;
}
