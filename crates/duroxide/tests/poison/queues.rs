//! Queues full of rows that no node can process.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, PoisonMessageType,
    providers::{DeadLetter, Provider, WorkItem},
    runtime::registry::ActivityRegistry,
};
use tracing::Level;

use crate::{
    fixture::{File, ended, failure, logs::Logs, node, output, recorded, until},
    handlers::{MAX_ATTEMPTS, one, options, poison},
};

const NONSENSE: &str = r#"{"Nonsense":1}"#;
const HEALTHY: usize = 100;

/// S1.20, S1.23, S1.25, S1.33, S1.36, S1.37, 16.10, 16.11: poison of every kind is first in both queues. Each is
/// attempted as often as the rules say and no more; the healthy ones behind it need no more runs and no more rounds than
/// without it.
#[tokio::test]
async fn poison_of_every_kind_costs_healthy_work_neither_runs_nor_rounds() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(Arc::clone(&store));
    let runs: Arc<Mutex<Vec<String>>> = Arc::default();
    poison_of_every_kind(&file, &store, &client).await;
    for number in 0..HEALTHY {
        client.start_orchestration(&format!("healthy-{number}"), "One", number.to_string()).await.unwrap();
    }
    let (logs, _guard) = Logs::capture();
    let runtime = node(&store, echo(&runs), orchestrations(), options()).await;
    for number in 0..HEALTHY {
        assert_eq!(output(ended(&client, &format!("healthy-{number}")).await), number.to_string());
    }

    let mut ran = std::mem::take(&mut *runs.lock().unwrap());
    ran.sort_by_key(|number| number.parse::<usize>().unwrap());
    let started: Vec<String> = (0..HEALTHY).map(|number| number.to_string()).collect();
    assert_eq!(ran, started, "each ran once");
    let (kind, _) = poison(failure(ended(&client, "unregistered").await));
    assert_eq!(kind, PoisonMessageType::Orchestration { instance: "unregistered".into(), execution_id: 1 });
    let (kind, message) = poison(failure(ended(&client, "calls nobody").await));
    assert!(matches!(kind, PoisonMessageType::Activity { activity_id: 2, .. }), "{kind:?}");
    assert!(message.contains("input for nobody"), "S1.35: {message}");
    let (kind, message) = poison(failure(ended(&client, "unreadable").await));
    let PoisonMessageType::FailedDeserialization { error, .. } = kind else { panic!("{kind:?}") };
    assert_eq!(message, error, "S1.12: for undecodable history the decode error");
    let letters = dead_letters(&client, 3).await;
    assert_eq!(letters["nonsense"], (NONSENSE.to_owned(), MAX_ATTEMPTS + 1));
    assert_eq!(letters["nonsense activity"], (NONSENSE.to_owned(), MAX_ATTEMPTS + 1));
    assert_eq!(letters["misplaced"].1, 1, "S1.25: nothing is gained by trying it again");
    runtime.shutdown(None).await;

    let lines = logs.with("unexpected WorkItem in Worker dispatcher");
    assert_eq!(lines.iter().map(|line| line.level).collect::<Vec<_>>(), [Level::ERROR]);
    let lines = logs.with("Activity message exceeded max attempts, marking as poison");
    assert_eq!(lines.len(), 1, "S1.23: one warning");
    assert_eq!(lines[0].field("activity_id"), "2");
    for instance in file.snapshot().instances {
        if instance.instance.starts_with("healthy-") {
            assert_eq!(instance.executions[0].turns, 2, "{}: a start and a result", instance.instance);
        }
        if instance.instance == "ghost" {
            assert_eq!(instance.messages.iter().map(|message| message.attempt_count).max(), Some(0));
        }
    }
}

/// Fills an empty store before a runtime opens it.
async fn poison_of_every_kind(file: &File, store: &Arc<dyn Provider>, client: &Client) {
    unreadable_history(file, store, client).await;
    client.cancel_instance("ghost", "nobody is there").await.unwrap();
    client.raise_event("ghost", "nothing", "").await.unwrap();
    client.start_orchestration("nonsense", "One", "").await.unwrap();
    damage_messages(file, "nonsense");
    for instance in ["nonsense activity", "misplaced"] {
        store.enqueue_for_worker(work_for(instance, 7)).await.unwrap();
    }
    damage_activities(file, "nonsense activity", NONSENSE);
    let misplaced = WorkItem::CancelInstance { instance: "misplaced".into(), reason: "lost its way".into() };
    damage_activities(file, "misplaced", &serde_json::to_string(&misplaced).unwrap());
    client.start_orchestration("unregistered", "NoSuchOrchestration", "").await.unwrap();
    client.start_orchestration("calls nobody", "CallsNobody", "input for nobody").await.unwrap();
}

/// An instance that waits, whose history is then damaged, and which is then woken.
async fn unreadable_history(file: &File, store: &Arc<dyn Provider>, client: &Client) {
    let runtime = node(store, echo(&Arc::default()), orchestrations(), options()).await;
    client.start_orchestration("unreadable", "Waits", "").await.unwrap();
    recorded(client, "unreadable", |event| event.event_id == 2).await;
    runtime.shutdown(None).await;
    file.overwrite_event("unreadable", 2, NONSENSE);
    client.raise_event("unreadable", "signal", "").await.unwrap();
}

/// B6: undecodable rows are first in each queue and in the batch of a running instance. They become dead letters, never
/// deleted; mended by an operator they are processed; one that is of no use is discarded.
#[tokio::test]
async fn undecodable_rows_become_dead_letters_and_can_be_repaired() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(Arc::clone(&store));
    let runtime = node(&store, echo(&Arc::default()), orchestrations(), options()).await;
    client.start_orchestration("waiting", "Waits", "").await.unwrap();
    recorded(&client, "waiting", |event| event.event_id == 2).await;
    runtime.shutdown(None).await;

    client.raise_event("waiting", "signal", "damaged").await.unwrap();
    damage_messages(&file, "waiting");
    client.start_orchestration("mended", "One", "lost").await.unwrap();
    damage_messages(&file, "mended");
    store.enqueue_for_worker(work_for("nobody", 7)).await.unwrap();
    damage_activities(&file, "nobody", NONSENSE);
    for number in 0..20 {
        client.start_orchestration(&format!("healthy-{number}"), "One", number.to_string()).await.unwrap();
    }
    client.raise_event("waiting", "signal", "whole").await.unwrap();
    let runtime = node(&store, echo(&Arc::default()), orchestrations(), options()).await;

    for number in 0..20 {
        assert_eq!(output(ended(&client, &format!("healthy-{number}")).await), number.to_string());
    }
    assert_eq!(output(ended(&client, "waiting").await), "whole", "its batch goes on without the damaged row");
    let letters = dead_letters(&client, 3).await;
    for instance in ["waiting", "mended", "nobody"] {
        assert_eq!(letters[instance], (NONSENSE.to_owned(), MAX_ATTEMPTS + 1), "{instance}");
    }

    let start = WorkItem::StartOrchestration {
        instance: "mended".into(),
        orchestration: "One".into(),
        input: "found again".into(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    let letter = letter_for(&client, "mended").await.unwrap();
    let mended = "UPDATE dead_letter SET payload = ?1 WHERE id = ?2";
    let start = serde_json::to_string(&start).unwrap();
    assert_eq!(file.connect().execute(mended, (start, &letter.id)).unwrap(), 1);
    client.retry_dead_letter(&letter.id).await.unwrap();
    assert_eq!(output(ended(&client, "mended").await), "found again");
    let letter = letter_for(&client, "nobody").await.unwrap();
    client.discard_dead_letter(&letter.id).await.unwrap();
    assert_eq!(letter_for(&client, "nobody").await, None);
    assert_eq!(client.list_dead_letters(None).await.unwrap().len(), 1, "the one for `waiting` is kept");
    runtime.shutdown(None).await;
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("One", one)
        .register("Waits", |ctx: OrchestrationContext, _input: String| async move {
            Ok(ctx.schedule_wait("signal").await)
        })
        .register("CallsNobody", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("NoSuchActivity", input).await
        })
        .build()
}

/// `Echo` writes its input down.
fn echo(runs: &Arc<Mutex<Vec<String>>>) -> ActivityRegistry {
    let runs = Arc::clone(runs);
    ActivityRegistry::builder()
        .register("Echo", move |_ctx: ActivityContext, input: String| {
            runs.lock().unwrap().push(input.clone());
            async move { Ok(input) }
        })
        .build()
}

pub(crate) fn work_for(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        name: "Echo".into(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
}

fn damage_messages(file: &File, instance: &str) {
    let damaged = file.connect().execute(
        "UPDATE message SET data = ?1 WHERE instance = (SELECT id FROM instance WHERE instance_id = ?2)",
        [NONSENSE, instance],
    );
    assert_eq!(damaged.unwrap(), 1);
}

pub(crate) fn damage_activities(file: &File, instance: &str, data: &str) {
    let damaged = file.connect().execute(
        "UPDATE activity SET data = ?1 WHERE instance = (SELECT id FROM instance WHERE instance_id = ?2)",
        [data, instance],
    );
    assert_eq!(damaged.unwrap(), 1);
}

/// Waits for this many dead letters; gives payload and attempts by instance.
async fn dead_letters(client: &Client, count: usize) -> BTreeMap<String, (String, u32)> {
    let letters = async || client.list_dead_letters(None).await.unwrap();
    until("they are dead letters", async || letters().await.len() >= count).await;
    let letters = letters().await;
    assert_eq!(letters.len(), count, "{letters:?}");
    let parts =
        |letter: DeadLetter| (letter.instance_id.unwrap_or_default(), (letter.payload, letter.attempt_count));
    letters.into_iter().map(parts).collect()
}

async fn letter_for(client: &Client, instance: &str) -> Option<DeadLetter> {
    let letters = client.list_dead_letters(None).await.unwrap();
    letters.into_iter().find(|letter| letter.instance_id.as_deref() == Some(instance))
}
