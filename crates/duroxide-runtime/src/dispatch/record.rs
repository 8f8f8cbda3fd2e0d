//! What a stored history says of its execution.

use duroxide_core::{Event, EventKind, ParentLink};
use duroxide_provider::{SemverRange, VersionRange, VersionTriple};
use semver::Version;

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

fn pin(history: &[Event]) -> Option<Result<Version, &str>> {
    let first = history.first()?;
    let stamp = first.duroxide_version.as_str();
    matches!(first.kind, EventKind::OrchestrationStarted { .. })
        .then(|| Version::parse(stamp).map_err(|_| stamp))
}

pub(crate) fn unreadable_pin(history: &[Event]) -> Option<String> {
    pin(history)?.err().map(str::to_owned)
}

/// The pin of an execution that this node cannot replay. No history, no start, or a stamp that is no version all
/// count as compatible. Only major, minor and patch are compared.
pub(crate) fn incompatible_pin(history: &[Event], supported: &[SemverRange]) -> Option<VersionTriple> {
    let pinned = VersionTriple::from(&pin(history)?.ok()?);
    (!replays(supported, pinned)).then_some(pinned)
}

/// Whether a node with these ranges replays executions of this pin.
pub(crate) fn replays(supported: &[SemverRange], pinned: VersionTriple) -> bool {
    supported.iter().any(|range| VersionRange::from(range).contains(pinned))
}
