//! Running orchestrations and activities: runtime, options, handlers, statuses.

pub use duroxide_core::limits;
pub use duroxide_core::{FnOrchestration, OrchestrationDescriptor, OrchestrationHandler, RuntimeLimits};
