//! After crashes all work runs again as before, except the work that caused them.

use std::{path::Path, sync::Arc, time::Duration};

use duroxide::{
    ActivityContext, Client, ErrorDetails, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::{UnregisteredBackoffConfig, registry::ActivityRegistry},
};

use crate::fixture::{File, WAIT_MAX, ended, failure, node, notes::Notes, open_in, output, process::Process};

/// Everything that is not about the number of slots is as by default, but for a lease that a test can wait for.
fn options(slots: usize) -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: slots,
        worker_concurrency: slots,
        orchestrator_lock_timeout: Duration::from_secs(2),
        worker_lock_timeout: Duration::from_secs(2),
        ..RuntimeOptions::default()
    }
}

fn is_there(folder: &Path, file: &str) -> bool {
    folder.join(file).exists()
}

fn make(folder: &Path, file: &str) {
    std::fs::write(folder.join(file), "").expect("the folder of a test is writable");
}

/// Code that may crash its process: it aborts if it is the killer and the file `armed` exists. Else it writes a note and
/// waits for the file `go`.
#[derive(Clone)]
struct Script {
    notes: Notes,
    folder: std::path::PathBuf,
    run: String,
}

impl Script {
    fn new(folder: &Path, run: &str) -> Self {
        Self { notes: Notes::new(folder, "notes"), folder: folder.to_owned(), run: run.to_owned() }
    }

    fn begin(&self, who: &str) {
        if who == "killer" && is_there(&self.folder, "armed") {
            self.notes.add("killed");
            std::process::abort();
        }
        self.notes.add(format!("run {}", self.run));
    }

    fn may_end(&self) -> bool {
        is_there(&self.folder, "go")
    }
}

/// The role of a worker process. `CallsScript` runs the script in an activity, `RunsScript` in its turn.
pub async fn work(folder: &Path, detail: &str) {
    let (slots, run) = detail.split_once(' ').expect("slots and run");
    let script = Script::new(folder, run);
    let in_turn = script.clone();
    let activities =
        ActivityRegistry::builder().register("Script", move |_: ActivityContext, who: String| {
            let script = script.clone();
            async move {
                script.begin(&who);
                while !script.may_end() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Ok(who)
            }
        });
    let activities = activities.register("Late", |_: ActivityContext, who: String| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if who == "killer" {
            std::process::abort();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(who)
    });
    let orchestrations = OrchestrationRegistry::builder()
        .register("CallsLate", |ctx: OrchestrationContext, who: String| async move {
            ctx.schedule_activity("Late", who).await
        })
        .register("CallsScript", |ctx: OrchestrationContext, who: String| async move {
            ctx.schedule_activity("Script", who).await
        })
        .register("RunsScript", move |_: OrchestrationContext, who: String| {
            let script = in_turn.clone();
            async move {
                script.begin(&who);
                while !script.may_end() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(who)
            }
        });
    let store = open_in(folder).await;
    let options = options(slots.parse().expect("a number"));
    let _runtime = node(&store, activities.build(), orchestrations.build(), options).await;
    std::future::pending::<()>().await;
}

/// A worker process of this run.
fn worker(file: &File, slots: usize, run: usize) -> Process {
    Process::start("recovery worker", file.folder(), &format!("{slots} {run}"))
}

/// Waits until so many parts are being played at the same time, in this run: none of them ends before it is let go.
async fn all_run(file: &File, run: usize, parts: usize) {
    let notes = Notes::new(file.folder(), "notes");
    let line = format!("run {run}");
    let all = async {
        while notes.count(&line) < parts {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(WAIT_MAX, all).await;
    assert!(waited.is_ok(), "{} of {parts} run at once in run {run}", notes.count(&line));
}

async fn innocents(client: &Client, orchestration: &str, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..count {
        let id = format!("innocent-{number}");
        client.start_orchestration(&id, orchestration, &id).await.unwrap();
        ids.push(id);
    }
    ids
}

/// S1.33, S0.45: two crashes make suspects of everything a node held, and still all of it runs at once, and at once.
#[tokio::test]
async fn after_two_kills_everything_runs_at_the_same_time_again() {
    const ACTIVITIES: usize = 60;
    let file = File::new();
    let client = Client::new(file.open().await);
    let ids = innocents(&client, "CallsScript", ACTIVITIES).await;
    for run in 1..=2 {
        let process = worker(&file, 64, run);
        all_run(&file, run, ACTIVITIES).await;
        process.kill();
    }
    let _process = worker(&file, 64, 3);
    all_run(&file, 3, ACTIVITIES).await;
    make(file.folder(), "go");
    for id in ids {
        assert_eq!(output(ended(&client, &id).await), id);
    }
    assert_eq!(Notes::new(file.folder(), "notes").lines().len(), 3 * ACTIVITIES, "once in each run");
}

/// S1.33, S1.36: after two crashes during which all instances ran, the killer is found at its next start, and the others
/// all run at once without it. Only the killer ends as poison.
async fn a_killer_is_isolated(orchestration: &str, innocent: usize) {
    let file = File::new();
    let client = Client::new(file.open().await);
    let slots = innocent + 1;
    let ids = innocents(&client, orchestration, innocent).await;
    client.start_orchestration("the-killer", orchestration, "killer").await.unwrap();
    for run in 1..=2 {
        let process = worker(&file, slots, run);
        all_run(&file, run, slots).await;
        process.kill();
    }
    make(file.folder(), "armed");
    let notes = Notes::new(file.folder(), "notes");
    tokio::time::timeout(WAIT_MAX, worker(&file, slots, 3).ended()).await.expect("the killer strikes");
    assert_eq!(notes.count("killed"), 1);

    let mut process = worker(&file, slots, 4);
    all_run(&file, 4, innocent).await;
    assert_eq!(notes.count("killed"), 1, "it waits for the others");
    make(file.folder(), "go");
    for id in &ids {
        assert_eq!(output(ended(&client, id).await), *id);
    }

    let mut run = 4;
    let status = loop {
        tokio::select! {
            _ = process.ended() => run += 1,
            status = client.wait_for_orchestration("the-killer", Duration::from_secs(120)) => break status.unwrap(),
        }
        process = worker(&file, slots, run);
    };
    let max_attempts = RuntimeOptions::default().max_attempts;
    let ErrorDetails::Poison { attempt_count, .. } = failure(status) else { panic!("expected poison") };
    assert_eq!(attempt_count, max_attempts + 1);
    assert_eq!(notes.count("killed"), max_attempts as usize - 2, "each attempt after the two kills");
    assert_eq!(notes.count("run 4"), innocent, "S1.36: nobody ran again because of the killer");
}

#[tokio::test]
async fn an_activity_that_kills_ends_no_other_work() {
    a_killer_is_isolated("CallsScript", 64).await;
}

#[tokio::test]
async fn a_turn_that_kills_ends_no_other_work() {
    a_killer_is_isolated("RunsScript", 16).await;
}

/// S1.33, S1.36: a killer that crashes long after its start is not named by any note. Each crash halves its group, until it
/// strikes alone.
#[tokio::test]
async fn an_activity_that_kills_late_ends_no_other_work() {
    let file = File::new();
    let client = Client::new(file.open().await);
    client.start_orchestration("the-killer", "CallsLate", "killer").await.unwrap();
    let ids = innocents(&client, "CallsLate", 15).await;
    let mut run = 1;
    let status = loop {
        let mut process = worker(&file, 16, run);
        tokio::select! {
            _ = process.ended() => run += 1,
            status = client.wait_for_orchestration("the-killer", 2 * WAIT_MAX) => break status.unwrap(),
        }
    };
    let ErrorDetails::Poison { attempt_count, .. } = failure(status) else { panic!("expected poison") };
    assert_eq!(attempt_count, RuntimeOptions::default().max_attempts + 1);
    let _process = worker(&file, 16, run);
    for id in &ids {
        assert_eq!(output(ended(&client, id).await), *id);
    }
}

/// S1.33, 16.8: an activity that was abandoned three times for a missing handler is no suspect, and runs without delay.
#[tokio::test]
async fn items_without_a_handler_are_not_quarantined() {
    const COUNT: usize = 40;
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(Arc::clone(&store));
    let bouncing = RuntimeOptions {
        max_attempts: 1_000,
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(20),
            max_delay: Duration::from_millis(20),
        },
        ..options(COUNT)
    };
    let calls = || {
        OrchestrationRegistry::builder()
            .register("Calls", |ctx: OrchestrationContext, _: String| async move {
                ctx.schedule_activity("Meets", "").await
            })
            .build()
    };
    let without = node(&store, ActivityRegistry::builder().build(), calls(), bouncing.clone()).await;
    for number in 0..COUNT {
        client.start_orchestration(&format!("i{number}"), "Calls", "").await.unwrap();
    }
    crate::fixture::until("all have bounced three times", async || {
        let snapshot = file.snapshot();
        let attempts = snapshot.instances.iter().flat_map(|row| &row.activities).map(|row| row.attempt_count);
        attempts.filter(|count| *count >= 3).count() == COUNT
    })
    .await;
    without.shutdown(None).await;

    // All of them must run at the same time to get past this.
    let all = Arc::new(tokio::sync::Barrier::new(COUNT));
    let activities = ActivityRegistry::builder()
        .register("Meets", move |_: ActivityContext, _: String| {
            let all = Arc::clone(&all);
            async move {
                all.wait().await;
                Ok("met".to_owned())
            }
        })
        .build();
    let with = node(&store, activities, calls(), bouncing).await;
    for number in 0..COUNT {
        assert_eq!(output(ended(&client, &format!("i{number}")).await), "met");
    }
    with.shutdown(None).await;
}
