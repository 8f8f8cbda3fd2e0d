//! Instances that do not move, each for another reason, and what [`Client::explain`] says of them.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(clippy::indexing_slicing, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod nobody_can;
mod waiting;

use std::{sync::Arc, time::Duration};

use duroxide::{
    ActivityContext, Client, ClientError, Explanation, OrchestrationContext, OrchestrationRegistry,
    RuntimeOptions,
    providers::Provider,
    runtime::{Runtime, UnregisteredBackoffConfig, registry::ActivityRegistry},
};
use fixture::{File, node, quick_options, until};

/// A store, a node on it, and a client.
struct Stage {
    _file: File,
    store: Arc<dyn Provider>,
    client: Client,
}

impl Stage {
    async fn new() -> Self {
        let file = File::new();
        let store = file.open().await;
        Self { _file: file, client: Client::new(Arc::clone(&store)), store }
    }

    async fn node(&self, options: RuntimeOptions) -> Arc<Runtime> {
        node(&self.store, activities(), orchestrations(), options).await
    }

    /// The name of the only node.
    async fn node_name(&self) -> String {
        let [node] = <[_; 1]>::try_from(self.client.list_nodes().await.unwrap()).unwrap();
        node.name
    }

    /// Explains until a line says this; the lines.
    async fn explained(&self, instance: &str, text: &str) -> Vec<String> {
        let mut last = Vec::new();
        until(text, async || {
            last = self.client.explain(instance).await.unwrap().lines();
            last.iter().any(|line| line.contains(text))
        })
        .await;
        last
    }
}

fn activities() -> ActivityRegistry {
    let endless = |ctx: ActivityContext, _input: String| async move {
        ctx.cancelled().await;
        Err("cancelled".to_owned())
    };
    ActivityRegistry::builder().register("Charge", endless).build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Approved", |ctx: OrchestrationContext, _| async move {
            Ok(ctx.schedule_wait("Approval").await)
        })
        .register("Slept", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_timer(Duration::from_secs(3600)).await;
            Ok(String::new())
        })
        .register("Charged", |ctx: OrchestrationContext, name| async move {
            ctx.schedule_activity(name, "42").await
        })
        .register("Rendered", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity("Charge", "42").with_tag("gpu").await
        })
        .register("Delegated", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_sub_orchestration("Approved", "").await
        })
        .build()
}

/// A node that gives back what it does not have for a minute.
fn patient() -> RuntimeOptions {
    let minute = Duration::from_secs(60);
    RuntimeOptions {
        unregistered_backoff: UnregisteredBackoffConfig { base_delay: minute, max_delay: minute },
        ..quick_options()
    }
}

/// The fields of the answer, beside its findings.
#[tokio::test]
async fn an_explanation_names_its_instance() {
    let stage = Stage::new().await;
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Approved", "").await.unwrap();
    stage.explained("order-1", "waits for event").await;
    let Explanation { instance, name, version, execution_id, status, .. } =
        stage.client.explain("order-1").await.unwrap();
    assert_eq!((instance.as_str(), name.as_str(), version.as_str()), ("order-1", "Approved", "1.0.0"));
    assert_eq!((execution_id, status.as_str()), (1, "Running"));
    let unknown = stage.client.explain("order-2").await.unwrap_err();
    assert!(matches!(unknown, ClientError::InstanceNotFound { instance_id } if instance_id == "order-2"));
    runtime.shutdown(None).await;
}
