//! Payloads over the limit: refused by the client, or a failure of the activity or orchestration that made them.

use duroxide::{
    Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::{RuntimeLimits, registry::ActivityRegistry},
};

use crate::{
    fixture::{File, ended, failure, node, output, quick_options},
    refused,
};

const LIMIT: usize = 1_000;

fn limits() -> RuntimeLimits {
    RuntimeLimits {
        max_payload_bytes: Some(LIMIT),
        max_mailbox_messages: Some(3),
        ..RuntimeLimits::default()
    }
}

fn too_big() -> String {
    "x".repeat(LIMIT + 1)
}

/// 15.3: before anything is stored.
#[tokio::test]
async fn a_client_refuses_large_payloads() {
    let file = File::new();
    let client = Client::with_limits(file.open().await, limits());
    let text = "size (1001 bytes) exceeds limit (1000 bytes)";
    refused(client.start_orchestration("i", "Echo", too_big()).await, text);
    refused(client.raise_event("i", "e", too_big()).await, text);
    refused(client.enqueue_event("i", "q", too_big()).await, text);
    assert_eq!(client.get_queue_depths().await.unwrap().orchestrator_queue, 0);
    client.start_orchestration("i", "Echo", "x".repeat(LIMIT)).await.unwrap();
}

async fn boasts(_ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok(too_big())
}

async fn calls(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    match ctx.schedule_activity("Boasts", "").await {
        Ok(_) => Err("an oversized result came through".into()),
        Err(error) => Ok(error),
    }
}

/// 15.2: an orchestration's own output fails it; an activity's result is that activity's failure.
#[tokio::test]
async fn oversized_results_are_errors_of_their_maker() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations =
        OrchestrationRegistry::builder().register("Boasts", boasts).register("Calls", calls).build();
    let activities =
        ActivityRegistry::builder().register("Boasts", |_ctx, _input| async move { Ok(too_big()) }).build();
    let options = RuntimeOptions { limits: limits(), ..quick_options() };
    let runtime = node(&store, activities, orchestrations, options).await;
    let client = Client::new(store);
    let text = "size (1001 bytes) exceeds limit (1000 bytes)";

    client.start_orchestration("boasts", "Boasts", "").await.unwrap();
    let details = failure(ended(&client, "boasts").await);
    assert!(details.display_message().contains(text), "{details:?}");
    client.start_orchestration("calls", "Calls", "").await.unwrap();
    let caught = output(ended(&client, "calls").await);
    assert!(caught.contains(text), "{caught}");
    runtime.shutdown(None).await;
}
