//! A deadline that passes while no node runs counts as if one had been running.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

mod fixture;

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use duroxide::{
    Client, Either2, EventKind, OrchestrationContext, OrchestrationRegistry, providers::Provider,
    runtime::registry::ActivityRegistry,
};
use duroxide_store::MemoryProvider;
use fixture::{File, ended, node, output, quick_options, recorded, until};

async fn approval(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let deadline = ctx.schedule_timer(Duration::from_millis(300));
    let approved = ctx.schedule_wait("Approved");
    Ok(match ctx.select2(deadline, approved).await {
        Either2::First(()) => "too late".to_owned(),
        Either2::Second(by) => format!("approved by {by}"),
    })
}

/// Runs nodes on one store, one after the other.
struct Nodes {
    store: Arc<dyn Provider>,
    client: Client,
}

impl Nodes {
    fn new(store: Arc<dyn Provider>) -> Self {
        Self { client: Client::new(Arc::clone(&store)), store }
    }

    async fn start(&self) -> Arc<duroxide::runtime::Runtime> {
        let orchestrations = OrchestrationRegistry::builder().register("Approval", approval).build();
        node(&self.store, ActivityRegistry::builder().build(), orchestrations, quick_options()).await
    }

    /// Runs the first turn of an instance and ends the node. Returns the deadline in milliseconds.
    async fn begin(&self, instance: &str) -> u64 {
        let first = self.start().await;
        self.client.start_orchestration(instance, "Approval", "").await.unwrap();
        recorded(&self.client, instance, |event| matches!(event.kind, EventKind::ExternalSubscribed { .. }))
            .await;
        first.shutdown(None).await;
        let history = self.client.read_execution_history(instance, 1).await.unwrap();
        let deadlines = history.iter().filter_map(|event| match event.kind {
            EventKind::TimerCreated { fire_at_ms } => Some(fire_at_ms),
            _ => None,
        });
        deadlines.min().expect("a timer was created")
    }

    async fn finish(&self, instance: &str) -> String {
        let second = self.start().await;
        let result = output(ended(&self.client, instance).await);
        second.shutdown(None).await;
        result
    }
}

async fn passed(deadline_ms: u64) {
    let now_ms = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    until("the deadline passes", async || now_ms() > u128::from(deadline_ms)).await;
}

async fn approve_after_the_deadline(store: Arc<dyn Provider>) {
    let nodes = Nodes::new(store);
    passed(nodes.begin("a").await).await;
    nodes.client.raise_event("a", "Approved", "Ada").await.unwrap();
    assert_eq!(nodes.finish("a").await, "too late");
}

/// The approval may come late on a slow machine; then there is nothing to see, and it is tried again.
async fn approve_before_the_deadline(store: Arc<dyn Provider>) {
    let nodes = Nodes::new(store);
    for attempt in 0.. {
        let instance = format!("a{attempt}");
        let deadline_ms = nodes.begin(&instance).await;
        nodes.client.raise_event(&instance, "Approved", "Ada").await.unwrap();
        let raised_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        passed(deadline_ms).await;
        let result = nodes.finish(&instance).await;
        if raised_at < u128::from(deadline_ms) {
            assert_eq!(result, "approved by Ada");
            return;
        }
    }
}

/// 2.1
#[tokio::test]
async fn an_approval_after_the_deadline_loses_on_sqlite() {
    let file = File::new();
    approve_after_the_deadline(file.open().await).await;
}

/// 2.1
#[tokio::test]
async fn an_approval_after_the_deadline_loses_in_memory() {
    approve_after_the_deadline(Arc::new(MemoryProvider::new())).await;
}

/// 2.1
#[tokio::test]
async fn an_approval_before_the_deadline_wins_though_both_wait_for_a_node() {
    let file = File::new();
    approve_before_the_deadline(file.open().await).await;
    approve_before_the_deadline(Arc::new(MemoryProvider::new())).await;
}
