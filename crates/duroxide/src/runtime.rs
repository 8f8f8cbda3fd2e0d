//! Running orchestrations and activities: handlers, registries, options, statuses, observability.

pub use duroxide_runtime::{
    ActivityHandler, AuditAction, AuditOptions, FnActivity, FnOrchestration, LogFormat, ObservabilityConfig,
    OrchestrationDescriptor, OrchestrationHandler, OrchestrationRegistry, OrchestrationRegistryBuilder,
    OrchestrationStatus, Runtime, RuntimeLimits, RuntimeOptions, UnregisteredBackoffConfig, VersionPolicy,
    kind_of,
};
pub use duroxide_runtime::{env, limits, observability, registry};
