//! A completion for an earlier execution does not reach its successor, which has a pin of its own.

use std::{sync::Arc, time::Duration};

use duroxide::{
    Client, Event, EventKind, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::{Provider, TagFilter, WorkItem},
    runtime::Runtime,
};
use semver::Version;

use crate::{
    commit_first_visible,
    fixture::{File, WAIT_MAX, ended, final_snapshot, logs::Logs, node, output, quick_options, until},
    history, named, no_activities, start, supporting,
};

/// Calls an activity, waits for `go` with the call still open, and continues as new; then waits for `go` to end.
async fn leaves_a_call_open(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let go = ctx.schedule_wait("go").await;
    if input == "second" {
        return Ok(go);
    }
    let call = ctx.schedule_activity("Slow", "");
    ctx.schedule_wait("on").await;
    let next = ctx.continue_as_new("second").await;
    drop(call);
    next
}

/// A node without workers: the test is the worker.
async fn orchestrator(store: &Arc<dyn Provider>, options: RuntimeOptions) -> Arc<Runtime> {
    let orchestrations = OrchestrationRegistry::builder().register("Waits", leaves_a_call_open).build();
    let options = RuntimeOptions { worker_concurrency: 0, ..options };
    node(store, no_activities(), orchestrations, options).await
}

/// A node on an instance pinned to 0.1.0, whose activity the test has fetched and holds while the instance continues
/// as new.
struct Story {
    runtime: Arc<Runtime>,
    activity: WorkItem,
    token: String,
}

impl Story {
    async fn tell(store: &Arc<dyn Provider>, client: &Client) -> Self {
        store.enqueue_for_orchestrator(start("i", "Waits", ""), None).await.unwrap();
        let mut metadata = named();
        metadata.pinned_duroxide_version = Some(Version::new(0, 1, 0));
        commit_first_visible(store, history("i", "0.1.0"), vec![], metadata).await;
        let runtime = orchestrator(store, quick_options()).await;
        client.raise_event("i", "go", "").await.unwrap();
        let lease = Duration::from_secs(30);
        let fetched = store.fetch_work_item(lease, WAIT_MAX, None, &TagFilter::DefaultOnly).await.unwrap();
        let (activity, token, _) = fetched.expect("the activity is scheduled");
        client.raise_event("i", "on", "").await.unwrap();
        continued(store).await;
        Self { runtime, activity, token }
    }
}

/// Waits until the second execution waits for `go`.
async fn continued(store: &Arc<dyn Provider>) {
    let waits = async || store.read_with_execution("i", 2).await.unwrap().len() >= 2;
    until("the second execution begins", waits).await;
}

fn completion(of: &WorkItem) -> WorkItem {
    let WorkItem::ActivityExecute { instance, execution_id, id, .. } = of else { panic!("{of:?}") };
    WorkItem::ActivityCompleted {
        instance: instance.clone(),
        execution_id: *execution_id,
        id: *id,
        result: "late".into(),
    }
}

fn is_completion(event: &Event) -> bool {
    matches!(event.kind, EventKind::ActivityCompleted { .. } | EventKind::ActivityFailed { .. })
}

/// S3.T25: the second execution ended without the late result; it is pinned to the build, the first is not.
async fn check_untouched(store: &Arc<dyn Provider>) {
    let (first, second) =
        (store.read_with_execution("i", 1).await.unwrap(), store.read_with_execution("i", 2).await.unwrap());
    assert!(!first.iter().chain(&second).any(is_completion), "{first:?} {second:?}");
    assert_eq!(first[0].duroxide_version, "0.1.0");
    assert_eq!(second[0].duroxide_version, env!("CARGO_PKG_VERSION"));
}

/// S3.T25 (a): the round that ends the execution deletes its activity, and the worker's next renewal fails.
#[tokio::test]
async fn activity_completion_after_continue_as_new_is_discarded() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    let Story { runtime, activity, token } = Story::tell(&store, &client).await;

    let renewal = store.renew_work_item_lock(&token, Duration::from_secs(30)).await.unwrap_err();
    assert!(!renewal.is_retryable(), "{renewal}");
    let ack = store.ack_work_item(&token, Some(completion(&activity))).await.unwrap_err();
    assert!(!ack.is_retryable(), "{ack}");
    let depths = client.get_queue_depths().await.unwrap();
    assert_eq!((depths.orchestrator_queue, depths.worker_queue), (0, 0), "no completion appears");

    client.raise_event("i", "go", "went").await.unwrap();
    assert_eq!(output(ended(&client, "i").await), "went");
    check_untouched(&store).await;
    runtime.shutdown(None).await;
}

/// S3.T25 (b): a completion that was on its way is dropped, by a node that can replay the second execution: one that
/// can replay only the first does not get it.
#[tokio::test]
async fn a_completion_that_raced_with_continue_as_new_is_dropped() {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    let Story { runtime, activity, .. } = Story::tell(&store, &client).await;
    runtime.shutdown(None).await;

    let old = orchestrator(&store, supporting("0.0.0", "0.4.9")).await;
    store.enqueue_for_orchestrator(completion(&activity), None).await.unwrap();
    client.start_orchestration("later", "Waits", "second").await.unwrap();
    crate::fixture::recorded(&client, "later", |event| event.event_id == 2).await;
    assert_eq!(final_snapshot(old).await.orch_dispatcher_items_fetched, 1, "only the later one");
    assert!(logs.with("ignoring completion from previous execution").is_empty());

    let new = orchestrator(&store, quick_options()).await;
    client.raise_event("i", "go", "went").await.unwrap();
    assert_eq!(output(ended(&client, "i").await), "went");
    new.shutdown(None).await;
    let dropped = logs.with("ignoring completion from previous execution");
    assert_eq!(dropped.len(), 1, "{dropped:?}");
    assert_eq!(dropped[0].level, tracing::Level::WARN);
    check_untouched(&store).await;
}
