//! Where an activity's context comes from.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

mod fixture;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry,
    providers::{Provider, ProviderError},
    runtime::registry::ActivityRegistry,
};

use crate::fixture::{
    File, ended,
    intercept::{Intercept, Intercepted},
    node, output, quick_options,
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

/// B21, 7.6: name and version are known without a look into the history.
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
