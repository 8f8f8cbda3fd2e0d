//! A real runtime on a provider under test.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use duroxide_core::{Event, OrchestrationContext};
use duroxide_provider::Provider;
use duroxide_runtime::{
    ActivityRegistry, Client, OrchestrationRegistry, OrchestrationRegistryBuilder, OrchestrationStatus,
    Runtime, RuntimeOptions, UnregisteredBackoffConfig,
};

const WAIT_MAX: Duration = Duration::from_secs(30);

/// A node without a cache, which replays every turn from the stored history.
pub(crate) struct Node {
    runtime: Arc<Runtime>,
    client: Client,
    provider: Arc<dyn Provider>,
}

/// Options of a [`Node`]: no cache, short waits.
pub(crate) fn replaying() -> RuntimeOptions {
    RuntimeOptions {
        dispatcher_min_poll_interval: Duration::from_millis(10),
        execution_cache_size: 0,
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(50),
            max_delay: Duration::from_millis(100),
        },
        max_attempts: 1_000,
        ..RuntimeOptions::default()
    }
}

/// A registry with one version of the orchestration `Race`.
pub(crate) fn race<F, Fut>(version: &str, code: F) -> OrchestrationRegistry
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    with_race(OrchestrationRegistry::builder(), version, code).build()
}

/// Adds a version of the orchestration `Race`.
pub(crate) fn with_race<F, Fut>(
    builder: OrchestrationRegistryBuilder,
    version: &str,
    code: F,
) -> OrchestrationRegistryBuilder
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    builder.register_versioned("Race", version, code)
}

impl Node {
    pub(crate) async fn start(provider: &Arc<dyn Provider>, orchestrations: OrchestrationRegistry) -> Self {
        Self::start_with(provider, orchestrations, replaying()).await
    }

    pub(crate) async fn start_with(
        provider: &Arc<dyn Provider>,
        orchestrations: OrchestrationRegistry,
        options: RuntimeOptions,
    ) -> Self {
        let activities = ActivityRegistry::builder().build();
        let store = Arc::clone(provider);
        let runtime = Runtime::start_with_options(store, activities, orchestrations, options).await;
        Self { runtime, client: Client::new(Arc::clone(provider)), provider: Arc::clone(provider) }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) async fn stop(self) {
        self.runtime.shutdown(None).await;
    }

    /// Waits until the stored history of the current execution satisfies a condition.
    pub(crate) async fn until_history(&self, instance: &str, what: &str, holds: impl Fn(&[Event]) -> bool) {
        let give_up = Instant::now() + WAIT_MAX;
        loop {
            let history = self.provider.read(instance).await.expect("read must work");
            if holds(&history) {
                return;
            }
            assert!(Instant::now() < give_up, "{instance}: {what}, but its history is {history:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits for the end of an instance.
    pub(crate) async fn end_of(&self, instance: &str) -> OrchestrationStatus {
        let ended = self.client.wait_for_orchestration(instance, WAIT_MAX).await;
        ended.unwrap_or_else(|error| panic!("{instance} must end: {error}"))
    }

    /// Waits for the output of an instance that must complete.
    pub(crate) async fn output_of(&self, instance: &str) -> String {
        match self.end_of(instance).await {
            OrchestrationStatus::Completed { output, .. } => output,
            other => panic!("{instance} must complete, but is {other:?}"),
        }
    }
}
