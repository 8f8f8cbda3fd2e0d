//! The attempt check comes before anything else.

use std::{sync::Arc, time::Duration};

use duroxide::{
    Client, EventKind, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::Provider,
    runtime::{Runtime, observability::MetricsSnapshot, registry::ActivityRegistry},
};

use crate::fixture::{File, ended, failure, final_snapshot, node, quick_options, recorded, until};

async fn calls(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_activity("Act", "x").await
}

fn callers() -> OrchestrationRegistry {
    OrchestrationRegistry::builder().register("Calls", calls).build()
}

fn actors() -> ActivityRegistry {
    ActivityRegistry::builder().register("Act", |_ctx, input| async move { Ok(input) }).build()
}

/// Lets a node without the handler bounce an item more than three times, and stops it.
async fn bounce(
    store: &Arc<dyn Provider>,
    orchestrations: OrchestrationRegistry,
    bounces: fn(MetricsSnapshot) -> u64,
) {
    let patient = RuntimeOptions { max_attempts: 10_000, ..quick_options() };
    let runtime: Arc<Runtime> = node(store, ActivityRegistry::default(), orchestrations, patient).await;
    until("it bounces", async || bounces(runtime.metrics_snapshot().unwrap()) >= 4).await;
    runtime.shutdown(None).await;
}

/// S1.20, 2.2: too many attempts count, although this node has the handler; the code never runs.
#[tokio::test]
async fn an_orchestration_is_judged_before_its_handler_is_looked_up() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    client.start_orchestration("i", "Calls", "").await.unwrap();
    bounce(&store, OrchestrationRegistry::default(), |snapshot| snapshot.unregistered_orch_backoff).await;

    let runtime = node(&store, actors(), callers(), quick_options()).await;
    assert_eq!(failure(ended(&client, "i").await).category(), "poison");

    let history = client.read_execution_history("i", 1).await.unwrap();
    assert_eq!(history.len(), 2, "a start and a failure: {history:?}");
    assert_eq!(final_snapshot(runtime).await.unregistered_orch_backoff, 0);
}

/// S1.23, S1.24, S1.29, 16.7: the same for an activity.
#[tokio::test]
async fn an_activity_is_judged_before_its_handler_is_looked_up() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    client.start_orchestration("i", "Calls", "").await.unwrap();
    bounce(&store, callers(), |snapshot| snapshot.unregistered_activity_backoff).await;

    let runtime = node(&store, actors(), callers(), quick_options()).await;
    assert_eq!(failure(ended(&client, "i").await).category(), "poison");

    let snapshot = final_snapshot(runtime).await;
    assert_eq!((snapshot.activity_poison, snapshot.activity_success), (1, 0));
    let history = client.read_execution_history("i", 1).await.unwrap();
    let failed =
        history.iter().filter(|event| matches!(event.kind, EventKind::ActivityFailed { .. })).count();
    assert_eq!(failed, 1, "S1.30: exhaustion is one recorded failure: {history:?}");
}

async fn holds_much(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let activity = ctx.schedule_activity("Act", "x");
    let signal = ctx.schedule_wait("never");
    let timer = ctx.schedule_timer(Duration::from_secs(3600));
    let go = ctx.schedule_wait("go");
    ctx.select2(ctx.join2(activity, ctx.join2(signal, timer)), go).await;
    Ok(String::new())
}

/// S1.22, 16.6, I07: the poison round ends open work, and its error has the poisoned messages.
#[tokio::test]
async fn the_poison_round_closes_what_the_execution_held() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    let holding = OrchestrationRegistry::builder().register("HoldsMuch", holds_much).build();
    let no_workers = RuntimeOptions { worker_concurrency: 0, ..quick_options() };
    let first = node(&store, ActivityRegistry::default(), holding, no_workers.clone()).await;
    client.start_orchestration("i", "HoldsMuch", "").await.unwrap();
    recorded(&client, "i", |event| matches!(event.kind, EventKind::TimerCreated { .. })).await;
    first.shutdown(None).await;

    client.raise_event("i", "go", "the whole message").await.unwrap();
    let second =
        node(&store, ActivityRegistry::default(), OrchestrationRegistry::default(), no_workers).await;
    let details = failure(ended(&client, "i").await);

    let history = client.read_execution_history("i", 1).await.unwrap();
    let tail: Vec<&EventKind> = history.iter().skip(5).map(|event| &event.kind).collect();
    let [
        EventKind::ActivityCancelRequested { reason: of_activity },
        EventKind::ExternalSubscribedCancelled { reason: of_first_wait },
        EventKind::ExternalSubscribedCancelled { reason: of_second_wait },
        EventKind::OrchestrationFailed { details: recorded },
    ] = tail.as_slice()
    else {
        panic!("{history:?}")
    };
    assert_eq!(of_activity, "orchestration_terminal_failed");
    assert_eq!([of_first_wait, of_second_wait], ["orchestration_terminal"; 2]);
    assert_eq!(*recorded, details);
    assert!(format!("{details:?}").contains("the whole message"), "S1.35: {details:?}");
    let info = client.get_instance_info("i").await.unwrap();
    assert_eq!((info.status.as_str(), info.output), ("Failed", Some(details.display_message())));
    let depths = client.get_queue_depths().await.unwrap();
    assert_eq!((depths.orchestrator_queue, depths.worker_queue), (0, 0), "timer and activity are gone");
    second.shutdown(None).await;
}
