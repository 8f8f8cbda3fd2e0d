//! S0.45: a deployment that takes three seconds, node by node, while work waits for the new handler.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const NEW_RESULT: &str = "new-activity-result";

/// How a fleet is configured.
struct Fleet {
    store: Arc<dyn Provider>,
    options: RuntimeOptions,
    runs: Arc<AtomicUsize>,
}

impl Fleet {
    fn new(max_attempts: u32, base_delay_ms: u64, max_delay_ms: u64) -> Self {
        let options = RuntimeOptions {
            max_attempts,
            dispatcher_min_poll_interval: Duration::from_millis(10),
            unregistered_backoff: UnregisteredBackoffConfig {
                base_delay: Duration::from_millis(base_delay_ms),
                max_delay: Duration::from_millis(max_delay_ms),
            },
            ..Default::default()
        };
        Self { store: Arc::new(MemoryProvider::new()), options, runs: Arc::default() }
    }

    async fn old_node(&self) -> Arc<Runtime> {
        self.node(no_activities()).await
    }

    async fn new_node(&self) -> Arc<Runtime> {
        let runs = Arc::clone(&self.runs);
        let new_activity = move |_ctx, _input| {
            runs.fetch_add(1, Ordering::SeqCst);
            async { Ok(NEW_RESULT.to_owned()) }
        };
        self.node(ActivityRegistry::builder().register("NewActivity", new_activity).build()).await
    }

    async fn node(&self, activities: ActivityRegistry) -> Arc<Runtime> {
        let orchestrations = OrchestrationRegistry::builder()
            .register("RollingDeployOrch", |ctx: OrchestrationContext, input| async move {
                ctx.schedule_activity("NewActivity", input).await
            })
            .build();
        Runtime::start_with_options(Arc::clone(&self.store), activities, orchestrations, self.options.clone())
            .await
    }
}

async fn replace(old: Arc<Runtime>, fleet: &Fleet) -> Arc<Runtime> {
    old.shutdown(None).await;
    fleet.new_node().await
}

/// Nodes 1 and 2 lack the new activity, node 3 has it; 1 and 2 are replaced while the instance runs.
async fn roll_out(fleet: Fleet) {
    let (first, second, third) = tokio::join!(fleet.old_node(), fleet.old_node(), fleet.new_node());
    let client = Client::new(Arc::clone(&fleet.store));
    client.start_orchestration("rolling-deployment-test", "RollingDeployOrch", "x").await.unwrap();
    let deployment = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let first = replace(first, &fleet).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        [first, replace(second, &fleet).await, third]
    };
    let (output, nodes) = tokio::join!(output(&client, "rolling-deployment-test"), deployment);
    assert!(output.contains(NEW_RESULT), "{output}");
    assert_eq!(fleet.runs.load(Ordering::SeqCst), 1);
    for node in nodes {
        assert_eq!(node.metrics_snapshot().unwrap().orch_failures, 0);
        node.shutdown(None).await;
    }
}

/// S0.4, S0.45
#[tokio::test]
async fn e2e_rolling_deployment_three_nodes() {
    roll_out(Fleet::new(10, 100, 500)).await;
}

/// S0.45
#[tokio::test]
async fn e2e_rolling_deployment_three_nodes_with_room_for_bad_luck() {
    roll_out(Fleet::new(50, 50, 200)).await;
}
