//! Logging, spans, the `metrics` facade and a snapshot of counters.

mod config;
mod description;
mod handle;
mod label;
mod logging;
mod metrics_provider;
mod outcome;
mod snapshot;
mod span;
#[cfg(test)]
mod tests;
mod trace;

pub use config::{LogFormat, ObservabilityConfig};
pub use duroxide_core::{InvalidTraceparent, TraceContext, TracedInput};
pub use handle::ObservabilityHandle;
pub use logging::init_logging;
pub use metrics_provider::MetricsProvider;
pub use snapshot::MetricsSnapshot;
pub use trace::{PropagatorAlreadySet, TracePropagator, set_trace_propagator};

pub(crate) use outcome::{ActivityEnd, EndedActivity, EndedExecution, ExecutionEnd};
pub(crate) use span::{TurnOf, activity_span, turn_outcome, turn_span};
pub(crate) use trace::trace_context_of;
