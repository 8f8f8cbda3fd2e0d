//! The storage contract of duroxide.
//!
//! * [`Provider`] and [`ProviderAdmin`]: the interface of a store for the runtime and the client. A third party
//!   implements these.
//! * [`store`]: the synchronous [`store::StoreEngine`] behind our own providers, with the prepared rows it takes.
//! * [`rules`]: every rule of storage, over the rows of any store.
//! * [`memory`]: a store engine of ordered maps under these rules.
//! * [`invariant`]: the named guarantees, checked over a snapshot of any store.
//!
//! Like the engine this crate is pure: no clock, no randomness, no I/O. Time and random bits are arguments.

// No wildcard arm hides a new event kind, action or work item: see docs/adding-an-event-kind.md.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod admin;
mod error;
pub mod invariant;
#[cfg(any(test, feature = "layers"))]
pub mod layers {
    //! Store engines and providers around others, whose methods a test overrides, behind the feature `layers`.
    //!
    //! * [`EngineLayer`]: a layer between a store and its engine.
    //! * [`intercept`]: a layer between a runtime and its store.

    mod engine_layer;
    pub mod intercept;

    pub use engine_layer::{EngineLayer, StepLayer};
    pub use intercept::{FullyIntercepted, Intercept, Intercepted};
}
pub mod management;
pub mod memory;
mod node;
mod provider;
pub mod rules;
mod status;
pub mod store;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::wildcard_enum_match_arm, reason = "test tools look at the kinds they know")]
pub mod testing;
mod watch;

pub use admin::ProviderAdmin;
pub use error::ProviderError;
pub use management::{
    DeadLetter, DeadLetterQueue, DeleteInstanceResult, ExecutionInfo, InstanceCount, InstanceFilter,
    InstanceInfo, InstancePage, InstanceQuery, InstanceSummary, InstanceTree, LaneSummary, MissingCapability,
    PruneOptions, PruneResult, QueueDepths, QueueSummary, QueuedActivityInfo, QueuedMessageInfo, QueuedWork,
    RawEvent, RouteSummary, SessionLease, StrandedWork, SummaryRequest, SystemMetrics, WorkLock,
};
pub use node::{
    ClaimToken, JoinedNode, NodeAnnouncement, NodeCapability, NodeId, NodeMembership, NotAClaimToken,
    short_node_name,
};
pub use provider::{
    ActivityStop, Demand, DequeuedItem, DispatcherCapabilityFilter, ExecutionMetadata, HandlerCapability,
    LoadedExecution, Losses, NextExecution, OpenRound, OrchestrationClaim, OrchestrationFetch,
    OrchestrationItem, Provider, ProviderLayer, RenewedWorkItem, Round, ScheduledActivityIdentifier,
    ScheduledTimerIdentifier, SemverRange, SessionFetchConfig, StartOutcome, StorePosition, TagFilter,
    TellOfDemand, VersionRange, VersionTriple, Wanted, WorkClaim, WorkFetch, operation_of, run_round,
};
pub use status::StatusSnapshot;
pub use store::InstanceNeeds;
pub use watch::InstanceWatch;

#[doc(hidden)]
pub use provider::signatures;

pub use duroxide_core::{KvEntry, WorkItem, current_build_version};
