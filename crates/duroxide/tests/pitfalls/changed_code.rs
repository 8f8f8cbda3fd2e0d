//! Code that was changed under a running execution.

use std::{future::Future, sync::Arc, time::Duration};

use duroxide::{
    Client, ConfigErrorKind, ErrorDetails, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    RuntimeOptions, runtime::registry::ActivityRegistry,
};

use crate::fixture::{File, ended, failure, node, output, quick_options, recorded};

/// Enough for everything that comes before the wait to be recorded.
const SHORT: Duration = Duration::from_millis(1);

fn cold() -> RuntimeOptions {
    RuntimeOptions { execution_cache_size: 0, ..quick_options() }
}

fn registries<F>(
    code: impl Fn(OrchestrationContext, String) -> F + Send + Sync + 'static,
) -> (ActivityRegistry, OrchestrationRegistry)
where
    F: Future<Output = Result<String, String>> + Send + 'static,
{
    let activities =
        ActivityRegistry::builder().register("Echo", |_ctx, input| async move { Ok(input) }).build();
    let child = |ctx: OrchestrationContext, input: String| async move {
        ctx.schedule_wait("child may end").await;
        Ok(input)
    };
    let orchestrations = OrchestrationRegistry::builder()
        .register("Changes", code)
        .register_versioned("Child", "1.0.0", child)
        .register_versioned("Child", "2.0.0", child)
        .build();
    (activities, orchestrations)
}

/// Runs the old code until event `reached` is recorded, stops, and lets the new code go on when it is woken.
async fn after_the_change<A, B>(
    reached: u64,
    old: impl Fn(OrchestrationContext, String) -> A + Send + Sync + 'static,
    new: impl Fn(OrchestrationContext, String) -> B + Send + Sync + 'static,
) -> OrchestrationStatus
where
    A: Future<Output = Result<String, String>> + Send + 'static,
    B: Future<Output = Result<String, String>> + Send + 'static,
{
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(Arc::clone(&store));
    let (activities, orchestrations) = registries(old);
    let runtime = node(&store, activities, orchestrations, cold()).await;
    client.start_orchestration("i", "Changes", "").await.unwrap();
    recorded(&client, "i", |event| event.event_id >= reached).await;
    runtime.shutdown(None).await;

    client.raise_event("i", "wake", "woken").await.unwrap();
    let (activities, orchestrations) = registries(new);
    let runtime = node(&store, activities, orchestrations, cold()).await;
    let status = ended(&client, "i").await;
    runtime.shutdown(None).await;
    status
}

/// 4.5: the failure is one of configuration, names nothing, and says this.
#[track_caller]
fn assert_nondeterminism(status: OrchestrationStatus, text: &str) {
    let details = failure(status);
    let ErrorDetails::Configuration { kind, message, .. } = &details else { panic!("{details:?}") };
    assert_eq!(*kind, ConfigErrorKind::Nondeterminism);
    let said = message.as_deref().unwrap_or_default();
    assert!(said.contains(text), "{said}");
}

async fn waits_for_a_timer(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_activity("Echo", "x").await?;
    let timer = ctx.schedule_timer(Duration::from_secs(3_600));
    let wake = ctx.schedule_wait("wake");
    ctx.select2(timer, wake).await;
    Ok("as before".to_owned())
}

/// B11 (1), 2.8: the old code waits after an activity, the new one returns.
#[tokio::test]
async fn code_that_ends_before_its_record_is_found() {
    let returns =
        |ctx: OrchestrationContext, _input: String| async move { ctx.schedule_activity("Echo", "x").await };
    let status = after_the_change(5, waits_for_a_timer, returns).await;
    assert_nondeterminism(status, "orchestration ended before its recorded history: event 4 (TimerCreated)");
    assert_eq!(output(after_the_change(5, waits_for_a_timer, waits_for_a_timer).await), "as before");
}

async fn sets_key_and_status(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.set_kv_value("key", "value");
    ctx.set_custom_status("status");
    ctx.schedule_wait("wake").await;
    Ok("as before".to_owned())
}

/// B11 (2), 4.1: the old code sets a key and a status, the new one does not.
#[tokio::test]
async fn a_key_or_status_that_is_no_longer_set_is_found() {
    let sets_nothing =
        |ctx: OrchestrationContext, _input: String| async move { Ok(ctx.schedule_wait("wake").await) };
    let status = after_the_change(4, sets_key_and_status, sets_nothing).await;
    assert_nondeterminism(status, "kv set mismatch: ");
    let sets_no_status = |ctx: OrchestrationContext, _input: String| async move {
        ctx.set_kv_value("key", "value");
        Ok(ctx.schedule_wait("wake").await)
    };
    let status = after_the_change(4, sets_key_and_status, sets_no_status).await;
    assert_nondeterminism(status, "custom status mismatch: ");
    assert_eq!(output(after_the_change(4, sets_key_and_status, sets_key_and_status).await), "as before");
}

/// A child and a wait, whichever comes first.
async fn with_child<T>(ctx: OrchestrationContext, child: impl Future<Output = T>) -> Result<String, String> {
    let wake = ctx.schedule_wait("wake");
    ctx.select2(child, wake).await;
    Ok("as before".to_owned())
}

async fn child_of_version(ctx: OrchestrationContext, version: &'static str) -> Result<String, String> {
    let child = ctx.schedule_sub_orchestration_versioned("Child", Some(version.to_owned()), "x");
    with_child(ctx.clone(), child).await
}

/// B11 (3), 4.3: the version a child was asked for is not recorded in its parent, so that a changed one passes: the child
/// that is running keeps its own.
#[tokio::test]
async fn another_version_of_a_running_child_passes() {
    let old = |ctx, _input| child_of_version(ctx, "1.0.0");
    let new = |ctx, _input| child_of_version(ctx, "2.0.0");
    assert_eq!(output(after_the_change(3, old, new).await), "as before");
    assert_eq!(output(after_the_change(3, old, old).await), "as before");
}

async fn child_with_id(ctx: OrchestrationContext, id: &'static str) -> Result<String, String> {
    let child = ctx.schedule_sub_orchestration_with_id("Child", id, "x");
    with_child(ctx.clone(), child).await
}

async fn child_without_id(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let child = ctx.schedule_sub_orchestration("Child", "x");
    with_child(ctx.clone(), child).await
}

/// B11 (4), 4.1: another id of a child is found, and so is an explicit one that became automatic.
#[tokio::test]
async fn another_id_of_a_child_is_found() {
    let old = |ctx, _input| child_with_id(ctx, "x");
    let new = |ctx, _input| child_with_id(ctx, "y");
    assert_nondeterminism(after_the_change(3, old, new).await, "schedule mismatch: action=");
    assert_nondeterminism(after_the_change(3, old, child_without_id).await, "schedule mismatch: action=");
    assert_eq!(output(after_the_change(3, old, old).await), "as before");
    assert_eq!(output(after_the_change(3, child_without_id, child_without_id).await), "as before");
}

async fn timer_then_wait(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_timer(SHORT).await;
    ctx.schedule_wait("wake").await;
    Ok("as before".to_owned())
}

/// B11 (5), 4.1, 4.2: a timer that became a wait is found.
#[tokio::test]
async fn a_timer_that_became_a_wait_is_found() {
    let waits_twice = |ctx: OrchestrationContext, _input: String| async move {
        ctx.schedule_wait("timer").await;
        ctx.schedule_wait("wake").await;
        Ok("another".to_owned())
    };
    let status = after_the_change(4, timer_then_wait, waits_twice).await;
    assert_nondeterminism(status, "schedule mismatch: action=");
    assert_eq!(output(after_the_change(4, timer_then_wait, timer_then_wait).await), "as before");
}
