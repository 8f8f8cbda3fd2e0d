//! Finds the execution that a claim without a future ends.

use duroxide_core::{EventKind, engine::Seed};

use super::{
    Claimed, EndTarget, ExecutionState, Policy, UNKNOWN_VERSION,
    history::{recorded_handler, recorded_parent},
    messages::{start_item, successor_item, wanted_handler},
};

/// The execution to end. An execution that continued as new has ended already; its successor fails instead, with
/// nothing in its history but start and failure (8.6).
pub(crate) fn end_target(
    claim: Claimed<'_>,
    policy: &Policy<'_>,
    execution_state: ExecutionState,
) -> Option<EndTarget> {
    let item = match execution_state {
        ExecutionState::Running => return Some(EndTarget::Stored),
        ExecutionState::Ended => return None,
        ExecutionState::New => start_item(claim.messages)?,
        ExecutionState::Continued => match successor_item(claim.messages) {
            Some(item) => item,
            None => return successor_seed(claim).map(EndTarget::Unstarted),
        },
    };
    let execution_id = claim.execution_id + u64::from(execution_state == ExecutionState::Continued);
    let (name, asked) = wanted_handler(item)?;
    let version = policy
        .handlers
        .find(name, asked)
        .map_or_else(|| asked.unwrap_or(UNKNOWN_VERSION).to_owned(), |(version, _)| version);
    let mut seed = Seed::from_item(item.clone(), execution_id, version)?;
    seed.carried.clear();
    Some(EndTarget::Unstarted(seed))
}

/// The seed of a successor whose own start message is lost.
fn successor_seed(claim: Claimed<'_>) -> Option<Seed> {
    let (name, version) = recorded_handler(claim.history)?;
    let EventKind::OrchestrationContinuedAsNew { input } = &claim.history.last()?.kind else { return None };
    Some(Seed {
        instance: claim.instance.to_owned(),
        execution_id: claim.execution_id + 1,
        name: name.to_owned(),
        version: version.to_owned(),
        input: input.clone(),
        parent: recorded_parent(claim.history),
        carried: Vec::new(),
        custom_status: None,
    })
}
