//! Ends executions that were attempted too often.

use duroxide_core::{
    ConfigErrorKind, ErrorDetails, PoisonMessageType, WorkItem, engine::Ending, with_poison_reason,
};
use duroxide_provider::VersionTriple;

use super::{
    Cause, Claimed, Decision, EndTarget, ExecutionState, NOT_PROCESSED_HERE, Policy, Termination, end_target,
    history::recorded_handler,
    lacking_nodes::lacking,
    messages::{start_item, successor_item, wanted_handler},
};

/// Fails the execution as poison, with the messages of the claim.
pub(super) fn poison(claim: Claimed<'_>, policy: &Policy<'_>, execution_state: ExecutionState) -> Decision {
    let Some(target) = end_target(claim, policy, execution_state) else { return Decision::DropUnknown };
    let execution_id = match &target {
        EndTarget::Unstarted(seed) => seed.execution_id,
        EndTarget::Stored | EndTarget::Unreadable => claim.execution_id,
    };
    let missing = missing_handler(claim, policy, execution_state);
    let details = ErrorDetails::Poison {
        attempt_count: claim.attempt_count,
        max_attempts: policy.max_attempts,
        message_type: PoisonMessageType::Orchestration { instance: claim.instance.to_owned(), execution_id },
        message: poisoned_json(claim.messages, missing.as_ref(), policy),
    };
    let reason = missing.map(|missing| missing.reason(claim, policy));
    Decision::End(Termination { target, ending: Ending::Failed(details), cause: Cause::Poison { reason } })
}

/// Fails an execution whose history cannot be decoded as poison.
pub(super) fn poison_unreadable(claim: Claimed<'_>, policy: &Policy<'_>, error: &str) -> Decision {
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
    Decision::End(Termination {
        target: EndTarget::Unreadable,
        ending: Ending::Failed(details),
        cause: Cause::Poison { reason: None },
    })
}

/// Fails an execution that no node can replay.
pub(super) fn unsupported(
    claim: Claimed<'_>,
    policy: &Policy<'_>,
    execution_state: ExecutionState,
    pinned: VersionTriple,
    supported: &str,
) -> Decision {
    let Some(target) = end_target(claim, policy, execution_state) else { return Decision::DropUnknown };
    let (attempt, max) = (claim.attempt_count, policy.max_attempts);
    let details = ErrorDetails::Configuration {
        kind: ConfigErrorKind::UnsupportedVersion,
        resource: claim.instance.to_owned(),
        message: Some(format!(
            "{NOT_PROCESSED_HERE}: execution pinned at {pinned}, supported {supported}, attempt {attempt} (max {max})"
        )),
    };
    Decision::End(Termination { target, ending: Ending::Failed(details), cause: Cause::UnsupportedVersion })
}

/// A handler that an execution needs and this node lacks.
struct MissingHandler<'a> {
    name: &'a str,
    version: &'a str,
}

impl MissingHandler<'_> {
    /// The reason for the log (C6).
    fn reason(&self, claim: Claimed<'_>, policy: &Policy<'_>) -> String {
        let (Self { name, version }, attempt, max) = (self, claim.attempt_count, policy.max_attempts);
        format!(
            "{NOT_PROCESSED_HERE}: orchestration {name}@{version} is not registered, attempt {attempt} (max {max})"
        )
    }
}

/// The handler of the execution to end, if this node lacks it.
fn missing_handler<'a>(
    claim: Claimed<'a>,
    policy: &Policy<'_>,
    execution_state: ExecutionState,
) -> Option<MissingHandler<'a>> {
    let (name, version) = match execution_state {
        ExecutionState::Running => {
            recorded_handler(claim.history).map(|(name, version)| (name, Some(version)))
        }
        ExecutionState::New => start_item(claim.messages).and_then(wanted_handler),
        ExecutionState::Continued => successor_item(claim.messages).and_then(wanted_handler),
        ExecutionState::Ended => None,
    }?;
    let missing = MissingHandler { name, version: version.unwrap_or("latest") };
    policy.handlers.find(name, version).is_none().then_some(missing)
}

/// The poisoned messages as JSON, with the missing handler if there is one.
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
