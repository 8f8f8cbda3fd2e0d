//! Where an activity's context comes from.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

mod fixture;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::{Provider, ProviderError},
    runtime::registry::ActivityRegistry,
};

use crate::fixture::{
    File, ended,
    intercept::{Intercept, Intercepted},
    node, output, quick_options, until,
};

/// Notes every call that reads a history.
#[derive(Default)]
struct HistoryReads(Mutex<Vec<&'static str>>);

#[async_trait]
impl Intercept for HistoryReads {
    async fn before(&self, method: &'static str) -> Result<(), ProviderError> {
        if method.starts_with("read") {
            self.0.lock().unwrap().push(method);
        }
        Ok(())
    }
}

async fn two_hundred(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let mut last = String::new();
    for n in 0..200 {
        last = ctx.schedule_activity("WhoCalls", n.to_string()).await?;
    }
    Ok(last)
}

async fn who_calls(ctx: ActivityContext, input: String) -> Result<String, String> {
    Ok(format!("{}@{} #{input}", ctx.orchestration_name(), ctx.orchestration_version()))
}

/// B21, 7.6: name and version are known without reading the history.
#[tokio::test]
async fn two_hundred_activities_read_no_history() {
    let file = File::new();
    let inner = file.open().await;
    let client = Client::new(inner.clone());
    let provider = Intercepted::new(inner, HistoryReads::default());
    let store: Arc<dyn Provider> = provider.clone();
    let activities = ActivityRegistry::builder().register("WhoCalls", who_calls).build();
    let orchestrations =
        OrchestrationRegistry::builder().register_versioned("Many", "1.2.3", two_hundred).build();
    let runtime = node(&store, activities, orchestrations, quick_options()).await;

    client.start_orchestration("i", "Many", "").await.unwrap();

    assert_eq!(output(ended(&client, "i").await), "Many@1.2.3 #199");
    runtime.shutdown(None).await;
    assert_eq!(*provider.intercept.0.lock().unwrap(), Vec::<&str>::new());
}

async fn ask_and_wait(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let caller = ctx.schedule_activity("WhoCalls", input).await?;
    ctx.set_custom_status(&caller);
    ctx.schedule_wait("go").await;
    Ok(caller)
}

async fn ask(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity("WhoCalls", input).await
}

/// 7.6, 19.1: a node forgets the name of a deleted instance. Another node started its successor under the same
/// id, so this one has not seen a turn of it.
#[tokio::test]
async fn an_activity_gets_the_orchestration_that_called_it_and_not_a_deleted_one_of_the_same_id() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    let activities = ActivityRegistry::builder().register("WhoCalls", who_calls).build();
    let old = OrchestrationRegistry::builder().register_versioned("Old", "1.0.0", ask_and_wait).build();
    let new = OrchestrationRegistry::builder().register_versioned("New", "2.0.0", ask).build();
    let only_own = RuntimeOptions { handler_capability_filter: true, ..quick_options() };
    let worker = node(&store, activities, old, only_own.clone()).await;
    client.start_orchestration("i", "Old", "").await.unwrap();
    until("the old instance waits", async || {
        client.read_execution_history("i", 1).await.is_ok_and(|history| history.len() >= 5)
    })
    .await;
    client.delete_instance("i", true).await.unwrap();

    let turns_only = RuntimeOptions { worker_concurrency: 0, ..only_own };
    let other = node(&store, ActivityRegistry::builder().build(), new, turns_only).await;
    client.start_orchestration("i", "New", "").await.unwrap();

    assert_eq!(output(ended(&client, "i").await), "New@2.0.0 #");
    worker.shutdown(None).await;
    other.shutdown(None).await;
}
