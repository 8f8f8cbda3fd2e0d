//! Adds trace contexts to the work that a turn schedules.

use duroxide_core::{
    TraceContext, TracedInput, WorkItem,
    engine::{Outcome, Turn},
};
use tracing::Span;

use crate::observability::trace_context_of;

/// Puts trace contexts in front of the inputs of scheduled work. Activities, children and detached orchestrations belong to
/// the span of the turn; the next execution has the context of the whole instance, like this one.
///
/// An instance that was started without a context schedules work without one. Its inputs still become texts of
/// [`TracedInput`].
pub(super) fn carry_trace(turn: &mut Turn, instance: Option<&TraceContext>, span: &Span) {
    let schedules = !(turn.activities.is_empty() && turn.messages.is_empty());
    let of_turn = instance.filter(|_| schedules).map(|instance| {
        // Without a propagator, or with a subscriber that does not want the span, the trace goes on without this turn.
        trace_context_of(span).unwrap_or_else(|| instance.clone())
    });
    for item in turn.activities.iter_mut().chain(&mut turn.messages) {
        match item {
            WorkItem::ActivityExecute { input, .. } | WorkItem::StartOrchestration { input, .. } => {
                carry(input, of_turn.as_ref());
            }
            WorkItem::ContinueAsNew { .. }
            | WorkItem::ActivityCompleted { .. }
            | WorkItem::ActivityFailed { .. }
            | WorkItem::TimerFired { .. }
            | WorkItem::ExternalRaised { .. }
            | WorkItem::QueueMessage { .. }
            | WorkItem::SubOrchCompleted { .. }
            | WorkItem::SubOrchFailed { .. }
            | WorkItem::CancelInstance { .. } => {}
        }
    }
    if let Outcome::ContinuedAsNew(next) = &mut turn.outcome {
        carry(&mut next.input, instance);
    }
}

fn carry(input: &mut String, context: Option<&TraceContext>) {
    let plain = std::mem::take(input);
    *input = TracedInput { input: plain, context: context.cloned() }.into_text();
}
