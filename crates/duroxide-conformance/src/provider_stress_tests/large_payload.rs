//! Few orchestrations with large histories: activities and children that take and return large payloads.

use std::{error::Error, time::Duration};

use duroxide_core::OrchestrationContext;
use duroxide_runtime::{ActivityContext, ActivityRegistry, OrchestrationRegistry};
use serde::{Deserialize, Serialize};

use super::{
    StressTestConfig, StressTestReport, StressTestResult, launch::Load,
    parallel_orchestrations::ProviderStressFactory, run_with_runtime,
};

const LARGE_PAYLOAD: &str = "LargePayloadOrchestration";
const LARGE_PAYLOAD_CHILD: &str = "LargePayloadChild";
const ECHO: &str = "EchoPayload";

/// The load and the payload sizes of the test.
#[derive(Debug, Clone)]
pub struct LargePayloadConfig {
    /// The load.
    pub base: StressTestConfig,
    /// The small payloads.
    pub small_payload_kb: usize,
    /// The medium payloads.
    pub medium_payload_kb: usize,
    /// The large payloads.
    pub large_payload_kb: usize,
    /// Activities of each orchestration; their payloads are small, medium and large in turn.
    pub activity_count: usize,
    /// Children of each orchestration; each runs one activity with a medium payload.
    pub sub_orch_count: usize,
}

impl Default for LargePayloadConfig {
    fn default() -> Self {
        Self {
            base: StressTestConfig {
                max_concurrent: 5,
                duration_secs: 10,
                tasks_per_instance: 1,
                activity_delay_ms: 5,
                orch_concurrency: 1,
                worker_concurrency: 1,
                wait_timeout_secs: 120,
            },
            small_payload_kb: 10,
            medium_payload_kb: 50,
            large_payload_kb: 100,
            activity_count: 20,
            sub_orch_count: 5,
        }
    }
}

/// The input of an orchestration.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Plan {
    /// Payload sizes in KiB, used in turn.
    payload_kb: [usize; 3],
    activities: usize,
    children: usize,
}

/// Runs the test with the default configuration.
///
/// # Errors
/// If an orchestration cannot be started.
pub async fn run_large_payload_test(
    factory: &dyn ProviderStressFactory,
) -> Result<StressTestResult, Box<dyn Error>> {
    run_large_payload_test_with_config(factory, LargePayloadConfig::default()).await
}

/// Runs the test with this configuration.
///
/// # Errors
/// If an orchestration cannot be started.
pub async fn run_large_payload_test_with_config(
    factory: &dyn ProviderStressFactory,
    config: LargePayloadConfig,
) -> Result<StressTestResult, Box<dyn Error>> {
    Ok(measure_large_payload(factory, config).await?.result)
}

/// Runs the test with this configuration, and also returns the latencies.
///
/// # Errors
/// If an orchestration cannot be started.
pub async fn measure_large_payload(
    factory: &dyn ProviderStressFactory,
    config: LargePayloadConfig,
) -> Result<StressTestReport, Box<dyn Error>> {
    let plan = Plan {
        payload_kb: [config.small_payload_kb, config.medium_payload_kb, config.large_payload_kb],
        activities: config.activity_count,
        children: config.sub_orch_count,
    };
    let load = Load {
        orchestration: LARGE_PAYLOAD,
        input: serde_json::to_string(&plan)?,
        activities_per_instance: config.activity_count + config.sub_orch_count,
    };
    let provider = factory.create_provider().await;
    let activities = echo_activity(config.base.activity_delay_ms);
    run_with_runtime(&config.base, provider, activities, orchestrations(), load).await
}

fn echo_activity(delay_ms: u64) -> ActivityRegistry {
    let echo = move |_: ActivityContext, input: String| async move {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        Ok(input)
    };
    ActivityRegistry::builder().register(ECHO, echo).build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register(LARGE_PAYLOAD, move_payloads)
        .register(LARGE_PAYLOAD_CHILD, |ctx, input| async move { echo(&ctx, input).await })
        .build()
}

async fn move_payloads(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let plan: Plan = serde_json::from_str(&input).map_err(|error| error.to_string())?;
    let mut moved = 0;
    for size_kb in plan.payload_kb.into_iter().cycle().take(plan.activities) {
        moved += echo(&ctx, payload(size_kb)).await?.len();
    }
    let [_, medium_kb, _] = plan.payload_kb;
    let children = (0..plan.children)
        .map(|_| ctx.schedule_sub_orchestration(LARGE_PAYLOAD_CHILD, payload(medium_kb)))
        .collect();
    for returned in ctx.join(children).await {
        moved += returned?.len();
    }
    Ok(format!("{moved} bytes"))
}

/// Sends a payload through an activity and checks that it returns unchanged.
async fn echo(ctx: &OrchestrationContext, payload: String) -> Result<String, String> {
    let size = payload.len();
    let returned = ctx.schedule_activity(ECHO, payload).await?;
    if returned.len() == size {
        Ok(returned)
    } else {
        Err(format!("a payload of {size} bytes came back with {} bytes", returned.len()))
    }
}

fn payload(size_kb: usize) -> String {
    "x".repeat(size_kb * 1024)
}
