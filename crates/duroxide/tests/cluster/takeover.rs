//! The items of a killed process are taken over at once.

mod cut_off;
mod frozen;
mod restarted;
pub mod slow;

use std::{collections::BTreeSet, path::Path, time::Duration, time::Instant};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::registry::ActivityRegistry,
};

use crate::{
    fixture::{ended, node, notes::Notes, output, process::Process, quick_options},
    schema::{Schema, notes_in, open_in},
    sound::assert_finished,
};

/// Longer than any wait of a test: items that end earlier did not wait for a lease.
const LEASE: Duration = Duration::from_secs(600);
const INSTANCES: usize = 10;
const ACTIVITIES: usize = 100;
const IN_FLIGHT: usize = INSTANCES * ACTIVITIES;
/// Two seconds are promised on a machine that does nothing else; other tests run at the same time. A lease is half a minute
/// by default, and ten minutes here.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(20);

fn options() -> RuntimeOptions {
    RuntimeOptions {
        worker_concurrency: IN_FLIGHT,
        orchestrator_lock_timeout: LEASE,
        worker_lock_timeout: LEASE,
        session_idle_timeout: 2 * LEASE,
        ..quick_options()
    }
}

/// `Slow` lasts until its process dies, unless it may end at once.
fn activities(notes: Notes, may_end: bool) -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Slow", move |ctx: ActivityContext, input: String| {
            let notes = notes.clone();
            async move {
                notes.add(format!("{input} attempt {}", ctx.attempt()));
                if !may_end {
                    std::future::pending::<()>().await;
                }
                Ok(input)
            }
        })
        .build()
}

async fn calls(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let calls = (0..ACTIVITIES).map(|number| ctx.schedule_activity("Slow", format!("{input}-{number}")));
    let results: Result<Vec<String>, String> = ctx.join(calls.collect()).await.into_iter().collect();
    Ok(results?.len().to_string())
}

/// The role of a worker process. Its activities end only if `detail` is `may end`.
pub async fn work(folder: &Path, detail: &str) {
    let store = open_in(folder).await;
    let activities = activities(notes_in(folder), detail == "may end");
    let orchestrations = OrchestrationRegistry::builder().register("Calls", calls).build();
    let _runtime = node(&store, activities, orchestrations, options()).await;
    std::future::pending::<()>().await;
}

/// Issue 4, 16.1: the other processes wait neither for leases nor for an operator; the attempts of the dead one count.
#[tokio::test]
async fn a_thousand_activities_of_a_killed_process_are_taken_over_at_once() {
    let Some(schema) = Schema::new() else { return };
    let client = Client::new(schema.open().await);
    let notes = schema.notes();
    let first = Process::start("owner", schema.folder(), "");
    for number in 0..INSTANCES {
        client.start_orchestration(format!("i-{number}"), "Calls", number.to_string()).await.unwrap();
    }
    schema.reach_notes(IN_FLIGHT).await;
    let _others = [(); 2].map(|()| Process::start("owner", schema.folder(), "may end"));
    schema.reach_nodes(3).await;
    assert_eq!(notes.lines().len(), IN_FLIGHT, "the first one holds everything");

    first.kill();
    let killed_at = Instant::now();
    schema.reach_notes(2 * IN_FLIGHT).await;
    let taken_over = killed_at.elapsed();
    println!("{IN_FLIGHT} activities were taken over {taken_over:?} after the kill");
    assert!(taken_over < TAKEN_OVER_WITHIN, "{taken_over:?}");
    for number in 0..INSTANCES {
        assert_eq!(output(ended(&client, &format!("i-{number}")).await), ACTIVITIES.to_string());
    }
    let lines = notes.lines();
    assert_eq!(lines.len(), 2 * IN_FLIGHT, "each ran twice, not more");
    let in_attempt = |attempt: &str| lines.iter().filter(|line| line.ends_with(attempt)).count();
    assert_eq!((in_attempt(" attempt 1"), in_attempt(" attempt 2")), (IN_FLIGHT, IN_FLIGHT));
    assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), 2 * IN_FLIGHT, "each has both attempts");
    schema.reach_nodes(2).await;
    assert_finished(&schema.snapshot());
}
