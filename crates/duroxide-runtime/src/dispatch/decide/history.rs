//! Reads the facts of an execution from its stored history: its handler, its parent, and the duroxide version that it is
//! pinned to (17).

use duroxide_core::{Event, EventKind, ParentLink, TraceContext, TracedInput, current_build_version};
use duroxide_provider::{SemverRange, VersionRange, VersionTriple};
use semver::Version;

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

/// The version of the first event's stamp, or the stamp itself if it is not a valid version.
fn pin(history: &[Event]) -> Option<Result<Version, &str>> {
    let first = history.first()?;
    let stamp = first.duroxide_version.as_str();
    matches!(first.kind, EventKind::OrchestrationStarted { .. })
        .then(|| Version::parse(stamp).map_err(|_| stamp))
}

/// The stamp of the first event, if it is not a valid version.
pub(crate) fn unreadable_pin(history: &[Event]) -> Option<String> {
    pin(history)?.err().map(str::to_owned)
}

/// The pin of an execution that this node cannot replay. A history without events, without a start event, or with an
/// invalid stamp counts as compatible. Only major, minor and patch are compared.
pub(crate) fn incompatible_pin(history: &[Event], supported: &[SemverRange]) -> Option<VersionTriple> {
    let pinned = VersionTriple::from(&pin(history)?.ok()?);
    (!replays(supported, pinned)).then_some(pinned)
}

/// The pin of an execution that was started by a later version than this build. The node's ranges may include it, but
/// only replaying it shows whether the rules of that version are the same (S3.44).
pub(crate) fn later_pin(history: &[Event]) -> Option<VersionTriple> {
    let pinned = VersionTriple::from(&pin(history)?.ok()?);
    (pinned > VersionTriple::from(&current_build_version())).then_some(pinned)
}

/// Whether a node with these ranges replays executions of this pin.
pub(crate) fn replays(supported: &[SemverRange], pinned: VersionTriple) -> bool {
    supported.iter().any(|range| VersionRange::from(range).contains(pinned))
}

/// The ranges as logged.
pub(crate) fn describe_ranges(ranges: &[SemverRange]) -> String {
    ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
}
