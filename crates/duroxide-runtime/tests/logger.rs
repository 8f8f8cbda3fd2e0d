//! The logger that [`init_logging`] installs.
//!
//! The only test of its program, because `tracing` asks every subscriber of the process, in any thread, whether to
//! create a span.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{sync::Arc, time::Duration};

use duroxide_core::OrchestrationContext;
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, OrchestrationRegistry, OrchestrationStatus, Runtime,
    observability::{ObservabilityConfig, init_logging},
};
use duroxide_store::MemoryProvider;
use tracing::Span;

/// The span that code runs in.
fn here() -> &'static str {
    Span::current().metadata().map_or("no span", |span| span.name())
}

async fn turn(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let turn = here();
    let activity = ctx.schedule_activity("activity", "").await?;
    Ok(format!("turn: {turn}, activity: {activity}"))
}

async fn activity(_ctx: ActivityContext, _input: String) -> Result<String, String> {
    Ok(here().to_owned())
}

/// The log lines carry the ids themselves, so the logger needs no spans.
#[tokio::test]
async fn under_our_logger_no_spans_of_turns_and_activities_are_made() {
    init_logging(&ObservabilityConfig::default()).unwrap();
    let store = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder().register("activity", activity).build();
    let orchestrations = OrchestrationRegistry::builder().register("turn", turn).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    client.start_orchestration("i", "turn", "").await.unwrap();
    let status = client.wait_for_orchestration("i", Duration::from_secs(30)).await.unwrap();
    let OrchestrationStatus::Completed { output, .. } = status else { panic!("{status:?}") };
    assert_eq!(output, "turn: no span, activity: no span");
    runtime.shutdown(None).await;
}
