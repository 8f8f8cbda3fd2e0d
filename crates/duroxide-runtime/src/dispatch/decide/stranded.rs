//! Decides how to end an instance that no node can run. Pure, like [`decide`](super::decide).

use duroxide_core::{ConfigErrorKind, ErrorDetails, engine::Ending};
use duroxide_provider::MissingCapability;

use super::{
    Cause, Claimed, Decision, EndTarget, ExecutionState, NOT_PROCESSED_HERE, Policy, Termination, end_target,
    execution_state, messages::cancellation,
};

/// Why an instance that no node can run is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StrandedEnd {
    /// No node that can run it has been available for too long (17.5).
    Unsupported {
        missing: MissingCapability,
    },
    Cancelled,
}

/// Decides how to end a claimed instance. `None` if the claim is to be abandoned, because the cancellation is not among
/// its messages.
pub(crate) fn decide_stranded(
    claim: Claimed<'_>,
    policy: &Policy<'_>,
    stranded_end: &StrandedEnd,
) -> Option<Decision> {
    let target = match (claim.history_error, execution_state(claim.history)) {
        (Some(_), _) if claim.ended => return Some(Decision::DropEnded),
        (Some(_), _) => EndTarget::Unreadable,
        (None, ExecutionState::Ended) => return Some(Decision::DropEnded),
        (None, execution_state) => match end_target(claim, policy, execution_state) {
            Some(target) => target,
            None => return Some(Decision::DropUnknown),
        },
    };
    let (ending, cause) = match stranded_end {
        StrandedEnd::Cancelled => {
            let reason = cancellation(claim.messages)?.to_owned();
            (Ending::Cancelled { reason }, Cause::CancelledUnsupported)
        }
        StrandedEnd::Unsupported { missing } => (
            Ending::Failed(unsupported(claim, policy, missing)),
            Cause::Stranded { missing: missing.to_string() },
        ),
    };
    Some(Decision::End(Termination { target, ending, cause }))
}

fn unsupported(claim: Claimed<'_>, policy: &Policy<'_>, missing: &MissingCapability) -> ErrorDetails {
    let (attempt, max) = (claim.attempt_count, policy.max_attempts);
    ErrorDetails::Configuration {
        kind: ConfigErrorKind::UnsupportedVersion,
        resource: claim.instance.to_owned(),
        message: Some(format!("{NOT_PROCESSED_HERE}: {missing}, attempt {attempt} (max {max})")),
    }
}
