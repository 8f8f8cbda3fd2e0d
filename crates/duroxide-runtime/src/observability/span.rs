//! Spans around user code: one per turn, one per run of an activity.
//!
//! Both begin without a parent: what scheduled the work may have run on another node, long ago. They carry the ids
//! instead, so that whoever collects spans finds everything of an instance. Nothing is made, and no field is even
//! looked at, unless a subscriber asks for the target.

use duroxide_core::engine::Outcome;
use tracing::{Span, field::Empty, info_span};

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

const TURN: &str = "orchestration_turn";
const ACTIVITY: &str = "activity_run";

/// A span of user code. Each has the ids of its execution, and is told in the end what came of it.
macro_rules! user_code_span {
    ($target:literal, $name:ident, $work:ident, $($field:tt)*) => {
        info_span!(
            target: $target,
            parent: None,
            $name,
            instance_id = $work.instance_id,
            execution_id = $work.execution_id,
            orchestration_name = $work.orchestration_name,
            orchestration_version = $work.orchestration_version,
            outcome = Empty,
            $($field)*
        )
    };
}

/// The span of a turn, from its hand-over to a turn thread until the code rests.
pub(crate) fn turn_span(turn: &TurnOf<'_>) -> Span {
    user_code_span!("duroxide::orchestration", TURN, turn, turn = turn.turn, replays = turn.replays)
}

/// The span of one run of an activity's code.
pub(crate) fn activity_span(call: &ActivityCall, attempt_count: u32) -> Span {
    user_code_span!(
        "duroxide::activity",
        ACTIVITY,
        call,
        activity_name = call.activity_name,
        activity_id = call.activity_id,
        worker_id = call.worker_id,
        attempt_count,
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
#[cfg(feature = "subscriber")]
pub(super) fn is_ours(metadata: &tracing::Metadata<'_>) -> bool {
    metadata.is_span() && matches!(metadata.name(), TURN | ACTIVITY)
}
