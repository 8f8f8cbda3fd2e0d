//! Instances that do not move, each for another reason, inspected only by the command line.

use std::{sync::Arc, time::Duration};

use duroxide::{
    RuntimeOptions,
    prelude::*,
    providers::sqlite::SqliteProvider,
    runtime::{UnregisteredBackoffConfig, registry::ActivityRegistry},
};

use crate::fixture::{LONG, program, run, until};

/// A store with a node, and the calls that inspect it.
struct Stuck {
    folder: tempfile::TempDir,
    client: Client,
    runtime: Arc<Runtime>,
}

impl Stuck {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("stuck.db").display());
        let store = Arc::new(SqliteProvider::new(&url, None).await.unwrap());
        let client = Client::new(store.clone());
        // A node that gives up after one attempt poisons messages for which it has no handler.
        let hasty = node(&store, 1, Duration::from_millis(1)).await;
        client.start_orchestration("poisoned", "Poisonous", "").await.unwrap();
        client.wait_for_orchestration("poisoned", LONG).await.unwrap();
        hasty.shutdown(None).await;
        let runtime = node(&store, 10, Duration::from_secs(3_600)).await;
        Self { folder, client, runtime }
    }

    fn explain(&self, id: &str) -> String {
        let url = format!("sqlite:{}", self.folder.path().join("stuck.db").display());
        let ran = run(program().args(["--store", &url, "explain", id]), "");
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout
    }

    /// Waits until `explain` prints all of `texts`.
    async fn says(&self, id: &str, texts: &[&str]) {
        let said = || self.explain(id);
        let all = |said: String| texts.iter().all(|text| said.contains(text));
        let wait = tokio::time::timeout(LONG, until(async || all(said()))).await;
        assert!(wait.is_ok(), "{texts:?} is missing in {}", said());
    }
}

async fn node(store: &Arc<SqliteProvider>, max_attempts: u32, delay: Duration) -> Arc<Runtime> {
    let options = RuntimeOptions {
        max_attempts,
        unregistered_backoff: UnregisteredBackoffConfig { base_delay: delay, max_delay: delay },
        ..Default::default()
    };
    let (activities, orchestrations) = handlers();
    Runtime::start_with_options(store.clone(), activities, orchestrations, options).await
}

fn handlers() -> (ActivityRegistry, OrchestrationRegistry) {
    let activities = ActivityRegistry::builder()
        .register("Sleep", |ctx: ActivityContext, _: String| async move {
            ctx.cancelled().await;
            Ok(String::new())
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Approve", |ctx: OrchestrationContext, _: String| async move {
            Ok(ctx.schedule_wait("Approval").await)
        })
        .register("Timer", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_timer(Duration::from_secs(3 * 3_600 + 60)).await;
            Ok(String::new())
        })
        .register("Call", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity(name, "").await
        })
        .register("Gpu", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity("Sleep", "").with_tag("gpu").await
        })
        .register("Parent", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_sub_orchestration_with_id("Approve", "the-child", "").await
        })
        .register("Inbox", |ctx: OrchestrationContext, _: String| async move {
            Ok(ctx.dequeue_event("mail").await)
        })
        .build();
    (activities, orchestrations)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_is_explained() {
    let stuck = Stuck::start().await;
    let client = &stuck.client;
    for (id, name, input) in [
        ("misspelt", "Approve", ""),
        ("timer", "Timer", ""),
        ("runs", "Call", "Sleep"),
        ("parent", "Parent", ""),
        ("inbox", "Inbox", ""),
        ("tagged", "Gpu", ""),
        ("unknown", "Missing", ""),
    ] {
        client.start_orchestration(id, name, input).await.unwrap();
    }
    client.start_orchestration_versioned("versioned", "Approve", "2.0.0", "").await.unwrap();
    stuck.says("misspelt", &["waits for event `Approval`"]).await;
    client.raise_event("misspelt", "approval", "").await.unwrap();
    stuck
        .says("misspelt", &["waits for event `Approval` since", "the last raised event was `approval`"])
        .await;
    stuck.says("misspelt", &["next: `raise misspelt Approval`"]).await;
    stuck.says("timer", &["timer", "3 h"]).await;
    stuck.says("runs", &["`Sleep`", "runs on node", "attempt 1 of 10"]).await;
    stuck.says("parent", &["the-child", "`Approval`", "next: `explain the-child`"]).await;
    stuck.says("inbox", &["`mail`", "next: `enqueue inbox mail`"]).await;
    stuck.says("tagged", &["gpu", "next: `nodes`"]).await;
    stuck.says("poisoned", &["poison", "next: `history poisoned`"]).await;
    stuck.says("unknown", &["`Missing`", "hidden until"]).await;
    stuck.says("versioned", &["2.0.0"]).await;
    stuck.runtime.clone().shutdown(Some(0)).await;
}
