//! A2: authoring orchestrations and activities.

mod typed;

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use duroxide::{
    ActivityContext, ActivityOutcome, BackoffStrategy, Client, DurableFuture, Either2, Either3, Event,
    OrchestrationContext, RetryOptions, RetryPolicy, SystemStats, is_not_retryable, not_retryable,
};
use tokio_util::sync::CancellationToken;

use crate::bounds;

type Res<T> = Result<T, String>;

#[test]
fn contexts_can_be_borrowed_by_async_blocks() {
    bounds::clone::<OrchestrationContext>();
    bounds::send::<OrchestrationContext>();
    bounds::sync::<OrchestrationContext>();
    bounds::value::<ActivityContext>();
    bounds::send::<ActivityContext>();
    bounds::sync::<ActivityContext>();
    let _: fn(Vec<Event>, u64, String, String, String, Option<String>) -> OrchestrationContext =
        OrchestrationContext::new;
}

fn identity_and_tracing(ctx: &OrchestrationContext) {
    let _: (String, u64) = (ctx.instance_id(), ctx.execution_id());
    let _: (String, String) = (ctx.orchestration_name(), ctx.orchestration_version());
    let _: (bool, bool) = (ctx.is_replaying(), ctx.is_logging_enabled());
    ctx.trace("INFO", String::from("message"));
    ctx.trace_info("message");
    ctx.trace_warn("message");
    ctx.trace_error("message");
    ctx.trace_debug(String::from("message"));
}

async fn system_calls(ctx: &OrchestrationContext) -> Res<()> {
    let _: String = ctx.new_guid().await?;
    let _: SystemTime = ctx.utc_now().await?;
    Ok(())
}

async fn activities(ctx: &OrchestrationContext, policy: RetryPolicy) -> Res<()> {
    let _: DurableFuture<Res<String>> = ctx.schedule_activity("a", String::from("x"));
    let _: DurableFuture<Res<u32>> = ctx.schedule_activity_typed::<Vec<u32>, u32>("a", &vec![1]);
    let _: DurableFuture<Res<String>> = ctx.schedule_activity_on_session("a", "x", "s");
    let _: DurableFuture<Res<u32>> = ctx.schedule_activity_on_session_typed::<u32, u32>("a", &1, "s");
    let _: Res<String> = ctx.schedule_activity_with_retry("a", "x", policy.clone()).await;
    let _: Res<u32> = ctx.schedule_activity_with_retry_typed::<u32, u32>("a", &1, policy.clone()).await;
    let _: Res<String> = ctx.schedule_activity_with_retry_on_session("a", "x", policy.clone(), "s").await;
    let _: Res<u32> =
        ctx.schedule_activity_with_retry_on_session_typed::<u32, u32>("a", &1, policy, "s").await;
    Ok(())
}

async fn timers_events_queues(ctx: &OrchestrationContext) {
    let _: DurableFuture<()> = ctx.schedule_timer(Duration::from_secs(1));
    let _: DurableFuture<String> = ctx.schedule_wait("e");
    let _: DurableFuture<u32> = ctx.schedule_wait_typed::<u32>("e");
    let _: DurableFuture<String> = ctx.dequeue_event("q");
    let _: u32 = ctx.dequeue_event_typed::<u32>("q").await;
    #[expect(deprecated, reason = "they must keep compiling")]
    {
        let _: DurableFuture<String> = ctx.schedule_wait_persistent("q");
        let _: u32 = ctx.schedule_wait_persistent_typed::<u32>("q").await;
    }
}

fn children(ctx: &OrchestrationContext, version: Option<String>) {
    let _: DurableFuture<Res<String>> = ctx.schedule_sub_orchestration("o", "x");
    let _: DurableFuture<Res<String>> = ctx.schedule_sub_orchestration_with_id("o", "i", "x");
    let _: DurableFuture<Res<String>> = ctx.schedule_sub_orchestration_versioned("o", version.clone(), "x");
    let _: DurableFuture<Res<String>> =
        ctx.schedule_sub_orchestration_versioned_with_id("o", version.clone(), "i", "x");
    let _: DurableFuture<Res<u32>> = ctx.schedule_sub_orchestration_typed::<u32, u32>("o", &1);
    let _: DurableFuture<Res<u32>> = ctx.schedule_sub_orchestration_with_id_typed::<u32, u32>("o", "i", &1);
    let (): () = ctx.schedule_orchestration("o", "i", "x");
    let (): () = ctx.schedule_orchestration_typed::<u32>("o", "i", &1);
    let (): () = ctx.schedule_orchestration_versioned("o", version.clone(), "i", "x");
    let (): () = ctx.schedule_orchestration_versioned_typed::<u32>("o", version, "i", &1);
}

async fn continue_as_new(ctx: &OrchestrationContext, how: u8) -> Res<String> {
    match how {
        0 => ctx.continue_as_new("x").await,
        1 => ctx.continue_as_new_typed::<u32>(&1).await,
        _ => ctx.continue_as_new_versioned("2.0.0", "x").await,
    }
}

fn status_and_key_value(ctx: &OrchestrationContext) {
    ctx.set_custom_status("s");
    ctx.reset_custom_status();
    let _: Option<String> = ctx.get_custom_status();
    ctx.set_kv_value("k", "v");
    ctx.set_kv_value_typed::<u32>("k", &1);
    let _: Option<String> = ctx.get_kv_value("k");
    let _: Res<Option<u32>> = ctx.get_kv_value_typed::<u32>("k");
    let _: HashMap<String, String> = ctx.get_kv_all_values();
    let _: Vec<String> = ctx.get_kv_all_keys();
    let _: usize = ctx.get_kv_length();
    ctx.clear_kv_value("k");
    ctx.clear_all_kv_values();
    let _: usize = ctx.prune_kv_values_updated_before(1_u64);
    let _: DurableFuture<Res<Option<String>>> = ctx.get_kv_value_from_instance("i", "k");
    let _: DurableFuture<Res<Option<u32>>> = ctx.get_kv_value_from_instance_typed::<u32>("i", "k");
    let _: Option<SystemStats> = ctx.get_system_stats();
}

/// Combinators take any future, not only durable ones.
async fn combinators(ctx: &OrchestrationContext) {
    let _: Vec<u8> = ctx.join(vec![async { 1_u8 }]).await;
    let _: (u8, String) = ctx.join2(async { 1 }, ctx.schedule_wait("e")).await;
    let _: (u8, u16, u32) = ctx.join3(async { 1 }, async { 2 }, async { 3 }).await;
    let _: Either2<u8, String> = ctx.select2(async { 1 }, ctx.schedule_wait("e")).await;
    let _: Either3<u8, u16, u32> = ctx.select3(async { 1 }, async { 2 }, async { 3 }).await;
}

/// Orchestration futures run on any thread.
#[test]
fn authoring_futures_are_send() {
    let _ = |ctx: &'static OrchestrationContext| {
        identity_and_tracing(ctx);
        children(ctx, None);
        status_and_key_value(ctx);
        bounds::value_is_send(&system_calls(ctx));
        bounds::value_is_send(&activities(ctx, RetryPolicy::default()));
        bounds::value_is_send(&timers_events_queues(ctx));
        bounds::value_is_send(&continue_as_new(ctx, 0));
        bounds::value_is_send(&combinators(ctx));
    };
}

#[test]
fn durable_futures() {
    bounds::send::<DurableFuture<String>>();
    bounds::unpin::<DurableFuture<Res<String>>>();
    bounds::future_of::<Res<u32>, DurableFuture<Res<u32>>>();
    let _ = |future: DurableFuture<Res<String>>| -> DurableFuture<bool> {
        future.with_tag("gpu").into_activity().map(|result| result.is_ok())
    };
    // It goes into the combinators of `futures` as it is.
    let _ = |a: DurableFuture<()>, b: DurableFuture<()>| futures_util::future::select(a, b);
}

#[test]
fn eithers() {
    bounds::value::<Either2<u8, u8>>();
    bounds::eq::<Either2<u8, u8>>();
    bounds::value::<Either3<u8, u8, u8>>();
    bounds::eq::<Either3<u8, u8, u8>>();
    let second: Either2<u8, u8> = Either2::Second(7);
    assert!(second.is_second() && !second.is_first());
    assert_eq!((second.index(), second.into_tuple()), (1_usize, (1_usize, 7)));
    let third: Either3<u8, u8, u8> = Either3::Third(7);
    assert_eq!((third.index(), third.into_tuple()), (2, (2, 7)));
    let _ = |either: Either3<u8, u16, u32>| match either {
        Either3::First(value) => u32::from(value),
        Either3::Second(value) => u32::from(value),
        Either3::Third(value) => value,
    };
}

#[test]
fn retry_policies() {
    bounds::value::<RetryPolicy>();
    bounds::value::<BackoffStrategy>();
    let millis = Duration::from_millis;
    let RetryPolicy { max_attempts, backoff, timeout } = RetryPolicy::default();
    assert_eq!((max_attempts, timeout), (3, None));
    assert_eq!(backoff.delay_for_attempt(2), millis(200));
    let policy = RetryPolicy::new(5).with_timeout(millis(50)).with_backoff(BackoffStrategy::None);
    assert_eq!((policy.timeout, policy.delay_for_attempt(1)), (Some(millis(50)), Duration::ZERO));
    let _ = [
        BackoffStrategy::Fixed { delay: millis(1) },
        BackoffStrategy::Linear { base: millis(1), max: millis(2) },
        BackoffStrategy::Exponential { base: millis(1), multiplier: 2.0_f64, max: millis(2) },
    ];
}

/// Added: a bound on how long each attempt runs, and errors that end a retry.
#[test]
fn retry_options() {
    bounds::value::<RetryOptions>();
    let millis = Duration::from_millis;
    let options = RetryPolicy::new(5).with_attempt_timeout(millis(50)).with_backoff(BackoffStrategy::None);
    assert_eq!((options.attempt_timeout, options.policy.max_attempts), (Some(millis(50)), 5));
    let _ = |ctx: OrchestrationContext, options: RetryOptions| async move {
        let _: Res<String> = ctx.schedule_activity_with_retry("a", "b", options.clone()).await;
        let _: Res<u8> = ctx.schedule_activity_with_retry_typed("a", &1, options.clone()).await;
        let _: Res<String> = ctx.schedule_activity_with_retry_on_session("a", "b", options, "s").await;
    };
    assert!(is_not_retryable(&not_retryable("declined")) && !is_not_retryable("declined"));
}

/// Added: asking an activity to stop, and its outcome.
#[test]
fn cancel_and_wait() {
    let _ = |ctx: OrchestrationContext| async move {
        let stopped = ctx.cancel_and_wait(ctx.schedule_activity("a", "b")).await;
        let _: bool = stopped.never_started();
        match stopped {
            ActivityOutcome::Completed(output) => output,
            ActivityOutcome::Failed(error) => error,
            ActivityOutcome::Stopped | ActivityOutcome::NeverStarted => String::new(),
            _ => String::new(),
        }
    };
}

async fn activity_context(ctx: &ActivityContext) {
    let _: [&str; 3] = [ctx.instance_id(), ctx.orchestration_name(), ctx.orchestration_version()];
    let _: [&str; 2] = [ctx.activity_name(), ctx.worker_id()];
    let _: u64 = ctx.execution_id();
    let _: [Option<&str>; 2] = [ctx.session_id(), ctx.tag()];
    let _: u32 = ctx.attempt();
    ctx.trace_info("m");
    ctx.trace_warn("m");
    ctx.trace_error("m");
    ctx.trace_debug(String::from("m"));
    let _: bool = ctx.is_cancelled();
    let (): () = ctx.cancelled().await;
    let _: CancellationToken = ctx.cancellation_token();
    let _: Client = ctx.get_client();
}

#[test]
fn activity_futures_are_send() {
    let _ = |ctx: &'static ActivityContext| bounds::value_is_send(&activity_context(ctx));
}
