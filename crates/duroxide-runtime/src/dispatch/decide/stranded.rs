//! Ending an instance that no node can run. Like [`admit`](super::admit::admit) a function of values: the claim and its
//! history come in, what to do goes out.

use duroxide_core::{ConfigErrorKind, ErrorDetails, engine::Ending};
use duroxide_provider::MissingCapability;

use super::{
    Admission, Cause, Claimed, NOT_PROCESSED_HERE, Policy, Standing, Subject, Termination,
    batch::cancellation, doomed, standing,
};

/// Why an instance is ended that no node can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sentence {
    /// Nobody has come for too long who could (semantics 17.5).
    Unsupported { missing: MissingCapability },
    /// It was cancelled.
    Cancelled,
}

/// How a claimed instance is ended. `None` if it is to be given back: what it was to be ended for is not there.
pub(crate) fn condemn(claim: Claimed<'_>, policy: &Policy<'_>, sentence: &Sentence) -> Option<Admission> {
    let subject = match (claim.history_error, standing(claim.history)) {
        (Some(_), _) if claim.ended => return Some(Admission::Drain),
        (Some(_), _) => Subject::Unreadable,
        (None, Standing::Ended) => return Some(Admission::Drain),
        (None, standing) => match doomed(claim, policy, standing) {
            Some(subject) => subject,
            None => return Some(Admission::Stray),
        },
    };
    let (ending, cause) = match sentence {
        Sentence::Cancelled => {
            let reason = cancellation(claim.messages)?.to_owned();
            (Ending::Cancelled { reason }, Cause::CancelledUnsupported)
        }
        Sentence::Unsupported { missing } => (
            Ending::Failed(unsupported(claim, policy, missing)),
            Cause::Stranded { missing: missing.to_string() },
        ),
    };
    Some(Admission::End(Termination { subject, ending, cause }))
}

fn unsupported(claim: Claimed<'_>, policy: &Policy<'_>, missing: &MissingCapability) -> ErrorDetails {
    let (attempt, max) = (claim.attempt_count, policy.max_attempts);
    ErrorDetails::Configuration {
        kind: ConfigErrorKind::UnsupportedVersion,
        resource: claim.instance.to_owned(),
        message: Some(format!("{NOT_PROCESSED_HERE}: {missing}, attempt {attempt} (max {max})")),
    }
}
