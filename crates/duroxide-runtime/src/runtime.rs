//! [`Runtime`]: starts and stops a node.

pub mod typed;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use duroxide_core::{Clock, OrchestrationDescriptor, current_build_version};
use duroxide_provider::Provider;
use duroxide_store::MemoryProvider;
use tracing::{error, info, warn};

use crate::{
    ActivityRegistry, MetricsSnapshot, ObservabilityHandle, OrchestrationRegistry, RuntimeOptions,
    dispatch::{self, Node, NodeParts, describe_ranges, provider_call},
    env::{Env, RealEnv},
    instrumented::InstrumentedProvider,
    observability::MetricsProvider,
    registry::with_builtins,
    shutdown::Shutdown,
};

/// The default time for running work to finish at shutdown.
const SHUTDOWN_DEFAULT: Duration = Duration::from_millis(1_000);

/// A node: it fetches work from a store, runs orchestrations and activities, and commits the results.
///
/// Dropping the handle does not stop the node; [`Self::shutdown`] does.
#[derive(Debug)]
pub struct Runtime {
    shutdown: Arc<Shutdown>,
    observability: Option<ObservabilityHandle>,
}

impl Runtime {
    /// Starts a node on an in-memory store of its own.
    pub async fn start(
        activities: impl Into<ActivityRegistry>,
        orchestrations: impl Into<OrchestrationRegistry>,
    ) -> Arc<Self> {
        Self::start_with_store(Arc::new(MemoryProvider::new()), activities, orchestrations).await
    }

    /// Starts a node on a store, with default options.
    pub async fn start_with_store(
        store: Arc<dyn Provider>,
        activities: impl Into<ActivityRegistry>,
        orchestrations: impl Into<OrchestrationRegistry>,
    ) -> Arc<Self> {
        Self::start_with_options(store, activities, orchestrations, RuntimeOptions::default()).await
    }

    /// Starts a node on a store. The node runs on the current tokio runtime, and calls the store only there.
    ///
    /// # Panics
    /// If `session_idle_timeout` is not above the interval at which worker locks are renewed.
    pub async fn start_with_options(
        store: Arc<dyn Provider>,
        activities: impl Into<ActivityRegistry>,
        orchestrations: impl Into<OrchestrationRegistry>,
        options: RuntimeOptions,
    ) -> Arc<Self> {
        let env = Arc::new(RealEnv::new(options.orchestration_concurrency));
        Self::start_in(env, store, activities, orchestrations, options).await
    }

    /// Starts a node in the given environment, such as the virtual time of a simulator.
    ///
    /// # Panics
    /// As [`Self::start_with_options`].
    pub async fn start_in(
        env: Arc<dyn Env>,
        store: Arc<dyn Provider>,
        activities: impl Into<ActivityRegistry>,
        orchestrations: impl Into<OrchestrationRegistry>,
        options: RuntimeOptions,
    ) -> Arc<Self> {
        options.assert_valid();
        let (observability, metrics) = observe(&options);
        let bits = Arc::clone(&env);
        // Timers are due by the clock of the store, so nodes must record times of the same clock.
        let clock = store.clock().unwrap_or_else(|| Arc::clone(&env) as Arc<dyn Clock>);
        let node = Arc::new(Node::new(NodeParts {
            store: Arc::new(InstrumentedProvider::new(store, Some(Arc::clone(&metrics)))),
            activities: with_builtins(
                &activities.into(),
                Arc::clone(&clock),
                Arc::new(move || bits.random()),
            ),
            orchestrations: orchestrations.into(),
            env,
            clock,
            options,
            metrics,
        }));
        announce(&node);
        dispatch::start(&node).await;
        Arc::new(Self { shutdown: Arc::new(Shutdown::of(node)), observability })
    }

    /// Stops fetching and waits until no part of this node runs or holds the store. Running work may finish within the
    /// timeout (`None` is one second); the rest is aborted and abandoned, its attempt not charged. With 0 everything is
    /// aborted at once, without a call to the store.
    ///
    /// An activity that blocks its thread cannot be aborted: the call waits until its code returns, and logs the
    /// activity at WARN. Code that an activity has started elsewhere, such as with `spawn_blocking`, is waited for
    /// while it holds the activity's context, for five seconds at most. A turn that blocks its thread is left behind,
    /// with a WARN.
    ///
    /// Calls may overlap and may be dropped: all wait for the same shutdown, and the earliest deadline counts.
    pub async fn shutdown(self: Arc<Self>, timeout_ms: Option<u64>) {
        let shutdown = Arc::clone(&self.shutdown);
        drop(self);
        shutdown.within(timeout_ms.map_or(SHUTDOWN_DEFAULT, Duration::from_millis)).await;
    }

    /// The current values of the counters.
    pub fn metrics_snapshot(&self) -> Option<MetricsSnapshot> {
        self.observability.as_ref().map(ObservabilityHandle::metrics_snapshot)
    }

    /// Logging and metrics of this node.
    pub fn observability_handle(&self) -> Option<&ObservabilityHandle> {
        self.observability.as_ref()
    }

    /// Name and version of an instance's orchestration; `None` if the instance is unknown, if the store cannot be read,
    /// or after a shutdown.
    pub async fn get_orchestration_descriptor(&self, instance: &str) -> Option<OrchestrationDescriptor> {
        let node = self.shutdown.node()?;
        provider_call("read_descriptor", node.store.read_descriptor(instance)).await.ok().flatten()
    }
}

/// Sets up logging and metrics. A node runs without them if that fails.
fn observe(options: &RuntimeOptions) -> (Option<ObservabilityHandle>, Arc<MetricsProvider>) {
    match ObservabilityHandle::init(&options.observability) {
        Ok(handle) => {
            let metrics = Arc::clone(handle.metrics_provider());
            (Some(handle), metrics)
        }
        Err(reason) => {
            error!(target: "duroxide::runtime", reason, "observability could not be set up");
            (None, Arc::default())
        }
    }
}

/// Logs the build and its settings, and passes `max_attempts` to the store.
fn announce(node: &Node) {
    let build = current_build_version();
    info!(
        target: "duroxide::runtime",
        "duroxide runtime ({build}) starting with provider {} ({})", node.store.name(), node.store.version()
    );
    let ranges = &node.filter.supported_duroxide_versions;
    let supported_range = describe_ranges(ranges);
    info!(
        target: "duroxide::runtime",
        supported_range, "Orchestration dispatcher capability filter configured"
    );
    if ranges.iter().any(|range| range.max > build) {
        warn!(
            target: "duroxide::runtime",
            supported_range, build_version = %build,
            "supported replay versions reach above this build; executions it cannot decode will end as poison"
        );
    }
    let max_attempts = node.options.max_attempts;
    if catch_unwind(AssertUnwindSafe(|| node.store.set_max_attempts(max_attempts))).is_err() {
        error!(target: "duroxide::runtime", "provider panicked in set_max_attempts");
    }
}
