//! Every span of an instance is in the trace of its caller, and none is exported twice.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "this is a test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use duroxide::{prelude::*, runtime::observability::set_trace_propagator};
use opentelemetry::trace::{SpanId, TraceContextExt as _, TraceId, TracerProvider as _};
use opentelemetry_example::OpenTelemetryPropagator;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use tracing::{Instrument as _, Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer as _, filter::Targets, layer::SubscriberExt as _};

const LONG: Duration = Duration::from_secs(60);

/// Keeps every span that was exported, in the order of their ends. The tests of this program share it.
#[derive(Debug, Clone, Default)]
struct Exported(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Exported {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

static EXPORTED: LazyLock<Exported> = LazyLock::new(|| {
    let exported = Exported::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exported.clone()).build();
    let ours = Targets::new()
        .with_target("duroxide", tracing::Level::INFO)
        .with_target("one_trace", tracing::Level::INFO);
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test")).with_filter(ours);
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
    set_trace_propagator(OpenTelemetryPropagator).unwrap();
    exported
});

fn attribute(span: &SpanData, key: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == key);
    found.map(|attribute| attribute.value.as_str().into_owned()).unwrap_or_default()
}

/// The spans of instances whose id begins like this.
fn spans_of(instances: &str) -> Vec<SpanData> {
    let exported = EXPORTED.0.lock().unwrap();
    exported.iter().filter(|span| attribute(span, "instance_id").starts_with(instances)).cloned().collect()
}

/// How often each activity was exported, and how often each turn.
fn runs(spans: &[SpanData]) -> BTreeMap<String, usize> {
    let mut runs = BTreeMap::new();
    for span in spans {
        let instance = attribute(span, "instance_id");
        let (_, instance) = instance.split_once('/').unwrap();
        let run = match span.name.as_ref() {
            "activity_run" => attribute(span, "activity_name"),
            _ => format!("{instance} {}.{}", attribute(span, "execution_id"), attribute(span, "turn")),
        };
        *runs.entry(run).or_default() += 1;
    }
    runs
}

/// An activity, a wait during which the node is replaced, a child with an activity, a timer, another activity, a detached
/// orchestration, and a second execution.
async fn trip(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input == "back" {
        return ctx.schedule_activity("Unpack", "").await;
    }
    ctx.schedule_activity("Book", &input).await?;
    ctx.set_custom_status("booked");
    ctx.schedule_wait("Go").await;
    ctx.schedule_sub_orchestration_with_id("Pack", format!("{input}/child"), "").await?;
    ctx.schedule_timer(Duration::from_millis(1)).await;
    ctx.schedule_activity("Travel", "").await?;
    ctx.schedule_orchestration("Pack", format!("{input}/detached"), "detached");
    ctx.continue_as_new("back").await
}

async fn pack(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let name = if input.is_empty() { "Fold" } else { "Mail" };
    ctx.schedule_activity(name, "").await
}

async fn node(file: &Path, cached: usize) -> (Arc<Runtime>, Client) {
    let mut activities = ActivityRegistry::builder();
    for name in ["Book", "Fold", "Mail", "Travel", "Unpack"] {
        activities = activities.register(name, |_ctx, _input| async { Ok(String::new()) });
    }
    let orchestrations =
        OrchestrationRegistry::builder().register("Trip", trip).register("Pack", pack).build();
    let store = Arc::new(SqliteProvider::new(&format!("sqlite:{}", file.display()), None).await.unwrap());
    let options = RuntimeOptions { execution_cache_size: cached, ..Default::default() };
    let runtime =
        Runtime::start_with_options(store.clone(), activities.build(), orchestrations, options).await;
    (runtime, Client::new(store))
}

/// Runs the whole trip, with a new node on the same file in the middle. Returns the trace of the caller and its span.
async fn travel(trip: &str, cached: usize, caller: &Span) -> (TraceId, SpanId) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let root = format!("{trip}/root");
    let (first, client) = node(&file, cached).await;
    client.start_orchestration(&root, "Trip", trip).instrument(caller.clone()).await.unwrap();
    client.wait_for_status_change(&root, 0, Duration::from_millis(5), LONG).await.unwrap();
    first.shutdown(None).await;
    drop(client);

    let (second, client) = node(&file, cached).await;
    client.raise_event(&root, "Go", "").await.unwrap();
    for instance in [root, format!("{trip}/detached")] {
        let end = client.wait_for_orchestration(&instance, LONG).await.unwrap();
        assert!(matches!(end, OrchestrationStatus::Completed { .. }), "{end:?}");
    }
    second.shutdown(None).await;
    let context = caller.context();
    let span = context.span();
    (span.span_context().trace_id(), span.span_context().span_id())
}

/// What runs in a trip, each once, whatever is replayed. The second turn of the root's first execution waits for `Go`.
fn expected_runs() -> BTreeMap<String, usize> {
    let activities = ["Book", "Fold", "Mail", "Travel", "Unpack"];
    let root =
        ["root 1.1", "root 1.2", "root 1.3", "root 1.4", "root 1.5", "root 1.6", "root 2.1", "root 2.2"];
    let others = ["child 1.1", "child 1.2", "detached 1.1", "detached 1.2"];
    activities.iter().chain(&root).chain(&others).map(|run| ((*run).to_owned(), 1)).collect()
}

#[tokio::test]
async fn all_spans_of_an_instance_are_in_its_callers_trace_and_replay_adds_none() {
    LazyLock::force(&EXPORTED);
    // Without a cache every turn replays the whole history.
    for (trip, cached) in [("cached", 100), ("replayed", 0)] {
        let caller = info_span!("request");
        let (trace, caller) = travel(trip, cached, &caller).await;
        let spans = spans_of(trip);
        assert_eq!(runs(&spans), expected_runs(), "{trip}");
        assert!(spans.iter().all(|span| span.span_context.trace_id() == trace), "{trip}");
        let replays = spans.iter().filter(|span| attribute(span, "replays") == "true").count();
        assert_eq!(replays, if cached == 0 { 8 } else { 1 }, "{trip}: the new node replays at least once");
        check_parents(&spans, caller);
    }
}

/// Turns of the root are children of the caller. Everything else is a child of the turn that scheduled it.
#[track_caller]
fn check_parents(spans: &[SpanData], caller: SpanId) {
    let turns_of = |instance: &str| -> BTreeSet<String> {
        let turns = spans.iter().filter(|span| span.name == "orchestration_turn");
        let of_instance = turns.filter(|span| attribute(span, "instance_id").ends_with(instance));
        of_instance.map(|span| span.span_context.span_id().to_string()).collect()
    };
    for span in spans {
        let (instance, parent) = (attribute(span, "instance_id"), span.parent_span_id.to_string());
        let is_turn = span.name == "orchestration_turn";
        let expected = match instance.split_once('/').unwrap().1 {
            "root" if is_turn => BTreeSet::from([caller.to_string()]),
            _ if is_turn => turns_of("/root"),
            instance => turns_of(&format!("/{instance}")),
        };
        assert!(expected.contains(&parent), "{} of {instance}: {span:?}", span.name);
    }
    // The turn that scheduled it, not just any of the instance.
    let span_of = |name: &str, key: &str| spans.iter().find(|span| attribute(span, key) == name).unwrap();
    let first_turn = spans.iter().find(|span| attribute(span, "turn") == "1").unwrap();
    assert_eq!(span_of("Book", "activity_name").parent_span_id, first_turn.span_context.span_id());
}

/// Nothing is connected, as it was before there were trace contexts.
#[tokio::test]
async fn without_a_caller_every_span_is_its_own_trace() {
    LazyLock::force(&EXPORTED);
    travel("alone", 100, &Span::none()).await;
    let spans = spans_of("alone");
    assert_eq!(runs(&spans), expected_runs());
    let traces: BTreeSet<_> = spans.iter().map(|span| span.span_context.trace_id().to_string()).collect();
    assert_eq!(traces.len(), spans.len());
    assert!(spans.iter().all(|span| span.parent_span_id == SpanId::INVALID));
}

/// A start from inside an activity belongs to the trace of that activity.
#[tokio::test]
async fn what_an_activity_starts_belongs_to_its_trace() {
    LazyLock::force(&EXPORTED);
    let activities = ActivityRegistry::builder()
        .register("Start", |ctx: ActivityContext, id: String| async move {
            ctx.get_client().start_orchestration(id, "Last", "").await.map_err(|error| error.to_string())?;
            Ok(String::new())
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register(
            "First",
            |ctx: OrchestrationContext, id| async move { ctx.schedule_activity("Start", id).await },
        )
        .register("Last", |_ctx, _input| async { Ok(String::new()) })
        .build();
    let store = Arc::new(SqliteProvider::new_in_memory().await.unwrap());
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    let caller = info_span!("request");
    let start = client.start_orchestration("chain/first", "First", "chain/last");
    start.instrument(caller.clone()).await.unwrap();
    client.wait_for_orchestration("chain/first", LONG).await.unwrap();
    client.wait_for_orchestration("chain/last", LONG).await.unwrap();
    runtime.shutdown(None).await;
    let spans = spans_of("chain");
    let trace = caller.context().span().span_context().trace_id();
    assert_eq!(spans.iter().map(|span| span.span_context.trace_id()).collect::<Vec<_>>(), [trace; 4]);
    let activity = spans.iter().find(|span| span.name == "activity_run").unwrap();
    let last = spans.iter().find(|span| attribute(span, "instance_id") == "chain/last").unwrap();
    assert_eq!(last.parent_span_id, activity.span_context.span_id());
}
