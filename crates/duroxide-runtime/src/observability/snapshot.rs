//! [`MetricsSnapshot`] and the counters of a runtime.

use std::sync::atomic::{AtomicU64, Ordering};

/// Declares the snapshot and the counters behind it from one list of fields.
macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// The counters of one runtime at one moment.
        #[derive(Debug, Default, Clone, PartialEq, Eq)]
        pub struct MetricsSnapshot {
            $($(#[$doc])* pub $field: u64,)*
        }

        /// The counters behind [`MetricsSnapshot`].
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $field: Count,)*
        }

        impl Counters {
            pub(super) fn snapshot(&self) -> MetricsSnapshot {
                MetricsSnapshot { $($field: self.$field.get(),)* }
            }
        }
    };
}

counters! {
    /// Executions whose first turn was committed.
    orch_starts,
    /// Executions that completed.
    orch_completions,
    /// Executions that failed.
    orch_failures,
    /// Executions that failed because of their code.
    orch_application_errors,
    /// Executions that failed because of the platform.
    orch_infrastructure_errors,
    /// Executions that failed because of the deployment.
    orch_configuration_errors,
    /// Executions ended as poison.
    orch_poison,
    /// Activities that returned a result.
    activity_success,
    /// Activities that returned an error.
    activity_app_errors,
    /// Activities that failed because of the platform.
    activity_infra_errors,
    /// Activities that failed because of the deployment.
    activity_config_errors,
    /// Activities ended as poison.
    activity_poison,
    /// Orchestrator batches fetched.
    orch_dispatcher_items_fetched,
    /// Activities fetched.
    worker_dispatcher_items_fetched,
    /// Executions that continued as new.
    orch_continue_as_new,
    /// Ended calls of children.
    suborchestration_calls,
    /// Failed provider calls.
    provider_errors,
    /// Orchestrator batches abandoned because the node has no handler.
    unregistered_orch_backoff,
    /// Activities abandoned because the node has no handler.
    unregistered_activity_backoff,
    /// Executions abandoned because this node cannot replay their version.
    incompatible_version_abandoned,
}

/// A monotonic counter.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
