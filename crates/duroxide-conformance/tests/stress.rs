//! The stress harness on the memory provider, with a load small enough for every test run.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use duroxide_conformance::provider_stress_tests::{
    StressTestConfig, StressTestResult,
    large_payload::{LargePayloadConfig, measure_large_payload, run_large_payload_test_with_config},
    parallel_orchestrations::{
        ProviderStressFactory, measure_parallel_orchestrations, run_parallel_orchestrations_test,
    },
};
use duroxide_provider::Provider;
use duroxide_store::MemoryProvider;

struct Memory;

#[async_trait]
impl ProviderStressFactory for Memory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(MemoryProvider::new())
    }

    fn stress_test_config(&self) -> StressTestConfig {
        StressTestConfig {
            max_concurrent: 5,
            duration_secs: 1,
            activity_delay_ms: 1,
            ..StressTestConfig::default()
        }
    }
}

fn assert_all_completed(result: &StressTestResult) {
    assert!(result.launched > 0, "something must have been launched");
    assert_eq!((result.completed, result.failed), (result.launched, 0), "{result:?}");
    assert!(result.total_time.as_nanos() > 0 && result.orch_throughput > 0.0 && result.avg_latency_ms > 0.0);
    assert!((result.success_rate() - 100.0).abs() < 1e-9);
}

#[tokio::test]
async fn parallel_orchestrations_all_complete() {
    let result = run_parallel_orchestrations_test(&Memory).await.expect("the test can run");
    assert_all_completed(&result);
    let ratio = result.activity_throughput / result.orch_throughput;
    assert!((ratio - 5.0).abs() < 1e-6, "each orchestration runs five activities: {result:?}");
}

fn few_large_payloads() -> LargePayloadConfig {
    let base = StressTestConfig { max_concurrent: 2, duration_secs: 0, ..LargePayloadConfig::default().base };
    LargePayloadConfig { base, activity_count: 6, sub_orch_count: 2, ..LargePayloadConfig::default() }
}

#[tokio::test]
async fn large_payloads_come_back_whole() {
    let result =
        run_large_payload_test_with_config(&Memory, few_large_payloads()).await.expect("the test can run");
    assert_all_completed(&result);
}

/// No orchestration is faster than the activities it waits for, and the mean lies between minimum and maximum.
#[tokio::test]
async fn latencies_are_those_of_whole_orchestrations() {
    let config = StressTestConfig { duration_secs: 0, ..Memory.stress_test_config() };
    let activity = Duration::from_millis(config.activity_delay_ms);
    let report = measure_parallel_orchestrations(&Memory, config).await.expect("the test can run");
    assert_all_completed(&report.result);
    let latency = report.latency;
    assert!(activity <= latency.min, "{latency:?}");
    assert!(
        latency.min <= latency.p50 && latency.p50 <= latency.p90 && latency.p90 <= latency.p99,
        "{latency:?}"
    );
    assert!(latency.p99 <= latency.max && latency.max <= report.result.total_time, "{report:?}");
    let mean = Duration::from_secs_f64(report.result.avg_latency_ms / 1_000.0);
    let rounding = Duration::from_micros(1);
    assert!(latency.min <= mean + rounding && mean <= latency.max + rounding, "{report:?}");

    let config = few_large_payloads();
    let activities = Duration::from_millis(config.base.activity_delay_ms) * 7;
    let report = measure_large_payload(&Memory, config).await.expect("the test can run");
    assert!(activities <= report.latency.min, "six in a row and one of the children: {report:?}");
}
