//! Many small orchestrations at once, each of which fans out over short activities.

use std::{error::Error, sync::Arc};

use async_trait::async_trait;
use duroxide_provider::Provider;

use super::{
    StressTestConfig, StressTestReport, StressTestResult, create_default_activities,
    create_default_orchestrations, measure_stress_test,
};

/// Makes the provider that is put under load.
#[async_trait]
pub trait ProviderStressFactory: Sync + Send {
    /// A provider on an empty store.
    async fn create_provider(&self) -> Arc<dyn Provider>;

    /// The load.
    fn stress_test_config(&self) -> StressTestConfig {
        StressTestConfig::default()
    }
}

/// Runs the test with the factory's configuration.
///
/// # Errors
/// If an orchestration cannot be started.
pub async fn run_parallel_orchestrations_test(
    factory: &dyn ProviderStressFactory,
) -> Result<StressTestResult, Box<dyn Error>> {
    run_parallel_orchestrations_test_with_config(factory, factory.stress_test_config()).await
}

/// Runs the test with this configuration.
///
/// # Errors
/// If an orchestration cannot be started.
pub async fn run_parallel_orchestrations_test_with_config(
    factory: &dyn ProviderStressFactory,
    config: StressTestConfig,
) -> Result<StressTestResult, Box<dyn Error>> {
    Ok(measure_parallel_orchestrations(factory, config).await?.result)
}

/// Runs the test with this configuration, and also returns the latencies.
///
/// # Errors
/// If an orchestration cannot be started.
pub async fn measure_parallel_orchestrations(
    factory: &dyn ProviderStressFactory,
    config: StressTestConfig,
) -> Result<StressTestReport, Box<dyn Error>> {
    let provider = factory.create_provider().await;
    let activities = create_default_activities(config.activity_delay_ms);
    measure_stress_test(config, provider, activities, create_default_orchestrations()).await
}
