//! Spans around user code: one per turn, one per run of an activity.
//!
//! For `tracing` both have no parent span, because the scheduling turn may have run on another node, long ago. They carry
//! the ids, so that all spans of an instance can be found, and a [`TracePropagator`](super::TracePropagator) makes them
//! children of the recorded trace context. A span is created, and its fields are evaluated, only if a subscriber asks for
//! its target.

use duroxide_core::{TraceContext, engine::Outcome};
use tracing::{Span, field::Empty, info_span};

use super::trace::child_of;
use crate::activity_context::ActivityCall;

/// The fields of a turn's span.
#[derive(Debug)]
pub(crate) struct TurnOf<'a> {
    pub(crate) instance_id: &'a str,
    pub(crate) execution_id: u64,
    pub(crate) orchestration_name: &'a str,
    pub(crate) orchestration_version: &'a str,
    /// Turns of this execution, this one included.
    pub(crate) turn: u64,
    /// Whether the turn first replays recorded events.
    pub(crate) replays: bool,
    /// The context in which the instance was started.
    pub(crate) trace: Option<&'a TraceContext>,
}

const TURN: &str = "orchestration_turn";
const ACTIVITY: &str = "activity_run";

/// Creates a span of user code with the ids of its execution. `outcome` is recorded at the end.
macro_rules! user_code_span {
    ($target:literal, $name:ident, $work:ident, $($field:tt)*) => {
        info_span!(
            target: $target,
            parent: None,
            $name,
            instance_id = $work.instance_id,
            execution_id = $work.execution_id,
            orchestration_name = &*$work.orchestration_name,
            orchestration_version = &*$work.orchestration_version,
            outcome = Empty,
            $($field)*
        )
    };
}

/// The span of a turn, from its submission to a turn thread until the code waits or returns.
pub(crate) fn turn_span(turn: &TurnOf<'_>) -> Span {
    let span =
        user_code_span!("duroxide::orchestration", TURN, turn, turn = turn.turn, replays = turn.replays);
    child_of(turn.trace, span)
}

/// The span of one run of an activity's code.
pub(crate) fn activity_span(call: &ActivityCall, attempt_count: u32, trace: Option<&TraceContext>) -> Span {
    let span = user_code_span!(
        "duroxide::activity",
        ACTIVITY,
        call,
        activity_name = call.activity_name,
        activity_id = call.activity_id,
        worker_id = call.worker_id,
        attempt_count,
    );
    child_of(trace, span)
}

/// The `outcome` field of a turn's span.
pub(crate) fn turn_outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Running => "running",
        Outcome::Completed { .. } => "completed",
        Outcome::Failed { .. } => "failed",
        Outcome::ContinuedAsNew(_) => "continued_as_new",
    }
}

/// Whether the metadata belongs to a span created here.
#[cfg(feature = "subscriber")]
pub(super) fn is_ours(metadata: &tracing::Metadata<'_>) -> bool {
    metadata.is_span() && matches!(metadata.name(), TURN | ACTIVITY)
}
