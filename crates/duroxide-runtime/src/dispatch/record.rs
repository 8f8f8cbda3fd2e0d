//! What a stored history says of its execution.

use duroxide_core::{Event, EventKind, ParentLink};

/// Name and version of its handler, by the first event.
pub(crate) fn recorded_handler(history: &[Event]) -> Option<(&str, &str)> {
    match &history.first()?.kind {
        EventKind::OrchestrationStarted { name, version, .. } => Some((name, version)),
        _ => None,
    }
}

/// The parent's call, by the first event.
pub(crate) fn recorded_parent(history: &[Event]) -> Option<ParentLink> {
    history.first()?.parent_link()
}

/// Whether the history is only what the execution began with, so that its code has not run yet (2.1).
pub(crate) fn is_seed_only(history: &[Event]) -> bool {
    match history.first().map(|event| &event.kind) {
        Some(EventKind::OrchestrationStarted { carry_forward_events, .. }) => {
            history.len() == 1 + carry_forward_events.as_ref().map_or(0, Vec::len)
        }
        _ => false,
    }
}
