//! Starts of an instance that already exists (2.3, 6.5, 6.7).

use std::{sync::Arc, time::Duration};

use duroxide_core::{Event, EventKind, OrchestrationContext};
use duroxide_provider::{ExecutionMetadata, Provider, Round};
use duroxide_runtime::{Client, OrchestrationRegistry, RuntimeOptions, UnregisteredBackoffConfig};
use duroxide_store::MemoryProvider;

use crate::{
    WAIT_MAX,
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
async fn a_child_under_a_taken_id_is_refused_and_its_parent_gets_the_error() {
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

fn event(event_id: u64, kind: EventKind) -> Event {
    Event::with_event_id(event_id, "taken", 1, None, kind)
}

/// An instance `taken` that continued as new. The start of its successor is lost.
async fn continued(store: &Arc<dyn Provider>) {
    Client::new(Arc::clone(store)).start_orchestration("taken", "counts", "").await.unwrap();
    let (_, token, _) = store.fetch_orchestration_item(WAIT_MAX, WAIT_MAX, None).await.unwrap().unwrap();
    let started = EventKind::OrchestrationStarted {
        name: "counts".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let round = Round {
        execution_id: 1,
        history_delta: vec![
            event(1, started),
            event(2, EventKind::OrchestrationContinuedAsNew { input: "next".to_owned() }),
        ],
        metadata: ExecutionMetadata {
            status: Some("ContinuedAsNew".to_owned()),
            output: Some("next".to_owned()),
            orchestration_name: Some("counts".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            ..ExecutionMetadata::default()
        },
        ..Round::default()
    };
    store.commit_round(&token, round).await.unwrap();
}

/// 6.5, 6.6, 8.6: a start that collides with an execution that waits for its successor does not start that successor.
/// When the successor fails, the parent of the colliding start is notified.
#[tokio::test]
async fn a_parent_that_collides_with_a_failed_successor_gets_the_error() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    continued(&store).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("p", "adopts", "in").await.unwrap();
    let options = RuntimeOptions {
        max_attempts: 3,
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(50),
            max_delay: Duration::from_millis(50),
        },
        ..brisk()
    };
    let runtime = start(&store, echo(&Counter::default()), family(), options).await;
    let refused = "refused: sub-orchestration instance id 'taken' already exists";
    assert_eq!(output(&client, "p").await, refused);
    let successor: Vec<_> = store.read_with_execution("taken", 2).await.unwrap();
    assert_eq!(successor.len(), 2, "a start and a failure: {successor:?}");
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
    // The first turn opens the wait; later messages belong to a later turn.
    faults.until_reached("commit_round", 1).await;
    client.raise_event("i", "go", "done").await.unwrap();
    assert_eq!(output(&client, "i").await, "done");
    let expected = ["OrchestrationStarted", "ExternalSubscribed", "ExternalEvent", "OrchestrationCompleted"];
    assert_eq!(kinds(&store, "i").await, expected);
    runtime.shutdown(None).await;
}

/// 8.1 and 8.5: with rounds that contain the successor, and with a provider that stores no rounds.
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
