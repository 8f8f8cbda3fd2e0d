//! How an execution ends that was attempted too often.

use duroxide_core::{
    ConfigErrorKind, ErrorDetails, PoisonMessageType, WorkItem, engine::Ending, with_poison_reason,
};
use duroxide_provider::VersionTriple;

use super::{
    Admission, Cause, Claimed, NOT_PROCESSED_HERE, Policy, Standing, Subject, Termination,
    batch::{start_item, successor_item, wanted_handler},
    doomed,
    history::recorded_handler,
    lacking_nodes::lacking,
};

/// Fails it with the messages that it was attempted with.
pub(super) fn poison(claim: Claimed<'_>, policy: &Policy<'_>, standing: Standing) -> Admission {
    let Some(subject) = doomed(claim, policy, standing) else { return Admission::Stray };
    let execution_id = match &subject {
        Subject::Unstarted(seed) => seed.execution_id,
        Subject::Stored | Subject::Unreadable => claim.execution_id,
    };
    let missing = missing_handler(claim, policy, standing);
    let details = ErrorDetails::Poison {
        attempt_count: claim.attempt_count,
        max_attempts: policy.max_attempts,
        message_type: PoisonMessageType::Orchestration { instance: claim.instance.to_owned(), execution_id },
        message: poisoned_json(claim.messages, missing.as_ref(), policy),
    };
    let reason = missing.map(|missing| missing.sentence(claim, policy));
    Admission::End(Termination { subject, ending: Ending::Failed(details), cause: Cause::Poison { reason } })
}

/// Fails it although its history cannot be decoded.
pub(super) fn poison_unreadable(claim: Claimed<'_>, policy: &Policy<'_>, error: &str) -> Admission {
    let details = ErrorDetails::Poison {
        attempt_count: claim.attempt_count,
        max_attempts: policy.max_attempts,
        message_type: PoisonMessageType::FailedDeserialization {
            instance: claim.instance.to_owned(),
            execution_id: claim.execution_id,
            error: error.to_owned(),
        },
        message: error.to_owned(),
    };
    Admission::End(Termination {
        subject: Subject::Unreadable,
        ending: Ending::Failed(details),
        cause: Cause::Poison { reason: None },
    })
}

/// Fails it because no node can replay it.
pub(super) fn unsupported(
    claim: Claimed<'_>,
    policy: &Policy<'_>,
    standing: Standing,
    pinned: VersionTriple,
    supported: &str,
) -> Admission {
    let Some(subject) = doomed(claim, policy, standing) else { return Admission::Stray };
    let (attempt, max) = (claim.attempt_count, policy.max_attempts);
    let details = ErrorDetails::Configuration {
        kind: ConfigErrorKind::UnsupportedVersion,
        resource: claim.instance.to_owned(),
        message: Some(format!(
            "{NOT_PROCESSED_HERE}: execution pinned at {pinned}, supported {supported}, attempt {attempt} (max {max})"
        )),
    };
    Admission::End(Termination { subject, ending: Ending::Failed(details), cause: Cause::UnsupportedVersion })
}

/// The handler that an execution needs.
struct MissingHandler<'a> {
    name: &'a str,
    version: &'a str,
}

impl MissingHandler<'_> {
    /// The sentence for the log (C6).
    fn sentence(&self, claim: Claimed<'_>, policy: &Policy<'_>) -> String {
        let (Self { name, version }, attempt, max) = (self, claim.attempt_count, policy.max_attempts);
        format!(
            "{NOT_PROCESSED_HERE}: orchestration {name}@{version} is not registered, attempt {attempt} (max {max})"
        )
    }
}

/// The handler of what is ended, if this node lacks it.
fn missing_handler<'a>(
    claim: Claimed<'a>,
    policy: &Policy<'_>,
    standing: Standing,
) -> Option<MissingHandler<'a>> {
    let (name, version) = match standing {
        Standing::Running => recorded_handler(claim.history).map(|(name, version)| (name, Some(version))),
        Standing::New => start_item(claim.messages).and_then(wanted_handler),
        Standing::Continued => successor_item(claim.messages).and_then(wanted_handler),
        Standing::Ended => None,
    }?;
    let missing = MissingHandler { name, version: version.unwrap_or("latest") };
    policy.handlers.find(name, version).is_none().then_some(missing)
}

/// The poisoned messages, and why they could not be processed if that is known.
fn poisoned_json(messages: &[WorkItem], missing: Option<&MissingHandler<'_>>, policy: &Policy<'_>) -> String {
    let json = serde_json::to_string(messages)
        .unwrap_or_else(|reason| format!("{} messages: {reason}", messages.len()));
    match missing {
        Some(MissingHandler { name, version }) => {
            let nodes = lacking(policy.node, policy.joined, |capability| {
                capability.has_orchestration(name, Some(version))
            });
            with_poison_reason(json, &format!("orchestration {name}@{version} is not registered on {nodes}"))
        }
        None => json,
    }
}
