//! The resident memory of a node whose cached executions reach their byte bound.

use std::{sync::Arc, time::Duration};

use duroxide::{
    Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions, runtime::registry::ActivityRegistry,
};

use crate::fixture::{File, node, within};

const MIB: usize = 1 << 20;

/// The most memory that this process had resident, in bytes; `None` where the system does not say.
fn peak_resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? * 1_024)
}

async fn wait_with_input(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let go = ctx.schedule_wait("go").await;
    Ok(format!("{go}{}", input.len()))
}

/// Runs the first turn of so many instances, and returns how much memory the process had at most.
async fn resident_with(instances: usize, input_bytes: usize, options: RuntimeOptions) -> Option<usize> {
    let file = File::new();
    let store = file.open().await;
    let orchestrations = OrchestrationRegistry::builder().register("Wait", wait_with_input).build();
    let runtime = node(&store, ActivityRegistry::builder().build(), orchestrations, options).await;
    let client = Client::new(Arc::clone(&store));
    for n in 0..instances {
        client.start_orchestration(&format!("wait-{n}"), "Wait", "x".repeat(input_bytes)).await.unwrap();
    }
    within(Duration::from_secs(300), "every instance waits", async || {
        client.get_system_metrics().await.is_ok_and(|metrics| metrics.running_instances == instances as u64)
    })
    .await;
    let resident = peak_resident();
    runtime.shutdown(None).await;
    resident
}

async fn measure(instances: usize, input_bytes: usize, bound: usize) {
    let options = RuntimeOptions { execution_cache_bytes: bound, ..RuntimeOptions::default() };
    let Some(resident) = resident_with(instances, input_bytes, options).await else { return };
    let (resident_mib, bound_mib) = (resident / MIB, bound / MIB);
    println!(
        "{instances} instances of {input_bytes} bytes: {resident_mib} MiB resident, bound {bound_mib} MiB"
    );
    assert!(resident <= bound / 2 * 3, "{resident_mib} MiB resident with a bound of {bound_mib} MiB");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn five_hundred_large_instances_stay_within_one_and_a_half_times_the_bound() {
    measure(500, MIB, RuntimeOptions::default().execution_cache_bytes).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn a_thousand_large_instances_stay_within_one_and_a_half_times_the_bound() {
    measure(1_000, MIB, RuntimeOptions::default().execution_cache_bytes).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn ten_thousand_small_instances_cost_about_their_estimate() {
    measure(10_000, 16, 64 * MIB).await;
}
