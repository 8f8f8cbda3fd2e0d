//! Reads the facts of an execution from its stored history.

use duroxide_core::{Event, EventKind, ParentLink, TraceContext, TracedInput};

/// The handler name and version of the first event.
pub(crate) fn recorded_handler(history: &[Event]) -> Option<(&str, &str)> {
    let EventKind::OrchestrationStarted { name, version, .. } = &history.first()?.kind else { return None };
    Some((name, version))
}

/// The parent's call, from the first event.
pub(crate) fn recorded_parent(history: &[Event]) -> Option<ParentLink> {
    history.first()?.parent_link()
}

/// The trace context in which the instance was started, from the first event.
pub(crate) fn recorded_trace(history: &[Event]) -> Option<TraceContext> {
    let EventKind::OrchestrationStarted { input, .. } = &history.first()?.kind else { return None };
    TracedInput::context_of(input)
}

/// Whether the history holds only the seed of the execution, so that its code has not run yet (2.1).
pub(crate) fn is_seed_only(history: &[Event]) -> bool {
    let first = history.first().map(|event| &event.kind);
    let Some(EventKind::OrchestrationStarted { carry_forward_events, .. }) = first else { return false };
    history.len() == 1 + carry_forward_events.as_ref().map_or(0, Vec::len)
}
