//! New code arrives node by node, and nothing fails.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use duroxide::{
    Client, OrchestrationRegistry, RuntimeOptions,
    providers::{OrchestrationItem, Provider, sqlite::SqliteProvider},
    runtime::{UnregisteredBackoffConfig, registry::ActivityRegistry},
};

use crate::{
    bounced, caller, callers, echo,
    fixture::{
        File, ended, final_snapshot,
        intercept::{Intercept, Intercepted, Queue},
        node, output, quick_options, until,
    },
    new_activities, no_activities, no_orchestrations,
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
    let started = Instant::now();

    // The times of the scenario, in which deployments have a pace of their own.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let replaced_1 = node_1;
    Arc::clone(&replaced_1).shutdown(None).await;
    let node_1 = node(&stores[0], with_activity.clone(), orchestrations.clone(), options.clone()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let replaced_2 = node_2;
    Arc::clone(&replaced_2).shutdown(None).await;
    let node_2 = node(&stores[1], with_activity, orchestrations, options).await;

    let rest = Duration::from_secs(10).saturating_sub(started.elapsed());
    let status = client.wait_for_orchestration("rolling-deployment-test", rest).await;
    let result = output(status.expect("it ends within 10 s of its start"));
    assert!(result.contains("new-activity-result"), "{result}");
    assert_eq!(runs.load(Ordering::SeqCst), 1, "the activity ran");
    for runtime in [node_1, node_2, node_3, replaced_1, replaced_2] {
        let counted = final_snapshot(runtime).await;
        assert_eq!((counted.orch_failures, counted.orch_poison, counted.activity_poison), (0, 0, 0));
        assert_eq!((counted.activity_app_errors, counted.activity_infra_errors), (0, 0), "nothing failed");
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

/// Records the work that nodes without the handler fetch and give back.
#[derive(Clone, Default)]
struct Watched(Arc<Mutex<Bounces>>);

#[derive(Default)]
struct Bounces {
    /// With which attempt the instance was fetched.
    fetched: Vec<u32>,
    /// Which queue an item went back to, with a delay, and whether its attempt did not count.
    given_back: Vec<(Queue, bool, bool)>,
}

impl Intercept for Watched {
    fn fetched(&self, _item: &OrchestrationItem, attempt: u32) {
        self.0.lock().unwrap().fetched.push(attempt);
    }

    fn abandon(&self, queue: Queue, delay: Option<Duration>, ignore_attempt: bool) -> Option<Duration> {
        self.0.lock().unwrap().given_back.push((queue, delay.is_some(), ignore_attempt));
        delay
    }
}

const BOUNCES: usize = 3;

/// Two nodes without the handler take turns at the item; when it went back a few times, they leave and a node with it comes.
async fn completes_after_bounces(old: (ActivityRegistry, OrchestrationRegistry), queue: Queue) -> Vec<u32> {
    let file = File::new();
    let store = file.open().await;
    let watched = Watched::default();
    let between: Arc<dyn Provider> = Intercepted::new(Arc::clone(&store), watched.clone());
    let patient = RuntimeOptions { max_attempts: 10_000, ..quick_options() };
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("caller", "Caller", "x").await.unwrap();
    let nodes = [
        node(&between, old.0.clone(), old.1.clone(), patient.clone()).await,
        node(&between, old.0, old.1, patient.clone()).await,
    ];
    until("it bounces", async || watched.0.lock().unwrap().given_back.len() >= BOUNCES).await;
    for node in nodes {
        node.shutdown(None).await;
    }
    assert!(client.get_instance_info("caller").await.map_or(true, |info| info.status == "Running"));
    let new = node(&store, new_activities(), callers(), patient).await;
    assert_eq!(output(ended(&client, "caller").await), "new-activity-result x");
    assert_eq!(final_snapshot(new).await.activity_success, 1);
    let bounces = std::mem::take(&mut *watched.0.lock().unwrap());
    // Work that a node gives back when it leaves is not delayed and counts no attempt.
    let unregistered: Vec<_> = bounces.given_back.into_iter().filter(|(_, delayed, _)| *delayed).collect();
    assert!(unregistered.len() >= BOUNCES);
    assert!(unregistered.iter().all(|bounce| *bounce == (queue, true, false)), "{unregistered:?}");
    bounces.fetched
}

/// S0.46, S0.26: an instance is fetched by nodes without its orchestration again and again, each time with an attempt more,
/// and then by one that has it.
#[tokio::test]
async fn an_instance_that_bounced_completes_on_the_node_that_has_the_orchestration() {
    let fetched = completes_after_bounces((new_activities(), no_orchestrations()), Queue::Orchestrator).await;
    assert!(fetched.len() >= BOUNCES);
    assert_eq!(fetched[..BOUNCES], [1, 2, 3]);
}

/// S0.46, S0.28: the same for an activity.
#[tokio::test]
async fn an_activity_that_bounced_completes_on_the_node_that_has_it() {
    completes_after_bounces((no_activities(), callers()), Queue::Worker).await;
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
