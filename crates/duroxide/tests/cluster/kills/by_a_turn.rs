//! A turn that kills its process, right after an activity.

use std::{path::Path, time::Duration};

use duroxide::{
    ActivityContext, Client, ErrorDetails, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::postgres::{PostgresOptions, PostgresProvider},
    runtime::registry::ActivityRegistry,
};

use crate::{
    fixture::{ended, failure, node, process::Process, quick_options},
    schema::{Schema, notes_in, options_in},
};

const MAX_ATTEMPTS: u32 = 3;
/// The worker lets turns run early.
const EARLY: &str = "early";

/// The role of a worker process: it works until its own code kills it.
pub async fn work(folder: &Path, detail: &str) {
    let options = PostgresOptions { early_turns: detail == EARLY, ..options_in(folder) };
    let store = std::sync::Arc::new(PostgresProvider::open(options).await.unwrap());
    let (echoes, turns) = (notes_in(folder), notes_in(folder));
    let activities =
        ActivityRegistry::builder().register("Echo", move |_: ActivityContext, input: String| {
            echoes.add("Echo");
            async move { Ok(input) }
        });
    let kills = move |ctx: OrchestrationContext, input: String| {
        let turns = turns.clone();
        async move {
            ctx.schedule_activity("Echo", input).await?;
            turns.add("turn");
            std::process::abort()
        }
    };
    let orchestrations = OrchestrationRegistry::builder().register("Kills", kills).build();
    let runtime = RuntimeOptions {
        max_attempts: MAX_ATTEMPTS,
        orchestration_concurrency: 1,
        worker_concurrency: 1,
        orchestrator_lock_timeout: Duration::from_secs(2),
        worker_lock_timeout: Duration::from_secs(3),
        ..quick_options()
    };
    let store: std::sync::Arc<dyn duroxide::providers::Provider> = store;
    let _runtime = node(&store, activities.build(), orchestrations, runtime).await;
    std::future::pending::<()>().await;
}

/// How often the turn and the activity ran until the instance ended as poison.
async fn runs_until_poison(detail: &str) -> Option<(usize, usize)> {
    let schema = Schema::new()?;
    let client = Client::new(schema.open().await);
    client.start_orchestration("doomed", "Kills", "input").await.unwrap();
    let status = loop {
        let mut worker = Process::start("killed by a turn", schema.folder(), detail);
        tokio::select! {
            _ = worker.ended() => {}
            status = ended(&client, "doomed") => break status,
        }
    };
    let details = failure(status);
    assert!(
        matches!(details, ErrorDetails::Poison { attempt_count, max_attempts: MAX_ATTEMPTS, .. } if attempt_count == MAX_ATTEMPTS + 1),
        "{details:?}"
    );
    let notes = schema.notes();
    Some((notes.count("turn"), notes.count("Echo")))
}

/// 24.13, I12, S1.34: an early turn takes the result of the activity along. The second attempt of the activity leads to turns that are
/// stored before they run, and counts the first one.
#[tokio::test]
async fn an_early_turn_that_kills_its_process_runs_as_often_as_it_may_fail() {
    let Some((turns, activities)) = runs_until_poison(EARLY).await else { return };
    assert_eq!(turns, MAX_ATTEMPTS as usize);
    // A turn that was late for its transaction was stored.
    assert!((1..=2).contains(&activities), "{activities}");
}

/// S1.22, S1.34, S1.35: without early turns exactly `max_attempts` runs, and a recorded result is never asked for again.
#[tokio::test]
async fn without_early_turns_a_killing_turn_runs_as_often_as_it_may_fail() {
    let Some(runs) = runs_until_poison("stored first").await else { return };
    assert_eq!(runs, (MAX_ATTEMPTS as usize, 1));
}
