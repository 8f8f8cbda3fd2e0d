//! Puts load on a provider through a real runtime and measures it.
//!
//! A run launches orchestrations for a given time, with a maximum number in flight, waits for all of them and counts
//! their outcomes. [`parallel_orchestrations`] fans out over small activities, [`large_payload`] moves large histories.
//!
//! `run_` functions return counts, throughput and the mean latency. `measure_` functions also return the latency
//! percentiles.

pub mod large_payload;
mod latency;
mod launch;
pub mod parallel_orchestrations;
mod result;
mod table;

use std::{error::Error, sync::Arc, time::Duration};

use duroxide_core::OrchestrationContext;
use duroxide_provider::Provider;
use duroxide_runtime::{ActivityContext, ActivityRegistry, OrchestrationRegistry, Runtime, RuntimeOptions};
use serde::{Deserialize, Serialize};

pub use self::{
    latency::{Latency, StressTestReport},
    result::StressTestResult,
    table::{print_comparison_table, print_latency_table},
};

use self::launch::{Load, run_load};

/// The orchestration that [`run_stress_test`] launches.
const FANOUT: &str = "FanoutOrchestration";
/// The activity that `FanoutOrchestration` schedules.
const PROCESS_TASK: &str = "ProcessTask";

/// The load of a stress test: concurrency, duration and slots.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StressTestConfig {
    /// The maximum number of orchestrations in flight.
    pub max_concurrent: usize,
    /// The time during which orchestrations are launched.
    pub duration_secs: u64,
    /// Activities that each orchestration schedules.
    pub tasks_per_instance: usize,
    /// How long each activity takes.
    pub activity_delay_ms: u64,
    /// Orchestration slots of the runtime.
    pub orch_concurrency: usize,
    /// Activity slots of the runtime.
    pub worker_concurrency: usize,
    /// The time limit for the end of one orchestration.
    pub wait_timeout_secs: u64,
}

impl Default for StressTestConfig {
    fn default() -> Self {
        Self {
            max_concurrent: 20,
            duration_secs: 10,
            tasks_per_instance: 5,
            activity_delay_ms: 10,
            orch_concurrency: 2,
            worker_concurrency: 2,
            wait_timeout_secs: 60,
        }
    }
}

/// Launches `FanoutOrchestration` of the given registry on the provider until the time is over, waits for all instances and
/// counts their outcomes.
///
/// # Errors
/// If an orchestration cannot be started.
pub async fn run_stress_test(
    config: StressTestConfig,
    provider: Arc<dyn Provider>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
) -> Result<StressTestResult, Box<dyn Error>> {
    Ok(measure_stress_test(config, provider, activities, orchestrations).await?.result)
}

/// Like [`run_stress_test`], and also returns the latencies.
///
/// # Errors
/// If an orchestration cannot be started.
pub async fn measure_stress_test(
    config: StressTestConfig,
    provider: Arc<dyn Provider>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
) -> Result<StressTestReport, Box<dyn Error>> {
    let tasks_per_instance = config.tasks_per_instance;
    let load = Load {
        orchestration: FANOUT,
        input: serde_json::to_string(&tasks_per_instance)?,
        activities_per_instance: tasks_per_instance,
    };
    run_with_runtime(&config, provider, activities, orchestrations, load).await
}

/// Starts a runtime with the configured slots, runs the load on it and stops it.
async fn run_with_runtime(
    config: &StressTestConfig,
    provider: Arc<dyn Provider>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
    load: Load,
) -> Result<StressTestReport, Box<dyn Error>> {
    let options = RuntimeOptions {
        orchestration_concurrency: config.orch_concurrency,
        worker_concurrency: config.worker_concurrency,
        ..RuntimeOptions::default()
    };
    let store = Arc::clone(&provider);
    let runtime = Runtime::start_with_options(store, activities, orchestrations, options).await;
    let result = run_load(config, provider, load).await;
    runtime.shutdown(None).await;
    result
}

/// The activity `ProcessTask`, which takes `delay_ms` milliseconds.
pub fn create_default_activities(delay_ms: u64) -> ActivityRegistry {
    let process = move |_: ActivityContext, input: String| async move {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        Ok(format!("processed {input}"))
    };
    ActivityRegistry::builder().register(PROCESS_TASK, process).build()
}

/// The orchestration `FanoutOrchestration`, which schedules as many activities as its input says and waits for all.
pub fn create_default_orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder().register(FANOUT, fan_out).build()
}

async fn fan_out(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let tasks: usize = serde_json::from_str(&input).map_err(|error| format!("input {input:?}: {error}"))?;
    let scheduled =
        (0..tasks).map(|task| ctx.schedule_activity(PROCESS_TASK, format!("task {task}"))).collect();
    let results = ctx.join(scheduled).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(format!("{} tasks", results.len()))
}
