//! Work that kills its process again and again.

use std::{path::Path, time::Duration};

use duroxide::{
    Client, ErrorDetails, EventKind, OrchestrationStatus, PoisonMessageType, RuntimeOptions,
    providers::WorkItem,
};

use crate::{
    fixture::{File, ended, failure, node, notes::Notes, open_in, output, process::Process},
    handlers::{MAX_ATTEMPTS, activities, options, orchestrations, poison},
};

/// The role of a worker process: it works until it dies.
pub async fn work(folder: &Path) {
    work_with(folder, soon_free()).await;
}

/// An item that died with its process repeatedly is ready only when its lease ends. So the leases are short, but not
/// so short that a slow machine loses them. The two differ, as by default: a turn and an activity of the same process
/// are not ready again at the same moment.
fn soon_free() -> RuntimeOptions {
    RuntimeOptions {
        orchestrator_lock_timeout: Duration::from_secs(2),
        worker_lock_timeout: Duration::from_secs(3),
        ..options()
    }
}

/// Enough attempts for the work that dies with a crashing item before that is a suspect.
const WIDE_MAX_ATTEMPTS: u32 = 5;

/// The role of a worker process that holds several things at once, all with the same lease.
pub async fn work_side_by_side(folder: &Path) {
    let lease = Duration::from_secs(2);
    let options = RuntimeOptions {
        max_attempts: WIDE_MAX_ATTEMPTS,
        orchestration_concurrency: 4,
        worker_concurrency: 4,
        orchestrator_lock_timeout: lease,
        worker_lock_timeout: lease,
        ..options()
    };
    work_with(folder, options).await;
}

async fn work_with(folder: &Path, options: RuntimeOptions) {
    let store = open_in(folder).await;
    let notes = Notes::new(folder, "notes");
    let _runtime = node(&store, activities(&notes), orchestrations(&notes), options).await;
    std::future::pending::<()>().await;
}

/// Keeps a worker process running, a new one whenever the last has died, until the instance has ended. Returns how it
/// ended and how many workers died.
async fn work_until_ended(file: &File, client: &Client, instance: &str) -> (OrchestrationStatus, u32) {
    let (status, deaths, _last) = outlive(file, client, instance).await;
    (status, deaths)
}

/// The same, with the worker that lived to see it.
async fn outlive(file: &File, client: &Client, instance: &str) -> (OrchestrationStatus, u32, Process) {
    let mut deaths = 0;
    loop {
        assert!(deaths <= MAX_ATTEMPTS, "attempt {deaths} must not reach user code");
        let mut worker = Process::start("worker", file.folder(), "");
        tokio::select! {
            _ = worker.ended() => deaths += 1,
            status = ended(client, instance) => return (status, deaths, worker),
        }
    }
}

/// S1.2, S1.24, S1.32, S1.34, S1.35, S1.36: exactly `max_attempts` runs, then poison with the whole work item.
#[tokio::test]
async fn an_activity_that_kills_its_worker_is_poisoned() {
    let file = File::new();
    let client = Client::new(file.open().await);
    client.start_orchestration("doomed", "CallsKiller", "input of the killer").await.unwrap();
    let (status, deaths) = work_until_ended(&file, &client, "doomed").await;

    let (kind, message) = poison(failure(status));
    assert_eq!(deaths, MAX_ATTEMPTS);
    assert_eq!(Notes::new(file.folder(), "notes").count("Kill"), MAX_ATTEMPTS as usize);
    let expected = PoisonMessageType::Activity {
        instance: "doomed".into(),
        execution_id: 1,
        activity_name: "Kill".into(),
        activity_id: 2,
    };
    assert_eq!(kind, expected);
    let item: WorkItem = serde_json::from_str(&message).expect("S1.12: the message is the JSON of the item");
    let expected = WorkItem::ActivityExecute {
        instance: "doomed".into(),
        execution_id: 1,
        id: 2,
        name: "Kill".into(),
        input: "input of the killer".into(),
        session_id: None,
        tag: None,
    };
    assert_eq!(item, expected);
    let kinds = kinds(&client, "doomed").await;
    assert_eq!(
        kinds,
        ["OrchestrationStarted", "ActivityScheduled", "ActivityFailed", "OrchestrationFailed"],
        "I12: exhaustion is one recorded failure"
    );
}

/// S1.22, S1.31, S1.34, S1.35: the same for a first turn. There is no history, so its start is recorded with its end.
#[tokio::test]
async fn a_first_turn_that_kills_its_process_is_poisoned() {
    let file = File::new();
    let client = Client::new(file.open().await);
    client.start_orchestration("doomed", "KillsInItsFirstTurn", "input of the turn").await.unwrap();
    let (status, deaths) = work_until_ended(&file, &client, "doomed").await;

    let (kind, message) = poison(failure(status));
    assert_eq!(deaths, MAX_ATTEMPTS);
    assert_eq!(Notes::new(file.folder(), "notes").count("first turn"), MAX_ATTEMPTS as usize);
    assert_eq!(kind, PoisonMessageType::Orchestration { instance: "doomed".into(), execution_id: 1 });
    let batch: Vec<WorkItem> = serde_json::from_str(&message).expect("the message is the JSON of the batch");
    assert!(
        matches!(&batch[..], [WorkItem::StartOrchestration { input, .. }] if input == "input of the turn"),
        "{batch:?}"
    );
    assert_eq!(kinds(&client, "doomed").await, ["OrchestrationStarted", "OrchestrationFailed"]);
}

/// S1.22, S1.31, 6.2, 6.6: the same for a later turn of a child. Its open work is ended with it, its parent gets the error.
#[tokio::test]
async fn a_later_turn_that_kills_its_process_is_poison_and_its_parent_gets_the_error() {
    let file = File::new();
    let client = Client::new(file.open().await);
    client.start_orchestration("parent", "Parent", "from the parent").await.unwrap();
    let (status, deaths) = work_until_ended(&file, &client, "parent").await;

    let details = failure(status);
    assert_eq!(details, failure(ended(&client, "child").await), "the parent fails with the child's poison");
    let (kind, message) = poison(details);
    assert_eq!(deaths, MAX_ATTEMPTS);
    let notes = Notes::new(file.folder(), "notes");
    assert_eq!((notes.count("later turn"), notes.count("Echo child")), (MAX_ATTEMPTS as usize, 1));
    assert_eq!(kind, PoisonMessageType::Orchestration { instance: "child".into(), execution_id: 1 });
    let batch: Vec<WorkItem> = serde_json::from_str(&message).expect("the message is the JSON of the batch");
    let whole = WorkItem::ActivityCompleted {
        instance: "child".into(),
        execution_id: 1,
        id: 3,
        result: "from the parent".into(),
    };
    assert_eq!(batch, [whole]);
    let expected = [
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityScheduled",
        "ActivityCancelRequested",
        "ActivityCancelRequested",
        "OrchestrationFailed",
    ];
    assert_eq!(kinds(&client, "child").await, expected);
    let depths = client.get_queue_depths().await.unwrap();
    assert_eq!((depths.worker_queue, depths.orchestrator_queue), (0, 0), "I07: nothing is left of it");
}

/// S1.33, S1.36: one killer among healthy instances. A crash counts an attempt for everything its process held, so
/// items that were attempted before must not run together with the killer: then only the killer becomes poison.
#[tokio::test]
async fn healthy_work_with_a_killer_is_never_poisoned() {
    const HEALTHY: usize = 30;
    let file = File::new();
    let client = Client::new(file.open().await);
    for number in 0..HEALTHY {
        if number == 5 {
            client.start_orchestration("killer", "CallsKiller", "").await.unwrap();
        }
        client.start_orchestration(&format!("healthy-{number}"), "One", number.to_string()).await.unwrap();
    }
    // The last worker is not killed: its death would count an attempt that the killer did not cause.
    let (status, deaths, worker) = outlive(&file, &client, "killer").await;
    poison(failure(status));
    assert_eq!(deaths, MAX_ATTEMPTS);
    for number in 0..HEALTHY {
        assert_eq!(output(ended(&client, &format!("healthy-{number}")).await), number.to_string());
    }
    worker.kill();
}

/// S1.33, S1.36: the same where the killer and its bystanders are claimed together, die together, and are free again
/// at the same moment: they must not stay in step until all of them are poison.
#[tokio::test]
async fn bystanders_that_are_retried_with_a_killer_get_ahead_of_it() {
    let file = File::new();
    let client = Client::new(file.open().await);
    client.start_orchestration("killer", "KillsInItsFirstTurn", "").await.unwrap();
    for number in 0..3 {
        client.start_orchestration(&format!("bystander-{number}"), "One", number.to_string()).await.unwrap();
    }
    let killed = async {
        loop {
            Process::start("wide worker", file.folder(), "").ended().await;
        }
    };
    let status = tokio::select! {
        status = ended(&client, "killer") => status,
        () = killed => unreachable!(),
    };
    let ErrorDetails::Poison { attempt_count, .. } = failure(status) else { panic!("expected poison") };
    assert_eq!(attempt_count, WIDE_MAX_ATTEMPTS + 1);
    let worker = Process::start("wide worker", file.folder(), "");
    for number in 0..3 {
        assert_eq!(output(ended(&client, &format!("bystander-{number}")).await), number.to_string());
    }
    worker.kill();
}

async fn kinds(client: &Client, instance: &str) -> Vec<&'static str> {
    let history = client.read_execution_history(instance, 1).await.unwrap();
    history.iter().map(|event| EventKind::wire_name(&event.kind)).collect()
}
