//! Starts that meet an instance that is already there (2.3, 6.5, 6.7).

use std::sync::Arc;

use duroxide_core::OrchestrationContext;
use duroxide_provider::Provider;
use duroxide_runtime::{Client, OrchestrationRegistry};
use duroxide_store::MemoryProvider;

use crate::{
    faults::{faulty, plain_faulty},
    scene::{Counter, brisk, echo, kinds, output, run, start},
};

/// `waits` ends with the event `go`; `adopts` calls a child under the id `taken`.
fn family() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("waits", |ctx: OrchestrationContext, _input: String| async move {
            Ok(ctx.schedule_wait("go").await)
        })
        .register("adopts", |ctx: OrchestrationContext, input: String| async move {
            match ctx.schedule_sub_orchestration_with_id("waits", "taken", input).await {
                Ok(output) => Ok(format!("adopted: {output}")),
                Err(reason) => Ok(format!("refused: {reason}")),
            }
        })
        .register("counts", |ctx: OrchestrationContext, input: String| async move {
            match input.len() {
                5 => Ok(format!("{} executions", ctx.execution_id())),
                _ => ctx.continue_as_new(format!("{input}x")).await,
            }
        })
        .build()
}

/// 6.5: running, and then terminal.
#[tokio::test]
async fn a_child_under_a_taken_id_is_refused_and_its_parent_told() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let runtime = start(&store, echo(&Counter::default()), family(), brisk()).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("taken", "waits", "first").await.unwrap();
    let refused = "refused: sub-orchestration instance id 'taken' already exists";
    assert_eq!(run(&client, "p-1", "adopts").await, refused);
    client.raise_event("taken", "go", "gone").await.unwrap();
    assert_eq!(output(&client, "taken").await, "gone", "the one that was there goes on undisturbed");
    assert_eq!(run(&client, "p-2", "adopts").await, format!("{refused} and is terminal"));
    runtime.shutdown(None).await;
}

/// I16, 2.3, 20.1
#[tokio::test]
async fn a_second_start_of_an_instance_changes_nothing() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("i", "waits", "first").await.unwrap();
    client.start_orchestration("i", "counts", "second").await.unwrap();
    let (counted, faults) = faulty(Arc::clone(&store));
    let counted: Arc<dyn Provider> = counted;
    let runtime = start(&counted, echo(&Counter::default()), family(), brisk()).await;
    client.start_orchestration("i", "counts", "third").await.unwrap();
    // The first turn opens the wait; what comes from now on is for a later one.
    faults.until_reached("commit_round", 1).await;
    client.raise_event("i", "go", "done").await.unwrap();
    assert_eq!(output(&client, "i").await, "done");
    let expected = ["OrchestrationStarted", "ExternalSubscribed", "ExternalEvent", "OrchestrationCompleted"];
    assert_eq!(kinds(&store, "i").await, expected);
    runtime.shutdown(None).await;
}

/// 8.1 and 8.5: with rounds that hold the successor, and with a provider that stores no rounds.
#[tokio::test]
async fn continue_as_new_goes_on_with_and_without_stored_rounds() {
    let stored: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (plain, _) = plain_faulty(Arc::new(MemoryProvider::new()));
    let plain: Arc<dyn Provider> = plain;
    for store in [stored, plain] {
        let runtime = start(&store, echo(&Counter::default()), family(), brisk()).await;
        let client = Client::new(Arc::clone(&store));
        assert_eq!(run(&client, "i", "counts").await, "4 executions");
        for execution in 1..=3 {
            let history = store.read_with_execution("i", execution).await.unwrap();
            assert!(history.last().unwrap().is_terminal());
        }
        runtime.shutdown(None).await;
    }
}
