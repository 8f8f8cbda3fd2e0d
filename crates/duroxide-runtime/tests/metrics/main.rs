//! B12: the exact metrics of a runtime, by subject.
//!
//! The recorder belongs to the current thread: dispatch and activities run on the test's own tokio thread, and turn
//! threads record nothing.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod activities;
mod executions;
mod gauges;
#[path = "../../src/fixture/recorder.rs"]
mod recorder;
mod totals;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use duroxide_core::OrchestrationContext;
use duroxide_provider::Provider;
use duroxide_runtime::{ActivityRegistry, RuntimeOptions, UnregisteredBackoffConfig};
use duroxide_store::MemoryProvider;
use recorder::Recorder;

/// The timeout of every wait in these tests.
const WAIT_MAX: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(30);

fn memory_store() -> Arc<dyn Provider> {
    Arc::new(MemoryProvider::new())
}

async fn continues(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input == "last" { Ok(input) } else { ctx.continue_as_new("last").await }
}

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder().register("Step", |_ctx, input| async move { Ok(input) }).build()
}

/// Every turn replays, so that changed code is noticed; work without a handler is poison after two attempts. There is a
/// slot for every item, because an item that waits too long for a slot is abandoned, fetched and counted again.
fn options() -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: 32,
        worker_concurrency: 32,
        execution_cache_size: 0,
        max_attempts: 2,
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(1),
            max_delay: Duration::from_millis(1),
        },
        ..Default::default()
    }
}

/// Counters that begin with `prefix`, without it.
fn counters_of(recorder: &Recorder, prefix: &str) -> BTreeMap<String, u64> {
    let counters = recorder.counters().into_iter();
    counters.filter_map(|(name, count)| Some((name.strip_prefix(prefix)?.to_owned(), count))).collect()
}
