//! S4.29, I18: a process on plain files is killed again and again, at any moment, and loses nothing.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use duroxide_core::{EventKind, OrchestrationContext};
use duroxide_fs::{FsOptions, FsProvider};
use duroxide_provider::{Provider as _, invariant};
use duroxide_runtime::{
    ActivityContext, Client, OrchestrationStatus, Runtime,
    registry::{ActivityRegistry, OrchestrationRegistry},
};

const FOLDER: &str = "DUROXIDE_FS_TEST_FOLDER";
const INSTANCES: usize = 6;
const KILLS: usize = 30;
const WAIT_MAX: Duration = Duration::from_secs(120);

/// Two activities in parallel, a timer, a child, and then all of it again as the next execution.
async fn workflow(ctx: OrchestrationContext, rounds_left: String) -> Result<String, String> {
    let (a, b) = ctx.join2(ctx.schedule_activity("Step", "a"), ctx.schedule_activity("Step", "b")).await;
    ctx.schedule_timer(Duration::from_millis(5)).await;
    let child = ctx.schedule_sub_orchestration("Child", "c").await?;
    match rounds_left.as_str() {
        "0" => Ok([a?, b?, child].concat()),
        _ => ctx.continue_as_new("0").await,
    }
}

async fn child(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity("Step", input).await
}

/// Not a test: the entry point of the child processes. A child prints each thing that it does, so that the parent can
/// kill it at a chosen point, and exits when all instances have ended.
#[test]
#[ignore = "child processes begin here"]
fn works_until_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("the system has threads").block_on(work(Path::new(&folder)));
    std::process::exit(0);
}

async fn work(folder: &Path) {
    println!("opens");
    let store = Arc::new(FsProvider::open(folder, None).await.expect("nobody else uses it"));
    println!("opened");
    let client = Client::new(store.clone());
    for n in 0..INSTANCES {
        client.start_orchestration(format!("w{n}"), "Workflow", "1").await.expect("a start is accepted");
        println!("started");
    }
    let activities = ActivityRegistry::builder()
        .register("Step", |_: ActivityContext, input: String| async move {
            println!("runs");
            Ok(input)
        })
        .build();
    let orchestrations =
        OrchestrationRegistry::builder().register("Workflow", workflow).register("Child", child).build();
    let node = Runtime::start_with_store(store, activities, orchestrations).await;
    for n in 0..INSTANCES {
        let ended = client.wait_for_orchestration(&format!("w{n}"), WAIT_MAX).await;
        ended.expect("it ends in time");
    }
    node.shutdown(None).await;
    println!("done");
}

/// Starts a child process and kills it after it has printed `lines` lines. Returns whether the child finished before.
fn run(folder: &Path, lines: usize) -> bool {
    let program = std::env::current_exe().expect("a test knows its own program");
    let mut child = Command::new(program)
        .args(["--exact", "works_until_killed", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child process starts");
    let said = BufReader::new(child.stdout.take().expect("its output is piped"));
    // Ignores the lines of the test harness.
    let ours = ["opens", "opened", "started", "runs", "done"];
    let said = said.lines().map_while(Result::ok).filter(|line| ours.iter().any(|our| line.ends_with(our)));
    let done = said.take(lines).any(|line| line.ends_with("done"));
    kill(child);
    done
}

/// SIGKILL: the child gets no chance to clean up.
fn kill(mut child: Child) {
    let _ = child.kill();
    child.wait().expect("a killed child ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_at_any_moment_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut finished = false;
    for kill in 0..KILLS {
        finished |= run(folder.path(), 1 + (kill * 7) % 23);
        // Wherever the kill hit, the store must open and be sound.
        let options = FsOptions::default().with_sync(false);
        let store = FsProvider::open(folder.path(), Some(options)).await.expect("the store opens");
        let violations = invariant::check(&store.snapshot().await.unwrap());
        assert_eq!(violations, [], "after kill {kill}");
    }
    while !finished {
        finished = run(folder.path(), usize::MAX);
    }
    check_results(folder.path()).await;
}

async fn check_results(folder: &Path) {
    let store = Arc::new(FsProvider::open(folder, None).await.expect("the store opens"));
    let client = Client::new(store.clone());
    for n in 0..INSTANCES {
        let id = format!("w{n}");
        let status = client.get_orchestration_status(&id).await.unwrap();
        assert!(
            matches!(&status, OrchestrationStatus::Completed { output, .. } if output == "abc"),
            "{id}: {status:?}"
        );
        for execution in [1, 2] {
            let history = store.read_with_execution(&id, execution).await.unwrap();
            let mut completions = BTreeMap::<u64, usize>::new();
            for event in &history {
                let completes = matches!(
                    event.kind,
                    EventKind::ActivityCompleted { .. } | EventKind::SubOrchestrationCompleted { .. }
                );
                if let Some(source) = event.source_event_id.filter(|_| completes) {
                    *completions.entry(source).or_default() += 1;
                }
            }
            assert_eq!(completions.into_values().collect::<Vec<_>>(), [1, 1, 1], "{id}/{execution}");
        }
    }
}
