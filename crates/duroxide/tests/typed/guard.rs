//! The guard at run time: contexts outside of their turn, and waits without an open call.

use std::{sync::Mutex, time::Duration};

use duroxide::prelude::*;
use tokio::task::JoinHandle;

use super::{fixture::until, store};

/// The task that the orchestration spawned, for the test to wait for.
static TASK: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

#[duroxide::orchestration]
async fn spawns(ctx: OrchestrationContext) -> Result<String, DecodeError> {
    let beside = ctx.clone();
    #[duroxide(allow_nondeterminism = "the mistake that this test is about")]
    let task = tokio::spawn(async move { beside.set_custom_status("from a task") });
    TASK.lock().unwrap().replace(task);
    ctx.event("go").await
}

#[duroxide::orchestration]
async fn sleeps(_ctx: OrchestrationContext) -> Result<(), String> {
    #[duroxide(allow_nondeterminism = "the mistake that this test is about")]
    tokio::time::sleep(Duration::from_millis(1)).await;
    Ok(())
}

/// The task panics with the reason, and the instance has no status by chance.
#[tokio::test]
async fn a_context_in_a_spawned_task_is_refused() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store).orchestration::<spawns>().build().await.unwrap();
    let handle = client.start::<spawns>("i", ()).await.unwrap();
    until("the orchestration runs", async || TASK.lock().unwrap().is_some()).await;
    let task = TASK.lock().unwrap().take().unwrap();
    let reason = task.await.unwrap_err().into_panic();
    let text = reason.downcast_ref::<String>().unwrap();
    assert!(text.contains("orchestration 'spawns' (instance 'i') was used outside of its turn"), "{text}");
    handle.raise("go", &"gone").await.unwrap();
    assert_eq!(handle.result().await.unwrap().unwrap(), "gone");
    let history = client.read_execution_history("i", 1).await.unwrap();
    assert!(history.iter().all(|event| event.kind.wire_name() != "CustomStatusUpdated"));
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn an_orchestration_that_sleeps_fails_at_once_and_says_why() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store).orchestration::<sleeps>().build().await.unwrap();
    let error = client.start_and_wait::<sleeps>("i", ()).await.unwrap().unwrap_err();
    let CallError::System(details) = error else { panic!("{error:?}") };
    let text = details.display_message();
    assert!(text.contains("orchestration 'sleeps' waits, before any of its calls resolved"), "{text}");
    assert!(text.contains("Use schedule_timer in place of a sleep"), "{text}");
    runtime.shutdown(None).await;
}
