//! The stress harness on the memory provider, with a load small enough for every test run.

use std::sync::Arc;

use async_trait::async_trait;
use duroxide_conformance::provider_stress_tests::{
    StressTestConfig, StressTestResult,
    large_payload::{LargePayloadConfig, run_large_payload_test_with_config},
    parallel_orchestrations::{ProviderStressFactory, run_parallel_orchestrations_test},
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

#[tokio::test]
async fn large_payloads_come_back_whole() {
    let base = StressTestConfig { max_concurrent: 2, duration_secs: 0, ..LargePayloadConfig::default().base };
    let config =
        LargePayloadConfig { base, activity_count: 6, sub_orch_count: 2, ..LargePayloadConfig::default() };
    let result = run_large_payload_test_with_config(&Memory, config).await.expect("the test can run");
    assert_all_completed(&result);
}
