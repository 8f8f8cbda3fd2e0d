//! B18: work whose future was dropped is stopped and removed.

use std::{path::Path, time::Duration};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::registry::ActivityRegistry,
};

use crate::fixture::{
    File, WAIT_MAX, ended, node, notes::Notes, open_in, output, process::Process, quick_options, recorded,
    until, within,
};

/// The role of a process that only runs activities.
pub async fn work(folder: &Path) {
    let store = open_in(folder).await;
    let notes = Notes::new(folder, "notes");
    let activities = ActivityRegistry::builder()
        .register("Obedient", move |ctx: ActivityContext, input: String| {
            let notes = notes.clone();
            async move {
                notes.add("begun");
                ctx.cancelled().await;
                notes.add("stopped");
                Ok(input)
            }
        })
        .build();
    let options = RuntimeOptions { orchestration_concurrency: 0, ..RuntimeOptions::default() };
    let _runtime = node(&store, activities, OrchestrationRegistry::default(), options).await;
    std::future::pending::<()>().await;
}

async fn race(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let activity = ctx.schedule_activity("Obedient", input);
    let enough = ctx.schedule_wait("enough");
    ctx.select2(activity, enough).await;
    Ok("raced".to_owned())
}

/// B18, 7.3, 16.3: with default options an activity in another process learns of it by its next renewal, within 6 s.
#[tokio::test]
async fn an_activity_in_another_process_is_asked_to_stop() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    let orchestrations = OrchestrationRegistry::builder().register("Race", race).build();
    let options = RuntimeOptions { worker_concurrency: 0, ..RuntimeOptions::default() };
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, options).await;
    let worker = Process::start("activities only", file.folder(), "");
    client.start_orchestration("i", "Race", "").await.unwrap();

    let notes = Notes::new(file.folder(), "notes");
    until("the activity begins", async || notes.count("begun") > 0).await;
    client.raise_event("i", "enough", "").await.unwrap();
    assert_eq!(output(ended(&client, "i").await), "raced");
    within(Duration::from_secs(6), "the activity stops", async || notes.count("stopped") > 0).await;
    worker.kill();
    runtime.shutdown(None).await;
}

async fn patient(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let signal = ctx.schedule_wait("signal");
    let timer = ctx.schedule_timer(Duration::from_secs(3_600));
    ctx.select2(signal, timer).await;
    Ok("signalled".to_owned())
}

/// In each round the activity of the next race sees the rows that the last one left in the queue.
async fn races(ctx: OrchestrationContext, rounds: u32) -> Result<u32, String> {
    let mut most = 0;
    for _ in 0..rounds {
        let look = ctx.schedule_activity_typed::<(), u32>("QueuedMessages", &());
        let timer = ctx.schedule_timer(Duration::from_secs(3_600));
        match ctx.select2(look, timer).await {
            duroxide::Either2::First(seen) => most = most.max(seen?),
            duroxide::Either2::Second(()) => return Err("an hour has passed".to_owned()),
        }
    }
    Ok(most)
}

/// B18, 5.3, 14.2: a timer that lost its race is removed by the round that dropped it.
#[tokio::test]
async fn a_dropped_timer_leaves_the_queue_at_once() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    let activities = ActivityRegistry::builder()
        .register_typed("QueuedMessages", |ctx: ActivityContext, _input: ()| async move {
            let depths = ctx.get_client().get_queue_depths().await.map_err(|error| error.to_string())?;
            Ok(depths.orchestrator_queue as u32)
        })
        .build();
    let orchestrations =
        OrchestrationRegistry::builder().register("Patient", patient).register_typed("Races", races).build();
    let runtime = node(&store, activities, orchestrations, quick_options()).await;

    client.start_orchestration("patient", "Patient", "").await.unwrap();
    recorded(&client, "patient", |event| event.event_id == 3).await;
    client.raise_event("patient", "signal", "").await.unwrap();
    assert_eq!(output(ended(&client, "patient").await), "signalled");
    assert_eq!(client.get_queue_depths().await.unwrap().orchestrator_queue, 0);

    client.start_orchestration_typed("races", "Races", 1_000_u32).await.unwrap();
    let raced =
        client.wait_for_orchestration("races", 4 * WAIT_MAX).await.expect("a thousand races end in time");
    assert_eq!(output(raced), "1", "only the timer of the race that is on");
    assert_eq!(client.get_queue_depths().await.unwrap().orchestrator_queue, 0);
    runtime.shutdown(None).await;
}
