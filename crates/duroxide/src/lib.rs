//! Durable execution for Rust: async code that survives crashes, restarts and upgrades.

pub mod prelude;
pub mod providers;
pub mod runtime;

pub use duroxide_core::{
    Action, AppErrorKind, BackoffStrategy, ConfigErrorKind, DurableFuture, Either2, Either3, ErrorDetails,
    Event, EventKind, INITIAL_EVENT_ID, INITIAL_EXECUTION_ID, LogLevel, OrchestrationContext,
    OrchestrationDescriptor, OrchestrationHandler, OrchestrationHandlerRef, PoisonMessageType, RetryPolicy,
    SUB_ORCH_AUTO_PREFIX, ScheduleKind, SystemStats, build_child_instance_id, current_build_version,
    is_auto_generated_sub_orch_id,
};
pub use duroxide_provider::{
    DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, InstanceFilter, InstanceInfo,
    InstanceTree, ProviderAdmin, PruneOptions, PruneResult, QueueDepths, ScheduledActivityIdentifier,
    SemverRange, SessionFetchConfig, SystemMetrics, TagFilter,
};
pub use duroxide_runtime::{
    ActivityContext, Client, ClientError, OrchestrationRegistry, OrchestrationRegistryBuilder,
    OrchestrationStatus, RuntimeOptions, client,
};

/// Conformance tests for a provider.
#[cfg(feature = "provider-test")]
pub use duroxide_conformance::provider_validations;

/// A shared store.
pub type ProviderRef = std::sync::Arc<dyn providers::Provider>;
