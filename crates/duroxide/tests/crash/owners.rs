//! Owners that are plainly dead, and owners that only seem to be.

use std::{path::Path, time::Duration};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::registry::ActivityRegistry,
};

use crate::{
    fixture::{File, ended, node, notes::Notes, open_in, output, process::Process, quick_options, until},
    sound::{assert_finished, assert_sound},
};

/// Longer than every wait of a test, so a lock that ends during a wait was not ended by its lease.
const LEASE: Duration = Duration::from_secs(600);
const SLOTS: usize = 4;

fn options() -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: SLOTS,
        worker_concurrency: SLOTS,
        orchestrator_lock_timeout: LEASE,
        worker_lock_timeout: LEASE,
        session_lock_timeout: LEASE,
        session_idle_timeout: 2 * LEASE,
        ..quick_options()
    }
}

/// `Slow` lasts until its process dies, unless it may end at once.
fn activities(notes: Notes, may_end: bool) -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Slow", move |ctx: ActivityContext, input: String| {
            let (notes, instance) = (notes.clone(), ctx.instance_id().to_owned());
            async move {
                notes.add(format!("{} {instance}", std::process::id()));
                if !may_end {
                    std::future::pending::<()>().await;
                }
                Ok(input)
            }
        })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Calls", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Slow", input).await
        })
        .register("Visits", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity_on_session("Slow", input, "room").await
        })
        .build()
}

/// The role of a worker process. Its activities end only if `detail` is `may end`.
pub async fn work(folder: &Path, detail: &str) {
    let store = open_in(folder).await;
    let activities = activities(Notes::new(folder, "notes"), detail == "may end");
    let _runtime = node(&store, activities, orchestrations(), options()).await;
    std::future::pending::<()>().await;
}

async fn began(notes: &Notes, runs: usize) {
    until("the activities begin", async || notes.lines().len() >= runs).await;
}

/// Starts as many instances as a worker can hold and waits until it holds them.
async fn hold_everything(file: &File, client: &Client, orchestration: &str) -> Process {
    for number in 0..SLOTS {
        client.start_orchestration(format!("i-{number}"), orchestration, "done").await.unwrap();
    }
    let worker = Process::start("owner", file.folder(), "");
    began(&Notes::new(file.folder(), "notes"), SLOTS).await;
    worker
}

async fn all_done(client: &Client) {
    for number in 0..SLOTS {
        assert_eq!(output(ended(client, &format!("i-{number}")).await), "done");
    }
}

fn node_files(file: &File) -> usize {
    let entries = std::fs::read_dir(file.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    entries.filter(|name| name.to_string_lossy().contains("-node-")).count()
}

/// Issue 4, 16.1: a worker that is started after a kill goes on at once; the attempt of the dead one counts.
#[tokio::test]
async fn a_restarted_worker_does_not_wait_for_the_leases_of_a_killed_one() {
    let file = File::new();
    let client = Client::new(file.open().await);
    hold_everything(&file, &client, "Calls").await.kill();
    let snapshot = file.snapshot();
    assert_sound(&snapshot);
    let held = snapshot.instances.iter().flat_map(|instance| &instance.activities);
    assert_eq!(held.filter(|activity| activity.lock.is_some()).count(), SLOTS);

    let next = Process::start("owner", file.folder(), "may end");
    all_done(&client).await;
    next.kill();
    assert_eq!(Notes::new(file.folder(), "notes").lines().len(), 2 * SLOTS, "each ran twice");
    assert_finished(&file.snapshot());
    assert_eq!(node_files(&file), 1, "the first one's traces are gone; the second was killed too");
}

/// Issue 4: so does one that was there all the time.
#[tokio::test]
async fn a_living_worker_takes_over_the_claims_of_a_killed_one() {
    let file = File::new();
    let client = Client::new(file.open().await);
    let first = hold_everything(&file, &client, "Calls").await;
    let store = file.open().await;
    let activities = activities(Notes::new(file.folder(), "notes"), true);
    let runtime = node(&store, activities, orchestrations(), options()).await;
    first.kill();
    all_done(&client).await;
    runtime.shutdown(None).await;
    drop(store);
    assert_eq!(node_files(&file), 0, "who leaves takes its file along");
}

/// 13.1: the sessions of a killed worker are free too.
#[tokio::test]
async fn the_sessions_of_a_killed_worker_do_not_wait_for_their_leases() {
    let file = File::new();
    let client = Client::new(file.open().await);
    client.start_orchestration("i-0", "Visits", "done").await.unwrap();
    let first = Process::start("owner", file.folder(), "");
    began(&Notes::new(file.folder(), "notes"), 1).await;
    first.kill();
    let next = Process::start("owner", file.folder(), "may end");
    assert_eq!(output(ended(&client, "i-0").await), "done");
    next.kill();
}

/// D10: a process that is stopped keeps its locks. When it goes on it still has them; when it is killed
/// after all, they are free.
#[tokio::test]
async fn a_frozen_worker_keeps_its_leases() {
    let file = File::new();
    let client = Client::new(file.open().await);
    let frozen = hold_everything(&file, &client, "Calls").await;
    frozen.stop().await;
    let notes = Notes::new(file.folder(), "notes");
    let next = Process::start("owner", file.folder(), "may end");
    client.start_orchestration("fresh", "Calls", "done").await.unwrap();
    assert_eq!(output(ended(&client, "fresh").await), "done");
    another_dies_and_is_found(&file).await;
    assert_eq!(notes.lines().len(), SLOTS + 1, "nobody took what the frozen one holds");

    frozen.kill();
    all_done(&client).await;
    next.kill();
    assert_finished(&file.snapshot());
}

/// Leaves the traces of a dead node, and waits until another node has found them: then the living nodes have checked.
async fn another_dies_and_is_found(file: &File) {
    const JOIN: &str = "INSERT INTO node (name, started_at, seen_at, session_owners, capability)
                        VALUES ('ghost', ?1, ?1, '[]', '{}')";
    const THERE: &str = "SELECT count(*) FROM node WHERE name = 'ghost'";
    std::fs::write(file.folder().join("store.db-node-ghost"), "").unwrap();
    let connection = file.connect();
    connection.execute(JOIN, [i64::MAX / 2]).unwrap();
    let there = || connection.query_row(THERE, [], |row| row.get::<_, i64>(0)).unwrap();
    until("the dead node is found", async || there() == 0).await;
}

/// A runtime that was dropped with its executor counts as dead, also if its process lives.
#[test]
fn a_runtime_that_was_dropped_with_its_executor_holds_nothing() {
    let file = File::new();
    let executor = tokio::runtime::Runtime::new().unwrap();
    let abandoned = executor.block_on(async {
        let client = Client::new(file.open().await);
        client.start_orchestration("i-0", "Calls", "done").await.unwrap();
        let store = file.open().await;
        let notes = Notes::new(file.folder(), "notes");
        let runtime = node(&store, activities(notes.clone(), false), orchestrations(), options()).await;
        began(&notes, 1).await;
        runtime
    });
    executor.shutdown_background();

    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = file.open().await;
        let activities = activities(Notes::new(file.folder(), "notes"), true);
        let runtime = node(&store, activities, orchestrations(), options()).await;
        assert_eq!(output(ended(&Client::new(store), "i-0").await), "done");
        runtime.shutdown(None).await;
    });
    drop(abandoned);
}
