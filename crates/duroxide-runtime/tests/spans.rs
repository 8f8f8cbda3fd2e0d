//! Spans around user code, as a layer that exports them would see them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "spans/collector.rs"]
mod collector;
#[path = "../src/fixture/listen.rs"]
mod listen;

use std::{sync::Arc, time::Duration};

use collector::{Collected, Collector};
use duroxide_core::OrchestrationContext;
use duroxide_provider::Provider;
use duroxide_runtime::{
    ActivityContext, ActivityRegistry, Client, OrchestrationRegistry, OrchestrationStatus, Runtime,
    RuntimeLimits, RuntimeOptions,
};
use duroxide_store::MemoryProvider;
use tracing::{Instrument, info, info_span};

const WAIT_MAX: Duration = Duration::from_secs(30);

async fn greeting(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    ctx.trace_info("asking");
    let greeting = ctx.schedule_activity("Greet", name).await;
    ctx.trace_info("answered");
    greeting
}

async fn greet(ctx: ActivityContext, name: String) -> Result<String, String> {
    ctx.trace_info("greeting");
    async { info!("inside") }.instrument(info_span!("inner")).await;
    match name.as_str() {
        "nobody" => Err("who?".to_owned()),
        "panic" => panic!("a bad day"),
        "long" => Ok("x".repeat(2_000)),
        "late" => {
            ctx.cancelled().await;
            Ok("too late".to_owned())
        }
        _ => Ok(format!("hello {name}")),
    }
}

async fn countdown(ctx: OrchestrationContext, left: String) -> Result<String, String> {
    match left.parse::<u32>().unwrap() {
        0 => Err("nothing left".to_owned()),
        left => ctx.continue_as_new((left - 1).to_string()).await,
    }
}

async fn impatient(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let greeting = ctx.schedule_activity("Greet", "late");
    let event = ctx.schedule_wait("enough");
    ctx.select2(event, greeting).await;
    Ok("gave up".to_owned())
}

struct Scene {
    spans: Collector,
    client: Client,
    runtime: Arc<Runtime>,
    _guard: tracing::subscriber::DefaultGuard,
}

impl Scene {
    /// A runtime that was started inside a user's span.
    async fn new(options: RuntimeOptions) -> Self {
        let (spans, guard) = Collector::install();
        let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
        let activities = ActivityRegistry::builder().register("Greet", greet).build();
        let orchestrations = OrchestrationRegistry::builder()
            .register_versioned("Greeting", "1.2.0", greeting)
            .register("Countdown", countdown)
            .register("Impatient", impatient)
            .build();
        let start = Runtime::start_with_options(Arc::clone(&store), activities, orchestrations, options)
            .instrument(info_span!("program"));
        let runtime = start.await;
        Self { spans, client: Client::new(store), runtime, _guard: guard }
    }

    /// Runs one instance to its end; returns the spans of turns and activities.
    async fn run(self, instance: &str, orchestration: &str, input: &str) -> Vec<Collected> {
        self.client.start_orchestration(instance, orchestration, input).await.unwrap();
        self.end(instance).await
    }

    async fn end(self, instance: &str) -> Vec<Collected> {
        let ended = self.client.wait_for_orchestration(instance, WAIT_MAX).await.unwrap();
        assert!(!matches!(ended, OrchestrationStatus::Running { .. }));
        self.runtime.shutdown(None).await;
        self.spans.of_targets(&["duroxide::orchestration", "duroxide::activity"])
    }
}

fn outcomes(spans: &[Collected]) -> Vec<(&str, &str)> {
    spans.iter().map(|span| (span.name, span.field("outcome"))).collect()
}

#[tokio::test]
async fn every_turn_and_every_activity_has_a_span_that_carries_its_ids() {
    let spans = Scene::new(RuntimeOptions::default()).await.run("g-1", "Greeting", "Ada").await;
    let [first, activity, second] = spans.as_slice() else { panic!("{spans:#?}") };

    for (turn, number, outcome) in [(first, "1", "running"), (second, "2", "completed")] {
        let expected = [
            ("execution_id", "1"),
            ("instance_id", "g-1"),
            ("orchestration_name", "Greeting"),
            ("orchestration_version", "1.2.0"),
            ("outcome", outcome),
            ("replays", "false"),
            ("turn", number),
        ];
        assert_eq!(turn.field_pairs(), expected);
        assert_eq!((turn.name, turn.target), ("orchestration_turn", "duroxide::orchestration"));
    }
    let mut fields = activity.field_pairs();
    fields.retain(|(name, value)| *name != "worker_id" || !value.starts_with("work-"));
    let expected = [
        ("activity_id", "2"),
        ("activity_name", "Greet"),
        ("attempt_count", "1"),
        ("execution_id", "1"),
        ("instance_id", "g-1"),
        ("orchestration_name", "Greeting"),
        ("orchestration_version", "1.2.0"),
        ("outcome", "success"),
    ];
    assert_eq!(fields, expected);
    assert_eq!((activity.name, activity.target), ("activity_run", "duroxide::activity"));
    for span in &spans {
        assert_eq!(span.parent, None, "what scheduled the work may have been another node: {span:?}");
        assert!(span.closed, "{span:?}");
    }
}

#[tokio::test]
async fn logs_and_spans_of_user_code_are_inside_its_span() {
    let scene = Scene::new(RuntimeOptions::default()).await;
    let all = scene.spans.clone();
    let spans = scene.run("g-1", "Greeting", "Ada").await;
    let lines: Vec<_> = spans.iter().map(|span| span.lines.as_slice()).collect();
    assert_eq!(lines, [["asking"], ["greeting"], ["answered"]]);
    let inner = all.named("inner");
    assert_eq!((inner.parent, inner.lines), (Some("activity_run"), vec!["inside".to_owned()]));
}

/// 2.12: each trace is logged once, in the span of its turn.
#[tokio::test]
async fn a_turn_that_replays_says_so_and_repeats_no_trace() {
    let options = RuntimeOptions { execution_cache_size: 0, ..RuntimeOptions::default() };
    let spans = Scene::new(options).await.run("g-1", "Greeting", "Ada").await;
    let turns: Vec<_> = spans.iter().filter(|span| span.name == "orchestration_turn").collect();
    let replays: Vec<_> =
        turns.iter().map(|turn| (turn.field("turn"), turn.field("replays"), turn.lines.as_slice())).collect();
    let [asking, answered] = [["asking".to_owned()], ["answered".to_owned()]];
    assert_eq!(replays, [("1", "false", asking.as_slice()), ("2", "true", answered.as_slice())]);
}

#[tokio::test]
async fn spans_have_the_outcome_of_turns_and_activities() {
    let turn = "orchestration_turn";
    for (input, activity, end) in
        [("Ada", "success", "completed"), ("nobody", "app_error", "failed"), ("panic", "app_error", "failed")]
    {
        let spans = Scene::new(RuntimeOptions::default()).await.run("g-1", "Greeting", input).await;
        assert_eq!(outcomes(&spans), [(turn, "running"), ("activity_run", activity), (turn, end)]);
    }
    let limits = RuntimeLimits { max_payload_bytes: Some(1_000), ..RuntimeLimits::default() };
    let options = RuntimeOptions { limits, ..RuntimeOptions::default() };
    let spans = Scene::new(options).await.run("g-1", "Greeting", "long").await;
    assert_eq!(outcomes(&spans)[1], ("activity_run", "app_error"), "its result is over the limit");

    let spans = Scene::new(RuntimeOptions::default()).await.run("c-1", "Countdown", "1").await;
    assert_eq!(outcomes(&spans), [(turn, "continued_as_new"), (turn, "failed")]);
    let executions: Vec<_> =
        spans.iter().map(|span| (span.field("execution_id"), span.field("turn"))).collect();
    assert_eq!(executions, [("1", "1"), ("2", "1")]);
    assert_eq!(spans[1].field("replays"), "false", "the successor's code had not run before");
}

/// 7.3
#[tokio::test]
async fn the_span_of_a_cancelled_activity_says_so() {
    let scene = Scene::new(RuntimeOptions::default()).await;
    scene.client.start_orchestration("i-1", "Impatient", "").await.unwrap();
    scene.spans.line("greeting").await;
    scene.client.raise_event("i-1", "enough", "").await.unwrap();
    let spans = scene.end("i-1").await;
    let activity = spans.iter().find(|span| span.name == "activity_run").unwrap();
    assert_eq!((activity.field("outcome"), activity.closed), ("cancelled", true));
}
