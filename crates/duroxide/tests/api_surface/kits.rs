//! A16: the provider test kits.

#[cfg(all(feature = "testing", feature = "sqlite"))]
mod testing;
mod validations;

use std::{error::Error, sync::Arc, time::Duration};

use async_trait::async_trait;
use duroxide::{
    OrchestrationRegistry,
    provider_stress_tests::{
        self, StressTestConfig, StressTestResult,
        large_payload::{self, LargePayloadConfig},
        parallel_orchestrations::{self, ProviderStressFactory},
    },
    provider_validations::ProviderFactory,
    providers::Provider,
    runtime::registry::ActivityRegistry,
};

use crate::bounds;

/// A factory with exactly the required method.
struct Factory;

#[async_trait]
impl ProviderFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        panic!("nothing is run here")
    }
}

#[test]
fn factories_have_the_documented_defaults() {
    assert_eq!(Factory.lock_timeout(), Duration::from_secs(5));
    assert_eq!(Factory.short_poll_threshold(), Duration::from_millis(100));
    let _ = async |factory: &dyn ProviderFactory| -> u32 {
        factory.corrupt_instance_history("i").await;
        factory.get_max_attempt_count("i").await
    };
}

type Stressed = Result<StressTestResult, Box<dyn Error>>;

#[test]
fn stress_configurations_have_the_documented_defaults() {
    bounds::value::<StressTestConfig>();
    bounds::serde::<StressTestConfig>();
    let StressTestConfig {
        max_concurrent,
        duration_secs,
        tasks_per_instance,
        activity_delay_ms,
        orch_concurrency,
        worker_concurrency,
        wait_timeout_secs,
    } = StressTestConfig::default();
    assert_eq!((max_concurrent, duration_secs, tasks_per_instance, activity_delay_ms), (20, 10, 5, 10));
    assert_eq!((orch_concurrency, worker_concurrency, wait_timeout_secs), (2, 2, 60));

    bounds::value::<LargePayloadConfig>();
    let large = LargePayloadConfig::default();
    assert_eq!((large.base.max_concurrent, large.base.duration_secs), (5, 10));
    assert_eq!((large.base.tasks_per_instance, large.base.activity_delay_ms), (1, 5));
    assert_eq!((large.base.orch_concurrency, large.base.worker_concurrency), (1, 1));
    assert_eq!(large.base.wait_timeout_secs, 120);
    assert_eq!((large.small_payload_kb, large.medium_payload_kb, large.large_payload_kb), (10, 50, 100));
    assert_eq!((large.activity_count, large.sub_orch_count), (20, 5));
}

#[test]
fn latencies_are_measured_with_the_throughput() {
    use duroxide::provider_stress_tests::{Latency, StressTestReport};
    bounds::value::<StressTestReport>();
    bounds::value::<Latency>();
    let Latency { min, p50, p90, p99, max, .. } = Latency::of([Duration::from_secs(1)]);
    assert_eq!([min, p50, p90, p99, max], [Duration::from_secs(1); 5]);
    let _: fn(&StressTestReport) -> (&StressTestResult, &Latency) =
        |report| (&report.result, &report.latency);
    let _: fn(&[(String, String, StressTestReport)]) = provider_stress_tests::print_latency_table;
    type Measured = Result<StressTestReport, Box<dyn Error>>;
    let _ = async |config, provider: Arc<dyn Provider>, activities, orchestrations| -> Measured {
        provider_stress_tests::measure_stress_test(config, provider, activities, orchestrations).await
    };
    let _ = async |factory: &dyn ProviderStressFactory, config| -> Measured {
        parallel_orchestrations::measure_parallel_orchestrations(factory, config).await
    };
    let _ = async |factory: &dyn ProviderStressFactory, config| -> Measured {
        large_payload::measure_large_payload(factory, config).await
    };
}

#[test]
fn stress_results_are_built_in_full() {
    bounds::value::<StressTestResult>();
    let result = StressTestResult {
        launched: 4,
        completed: 3,
        failed: 1,
        failed_infrastructure: 0,
        failed_configuration: 0,
        failed_application: 1,
        total_time: Duration::from_secs(1),
        orch_throughput: 3.0,
        activity_throughput: 15.0,
        avg_latency_ms: 12.5,
    };
    assert!((result.success_rate() - 75.0).abs() < f64::EPSILON);
    let _: fn(&[(String, String, StressTestResult)]) = provider_stress_tests::print_comparison_table;
}

/// A stress factory with exactly the required method.
#[async_trait]
impl ProviderStressFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        panic!("nothing is run here")
    }
}

#[test]
fn stress_runners() {
    let activities: ActivityRegistry = provider_stress_tests::create_default_activities(10);
    let orchestrations: OrchestrationRegistry = provider_stress_tests::create_default_orchestrations();
    assert!(activities.has("ProcessTask") && orchestrations.has("FanoutOrchestration"));
    let _: StressTestConfig = Factory.stress_test_config();
    let _ = async |factory: &dyn ProviderStressFactory, store: Arc<dyn Provider>| -> Stressed {
        let config = StressTestConfig::default();
        provider_stress_tests::run_stress_test(config.clone(), store, activities, orchestrations).await?;
        parallel_orchestrations::run_parallel_orchestrations_test(factory).await?;
        parallel_orchestrations::run_parallel_orchestrations_test_with_config(factory, config).await?;
        large_payload::run_large_payload_test(factory).await?;
        large_payload::run_large_payload_test_with_config(factory, LargePayloadConfig::default()).await
    };
}
