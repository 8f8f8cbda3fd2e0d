//! The reads of a history by a runtime. The `metrics` facade takes one recorder per process, so this
//! test has a target of its own.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "tests")]

#[path = "../fixture/mod.rs"]
mod fixture;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock},
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::registry::ActivityRegistry,
};
use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use fixture::{File, ended, final_snapshot, node, output};

/// Counts provider calls by operation.
#[derive(Clone, Default)]
struct CallCounter(Arc<Mutex<BTreeMap<String, usize>>>);

impl CallCounter {
    /// The counter of this process; the `metrics` facade takes only one.
    fn installed() -> &'static Self {
        static COUNTER: OnceLock<CallCounter> = OnceLock::new();
        COUNTER.get_or_init(|| {
            let counter = CallCounter::default();
            metrics::set_global_recorder(counter.clone()).expect("nobody else records");
            counter
        })
    }

    fn of(&self, operation: &str) -> usize {
        self.0.lock().unwrap().get(operation).copied().unwrap_or(0)
    }
}

struct Call {
    counter: CallCounter,
    operation: String,
}

impl HistogramFn for Call {
    fn record(&self, _seconds: f64) {
        *self.counter.0.lock().unwrap().entry(self.operation.clone()).or_default() += 1;
    }
}

impl Recorder for CallCounter {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match key.labels().find(|label| label.key() == "operation") {
            Some(label) if key.name() == "duroxide_provider_operation_duration_seconds" => {
                let call = Call { counter: self.clone(), operation: label.value().to_owned() };
                Histogram::from_arc(Arc::new(call))
            }
            _ => Histogram::noop(),
        }
    }
}

/// Runs activities one after the other and returns how often the runtime read a history meanwhile.
async fn history_reads(activities: usize, options: RuntimeOptions) -> usize {
    let calls = CallCounter::installed();
    let reads = || ["load_execution", "read", "read_with_execution"].map(|read| calls.of(read)).iter().sum();
    let before: usize = reads();
    let registry = ActivityRegistry::builder()
        .register("Echo", |ctx: ActivityContext, input| async move {
            Ok(format!("{}@{}:{input}", ctx.orchestration_name(), ctx.orchestration_version()))
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Sequence", |ctx: OrchestrationContext, count: String| async move {
            let mut last = String::new();
            for n in 0..count.parse::<usize>().unwrap() {
                last = ctx.schedule_activity("Echo", n.to_string()).await?;
            }
            Ok(last)
        })
        .build();
    let file = File::new();
    let store = file.open().await;
    let runtime = node(&store, registry, orchestrations, options).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("long", "Sequence", activities.to_string()).await.unwrap();
    let expected = format!("Sequence@1.0.0:{}", activities - 1);
    assert_eq!(output(ended(&client, "long").await), expected);
    final_snapshot(runtime).await;
    let after: usize = reads();
    after - before
}

/// B21, 7.6, 2.14: neither a turn on a cached execution nor an activity reads the history, at any length.
#[tokio::test(flavor = "multi_thread")]
async fn a_cached_execution_reads_no_history_and_a_cold_one_reads_it_once_per_turn() {
    assert_eq!(history_reads(200, RuntimeOptions::default()).await, 0);
    let cold = RuntimeOptions { execution_cache_size: 0, ..RuntimeOptions::default() };
    assert_eq!(history_reads(20, cold).await, 20, "every turn but the first");
}
