//! The shell around the engine: everything that waits, retries, measures and talks to a provider.
//!
//! * [`Runtime`]: a node that fetches work from a store, runs it and commits the results. [`mod@env`] is its interface
//!   to clocks, timers, tasks and threads.
//! * [`registry`]: the handlers of a node, by name and version.
//! * [`client`]: starts, signals, watches and manages instances.
//! * [`RuntimeOptions`]: every setting of a node, with its default.
//! * [`observability`]: logging, the `metrics` facade and a snapshot of counters.
//! * [`instrumented`]: a provider that measures another one.

// A wildcard arm would hide a new event kind, action or work item: see docs/adding-an-event-kind.md.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod activity_context;
mod activity_handler;
mod cache;
pub mod client;
mod dispatch;
pub mod env;
#[cfg(test)]
mod fixture;
pub mod instrumented;
pub mod observability;
mod options;
pub mod registry;
mod runtime;
mod shutdown;
mod status;

pub use activity_context::ActivityContext;
#[doc(hidden)]
pub use activity_context::DetachedCall;
pub use activity_handler::{ActivityHandler, FnActivity};
pub use client::{ActivityState, Client, ClientError, Explanation, Finding};
pub use duroxide_core::{
    FnOrchestration, OrchestrationDescriptor, OrchestrationHandler, RuntimeLimits, limits,
};
pub use duroxide_provider::StartOutcome;
pub use observability::{LogFormat, MetricsSnapshot, ObservabilityConfig, ObservabilityHandle};
pub use options::{AuditAction, AuditOptions, RuntimeOptions, UnregisteredBackoffConfig};
pub use registry::{
    ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistry, OrchestrationRegistryBuilder,
    VersionPolicy,
};
pub use runtime::{Runtime, typed};
pub use status::{OrchestrationStatus, kind_of};
