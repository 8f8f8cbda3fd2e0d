//! Spans around user code: one per turn, one per run of an activity.
//!
//! Both begin without a parent: what scheduled the work may have run on another node, long ago. They carry the ids
//! instead, so that whoever collects spans finds everything of an instance. Nothing is made, and no field is even
//! looked at, unless a subscriber asks for the target.

use duroxide_core::engine::Outcome;
use tracing::{Metadata, Span, field::Empty, info_span};

use crate::activity_context::ActivityCall;

/// Which turn a span is about.
#[derive(Debug)]
pub(crate) struct TurnOf<'a> {
    pub(crate) instance_id: &'a str,
    pub(crate) execution_id: u64,
    pub(crate) orchestration_name: &'a str,
    pub(crate) orchestration_version: &'a str,
    /// Turns of this execution, this one included.
    pub(crate) turn: u64,
    /// Whether the code first repeats what is recorded.
    pub(crate) replays: bool,
}

/// The span of a turn, from its hand-over to a turn thread until the code rests.
pub(crate) fn turn_span(turn: &TurnOf<'_>) -> Span {
    info_span!(
        target: "duroxide::orchestration",
        parent: None,
        "orchestration_turn",
        instance_id = turn.instance_id,
        execution_id = turn.execution_id,
        orchestration_name = turn.orchestration_name,
        orchestration_version = turn.orchestration_version,
        turn = turn.turn,
        replays = turn.replays,
        outcome = Empty,
    )
}

/// The span of one run of an activity's code.
pub(crate) fn activity_span(call: &ActivityCall, attempt_count: u32) -> Span {
    info_span!(
        target: "duroxide::activity",
        parent: None,
        "activity_run",
        instance_id = call.instance_id,
        execution_id = call.execution_id,
        orchestration_name = call.orchestration_name,
        orchestration_version = call.orchestration_version,
        activity_name = call.activity_name,
        activity_id = call.activity_id,
        worker_id = call.worker_id,
        attempt_count,
        outcome = Empty,
    )
}

/// What a turn came to.
pub(crate) fn turn_outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Running => "running",
        Outcome::Completed { .. } => "completed",
        Outcome::Failed { .. } => "failed",
        Outcome::ContinuedAsNew(_) => "continued_as_new",
    }
}

/// Whether this is about one of the spans made here.
pub(super) fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && matches!(metadata.name(), "orchestration_turn" | "activity_run")
}
