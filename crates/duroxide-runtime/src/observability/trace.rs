//! [`TracePropagator`]: connects the spans of duroxide with the traces of a program.

use std::{fmt, sync::OnceLock};

use duroxide_core::TraceContext;
use tracing::Span;

/// Translates between spans and trace contexts. duroxide itself only knows `tracing`, whose spans have no ids that another
/// process would understand; a library for tracing, such as OpenTelemetry, gives them some.
///
/// With a propagator, a start records the context of the span that it is called in. The turns and activities of the
/// instance, of its children and of the instances it starts are spans of the same trace, on every node and after every
/// restart.
pub trait TracePropagator: Send + Sync {
    /// The context of a span, for the work that is scheduled in it. `None` if the span belongs to no trace.
    fn context_of(&self, span: &Span) -> Option<TraceContext>;

    /// Makes a new span, which was not entered yet, a child of `parent`.
    fn set_parent(&self, span: &Span, parent: &TraceContext);
}

/// [`set_trace_propagator`] was called before. The propagator of that call stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PropagatorAlreadySet;

impl fmt::Display for PropagatorAlreadySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a trace propagator is already set for this process: set it once, where the subscriber is set",
        )
    }
}

impl std::error::Error for PropagatorAlreadySet {}

static PROPAGATOR: OnceLock<Box<dyn TracePropagator>> = OnceLock::new();

/// Sets the propagator of this process, in addition to the `tracing` subscriber that the spans go to.
///
/// # Errors
/// If there is one already.
pub fn set_trace_propagator(propagator: impl TracePropagator + 'static) -> Result<(), PropagatorAlreadySet> {
    PROPAGATOR.set(Box::new(propagator)).map_err(|_| PropagatorAlreadySet)
}

/// The context of a span, if a propagator knows it.
pub(crate) fn trace_context_of(span: &Span) -> Option<TraceContext> {
    PROPAGATOR.get()?.context_of(span)
}

/// The span as a child of `parent`, if there is a propagator.
pub(super) fn child_of(parent: Option<&TraceContext>, span: Span) -> Span {
    if let (Some(parent), Some(propagator)) = (parent, PROPAGATOR.get()) {
        propagator.set_parent(&span, parent);
    }
    span
}
