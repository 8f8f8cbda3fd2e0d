//! The shortest path: start, activity, completed.

use std::{sync::Arc, time::Duration};

use duroxide_core::OrchestrationContext;
use duroxide_provider::Provider;
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, OrchestrationRegistry, OrchestrationStatus, Runtime,
};
use duroxide_store::MemoryProvider;

use crate::scene::{brisk, callers, run, start};

const WAIT_MAX: Duration = Duration::from_secs(30);

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
    let status = client.wait_for_orchestration("first", WAIT_MAX).await.unwrap();
    let OrchestrationStatus::Completed { output, .. } = status else { panic!("{status:?}") };
    assert_eq!(output, "hello world");
    runtime.shutdown(None).await;
}

/// 7.6: an activity gets its attempt, so that it can look for the effects of earlier attempts.
#[tokio::test]
async fn an_activity_knows_its_attempt() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder()
        .register("echo", |ctx: ActivityContext, _input: String| async move {
            if ctx.attempt() == 1 {
                std::future::pending::<()>().await;
            }
            Ok(ctx.attempt().to_string())
        })
        .build();
    let mut options = brisk();
    options.activity_execution_timeout = Some(Duration::from_millis(50));
    options.activity_cancellation_grace_period = Duration::ZERO;
    let runtime = start(&store, activities, callers(), options).await;
    let client = Client::new(Arc::clone(&store));
    assert_eq!(run(&client, "i", "one").await, "2");
    runtime.shutdown(None).await;
}
