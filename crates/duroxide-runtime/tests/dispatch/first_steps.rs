//! The thin path: start, activity, completed.

use std::{sync::Arc, time::Duration};

use duroxide_core::OrchestrationContext;
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, OrchestrationRegistry, OrchestrationStatus, Runtime,
};
use duroxide_store::MemoryProvider;

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn an_orchestration_with_one_activity_completes() {
    let activities = ActivityRegistry::builder()
        .register("greet", |_ctx: ActivityContext, name: String| async move { Ok(format!("hello {name}")) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("hello", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity("greet", name).await
        })
        .build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    client.start_orchestration("first", "hello", "world").await.unwrap();
    let status = client.wait_for_orchestration("first", PATIENCE).await.unwrap();
    let OrchestrationStatus::Completed { output, .. } = status else { panic!("{status:?}") };
    assert_eq!(output, "hello world");
    runtime.shutdown(None).await;
}
