//! B7: for every limit that a child exceeds, and every damage of its history, its parent gets the error, and nothing of it
//! is left.

use std::{sync::Arc, time::Duration};

use duroxide::{
    Client, ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    RuntimeOptions,
    providers::Provider,
    runtime::{RuntimeLimits, registry::ActivityRegistry},
};
use duroxide_store::MemoryProvider;

use crate::fixture::{
    File, ended, failure,
    intercept::{Intercept, Intercepted, Queue},
    node, output, quick_options, recorded,
};

const PAYLOAD_MAX: usize = 100_000;
const ACTIONS_MAX: usize = 300;
const EVENTS_MAX: u64 = 320;

/// The limit that a child exceeds, and the text of its failure.
const LIMITS: [(&str, &str); 12] = [
    ("status", "Custom status size (307200 bytes) exceeds limit (262144 bytes)"),
    ("value", "KV value for key 'big' (70000 bytes) exceeds limit (65536 bytes)"),
    ("keys", "KV key count (151) exceeds limit (150)"),
    ("tag", "Activity 'Echo' tag size (257 bytes) exceeds limit (256 bytes)"),
    ("activity", "Activity input size (100001 bytes) exceeds limit (100000 bytes)"),
    ("child", "Sub-orchestration input size (100001 bytes) exceeds limit (100000 bytes)"),
    ("detached", "Orchestration input size (100001 bytes) exceeds limit (100000 bytes)"),
    ("next", "Continue-as-new input size (100001 bytes) exceeds limit (100000 bytes)"),
    ("output", "Orchestration output size (100001 bytes) exceeds limit (100000 bytes)"),
    ("failure", "Orchestration output size (100001 bytes) exceeds limit (100000 bytes)"),
    ("actions", "Actions in one turn (304) exceed limit (300)"),
    ("history", "exceeds limit (320)"),
];

fn too_big() -> String {
    "x".repeat(PAYLOAD_MAX + 1)
}

/// Runs an activity, and in its last turn makes first an allowed call and then a refused one.
async fn child(ctx: OrchestrationContext, limit: String) -> Result<String, String> {
    ctx.schedule_activity("Echo", "").await?;
    if limit == "history" {
        loop {
            ctx.schedule_activity("Echo", "").await?;
        }
    }
    ctx.set_custom_status("nearly done");
    ctx.set_kv_value("allowed", "1");
    ctx.schedule_orchestration("Ghost", "ghost", "");
    match limit.as_str() {
        "status" => ctx.set_custom_status("x".repeat(300 << 10)),
        "value" => ctx.set_kv_value("big", "x".repeat(70_000)),
        "keys" => (0..150).for_each(|n| ctx.set_kv_value(n.to_string(), "")),
        "tag" => return ctx.schedule_activity("Echo", "").with_tag("x".repeat(257)).await,
        "activity" => return ctx.schedule_activity("Echo", too_big()).await,
        "child" => return ctx.schedule_sub_orchestration("Ghost", too_big()).await,
        "detached" => ctx.schedule_orchestration("Ghost", "other", too_big()),
        "next" => return ctx.continue_as_new(too_big()).await,
        "output" => return Ok(too_big()),
        "failure" => return Err(too_big()),
        "actions" => (0..=ACTIONS_MAX).for_each(|_| ctx.set_custom_status("again")),
        other => panic!("no limit {other}"),
    }
    Ok("all is well".to_owned())
}

/// Calls a child, by an id of its own or an automatic one, and returns its failure.
async fn parent(ctx: OrchestrationContext, call: String) -> Result<String, String> {
    let (limit, explicit) = call.split_once(' ').expect("limit and id");
    let answer = match explicit {
        "" => ctx.schedule_sub_orchestration("Child", limit).await,
        id => ctx.schedule_sub_orchestration_with_id("Child", id, limit).await,
    };
    answer.map_or_else(Ok, |output| Err(format!("the child completed: {output}")))
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Child", child)
        .register("Parent", parent)
        .register("Ghost", |_ctx, _input| async { Ok("must never run".to_owned()) })
        .build()
}

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder().register("Echo", |_ctx, input| async move { Ok(input) }).build()
}

fn options() -> RuntimeOptions {
    let limits = RuntimeLimits {
        max_payload_bytes: Some(PAYLOAD_MAX),
        max_actions_per_turn: Some(ACTIONS_MAX),
        max_history_events: Some(EVENTS_MAX),
        ..RuntimeLimits::default()
    };
    RuntimeOptions { limits, ..quick_options() }
}

/// One terminal event, the last, and none of the calls of the turn.
fn assert_ended_by(history: &[Event], text: &str) {
    let terminal: Vec<_> = history.iter().filter(|event| event.is_terminal()).collect();
    assert_eq!(terminal.len(), 1, "{history:#?}");
    let Some(EventKind::OrchestrationFailed { details }) = history.last().map(|event| &event.kind) else {
        panic!("{text}: {history:#?}")
    };
    assert!(matches!(details, ErrorDetails::Application { retryable: false, .. }), "{details:?}");
    assert!(details.display_message().ends_with(text), "{text}: {}", details.display_message());
    let largest = history.iter().map(|event| serde_json::to_string(event).unwrap().len()).max();
    assert!(largest < Some(1_000), "nothing large is stored");
    let kept = |event: &&Event| {
        !matches!(
            event.kind,
            EventKind::CustomStatusUpdated { .. }
                | EventKind::KeyValueSet { .. }
                | EventKind::OrchestrationChained { .. }
        )
    };
    assert!(history.iter().all(|event| kept(&event)), "{text}: {history:#?}");
}

/// B7, 15.1, 15.2, 6.6
async fn every_limit_fails_the_child_and_its_parent_gets_the_error(store: Arc<dyn Provider>) {
    let runtime = node(&store, activities(), orchestrations(), options()).await;
    let client = Client::new(Arc::clone(&store));
    for (limit, text) in LIMITS {
        for explicit in ["", "own"] {
            let parent = format!("parent-{limit}-{explicit}");
            let (child, id) = match explicit {
                "" => (format!("{parent}::sub::2"), String::new()),
                _ => (format!("child-{limit}"), format!("child-{limit}")),
            };
            client.start_orchestration(&parent, "Parent", format!("{limit} {id}")).await.unwrap();
            let told = output(ended(&client, &parent).await);
            assert!(told.ends_with(text), "{limit}: {told}");
            assert_ended_by(&client.read_execution_history(&child, 1).await.unwrap(), text);
            assert_eq!(client.list_executions(&child).await.unwrap(), [1], "{limit}");
            let status = client.get_orchestration_status(&child).await.unwrap();
            assert!(
                matches!(
                    status,
                    OrchestrationStatus::Failed { custom_status: None, custom_status_version: 0, .. }
                ),
                "{limit}: {status:?}"
            );
            assert!(client.get_kv_all_values(&child).await.unwrap().is_empty(), "{limit}");
        }
    }
    runtime.shutdown(None).await;
    let instances = client.list_all_instances().await.unwrap();
    assert_eq!(instances.len(), LIMITS.len() * 4, "parents and children, nobody else");
    let depths = client.get_queue_depths().await.unwrap();
    assert_eq!((depths.orchestrator_queue, depths.worker_queue), (0, 0));
}

#[tokio::test]
async fn in_memory_every_limit_fails_the_child_and_its_parent_gets_the_error() {
    every_limit_fails_the_child_and_its_parent_gets_the_error(Arc::new(MemoryProvider::new())).await;
}

#[tokio::test]
async fn on_sqlite_every_limit_fails_the_child_and_its_parent_gets_the_error() {
    let file = File::new();
    every_limit_fails_the_child_and_its_parent_gets_the_error(file.open().await).await;
}

/// Makes every abandoned item visible at once.
struct Impatient;

impl Intercept for Impatient {
    fn abandon(&self, _: Queue, _: Option<Duration>, _: bool) -> Option<Duration> {
        None
    }
}

/// B7, 6.6: the history of the child was damaged in the store. The parent fails with the child's poison, although
/// nobody can read any more whose child it was.
#[tokio::test]
async fn the_parent_of_a_damaged_child_gets_the_error() {
    let orchestrations = || {
        OrchestrationRegistry::builder()
            .register(
                "Child",
                |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("go").await) },
            )
            .register("Parent", parent)
            .build()
    };
    for explicit in ["", "child"] {
        let file = File::new();
        let store = file.open().await;
        let client = Client::new(Arc::clone(&store));
        let child = if explicit.is_empty() { "parent::sub::2" } else { explicit };
        let runtime = node(&store, activities(), orchestrations(), options()).await;
        client.start_orchestration("parent", "Parent", format!("none {explicit}")).await.unwrap();
        recorded(&client, child, |event| matches!(event.kind, EventKind::ExternalSubscribed { .. })).await;
        runtime.shutdown(None).await;

        file.overwrite_event(child, 1, "not even JSON");
        client.raise_event(child, "go", "").await.unwrap();
        let impatient: Arc<dyn Provider> = Intercepted::new(store, Impatient);
        let runtime = node(&impatient, activities(), orchestrations(), options()).await;
        let details = failure(ended(&client, "parent").await);
        assert!(matches!(details, ErrorDetails::Poison { .. }), "{details:?}");
        let text = details.display_message();
        assert!(text.contains(&format!("orchestration {child} history deserialization failed")), "{text}");
        assert_eq!(failure(ended(&client, child).await), details);
        runtime.shutdown(None).await;
    }
}
