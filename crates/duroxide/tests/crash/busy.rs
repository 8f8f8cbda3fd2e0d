//! B5: several processes on one file, and another program that keeps its write lock.

use std::{path::Path, time::Duration};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::registry::ActivityRegistry,
};

use crate::{
    fixture::{
        File, WAIT_MAX, connect_in, node, notes::Notes, open_in, output, process::Process, quick_options,
    },
    sound::{assert_finished, events},
};

const WORKERS: usize = 3;
const INSTANCES: usize = 200;
const ACTIVITIES: usize = 5;
/// The line that the other program writes when it has the write lock.
const LOCKED: &str = "locked";

/// The role of a worker process.
pub async fn work(folder: &Path) {
    let store = open_in(folder).await;
    let notes = Notes::new(folder, "notes");
    let activities = ActivityRegistry::builder()
        .register("Echo", move |_ctx: ActivityContext, input: String| {
            notes.add("Echo");
            async move { Ok(input) }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Five", |ctx: OrchestrationContext, mut input: String| async move {
            for _ in 0..ACTIVITIES {
                input = ctx.schedule_activity("Echo", input).await?;
            }
            Ok(input)
        })
        .build();
    let options = RuntimeOptions { orchestration_concurrency: 8, worker_concurrency: 8, ..quick_options() };
    let _runtime = node(&store, activities, orchestrations, options).await;
    std::future::pending::<()>().await;
}

/// The role of the other program: when the workers are in the middle of their work, it has the write lock for longer
/// than the store waits by itself, and then for one second in two.
pub async fn hold_the_write_lock(folder: &Path) {
    let connection = connect_in(folder);
    connection.busy_timeout(Duration::ZERO).unwrap();
    let notes = Notes::new(folder, "notes");
    notes.reach(INSTANCES).await;
    for held in std::iter::once(6).chain(std::iter::repeat(1)) {
        // Three busy workers leave only short gaps.
        while connection.execute_batch("BEGIN IMMEDIATE").is_err() {
            std::thread::sleep(Duration::from_micros(50));
        }
        notes.add(LOCKED);
        tokio::time::sleep(Duration::from_secs(held)).await;
        connection.execute_batch("COMMIT").unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// B5, 16.5, 23.2, S4.23: a busy database delays work, and fails none of it.
#[tokio::test]
async fn a_busy_database_fails_no_workflow() {
    let file = File::new();
    let client = Client::new(file.open().await);
    for number in 0..INSTANCES {
        client.start_orchestration(format!("i-{number}"), "Five", number.to_string()).await.unwrap();
    }
    let _writer = Process::start("writer", file.folder(), "");
    let workers: Vec<Process> =
        (0..WORKERS).map(|_| Process::start("busy worker", file.folder(), "")).collect();
    for number in 0..INSTANCES {
        let ended = client.wait_for_orchestration(&format!("i-{number}"), 2 * WAIT_MAX).await.unwrap();
        assert_eq!(output(ended), number.to_string());
    }

    for worker in workers {
        worker.kill();
    }
    let lines = Notes::new(file.folder(), "notes").lines();
    let first = lines.iter().position(|line| line == LOCKED).expect("the file was locked");
    assert!(first < INSTANCES * ACTIVITIES, "the file was locked only when all was done");
    let snapshot = file.snapshot();
    assert_finished(&snapshot);
    assert_eq!(snapshot.instances.len(), INSTANCES);
    for instance in &snapshot.instances {
        let recorded = events(&instance.executions[0]);
        assert_eq!(recorded.len(), 2 + 2 * ACTIVITIES, "{}: {recorded:?}", instance.instance);
    }
}
