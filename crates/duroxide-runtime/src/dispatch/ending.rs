//! Ending an execution without running its code: poison, unsupported version, cancellation without a handler, a
//! round that the store refused.

use duroxide_core::{
    Event, EventKind, INITIAL_EXECUTION_ID, ParentLink, WorkItem,
    engine::{Record, Seed},
};
use tracing::{info, warn};

use super::admit::{Cause, Claimed, Subject, Termination};

/// The event id of a failure where the store cannot tell how long the history is (semantics 16.6).
const UNKNOWN_LAST_EVENT_ID: u64 = 99_998;

/// What the engine is told of an execution that is ended. `last_event_id` is used where the history cannot be
/// decoded; `None` if the store cannot tell.
pub(crate) fn record_of(
    subject: Subject,
    instance: &str,
    execution_id: u64,
    history: Vec<Event>,
    last_event_id: Option<u64>,
) -> Record {
    match subject {
        Subject::Unstarted(seed) => Record::Unstarted(seed),
        Subject::Stored => Record::Stored(history),
        Subject::Unreadable => Record::Unreadable {
            instance: instance.to_owned(),
            execution_id,
            last_event_id: last_event_id.unwrap_or(UNKNOWN_LAST_EVENT_ID),
        },
    }
}

/// The seed that a round begins with, if it begins an execution: what the round's execution is known by when the
/// round itself was refused.
pub(crate) fn seed_of(delta: &[Event]) -> Option<Seed> {
    let first = delta.first()?;
    let EventKind::OrchestrationStarted {
        name,
        version,
        input,
        carry_forward_events,
        initial_custom_status,
        ..
    } = &first.kind
    else {
        return None;
    };
    Some(Seed {
        instance: first.instance_id.clone(),
        execution_id: first.execution_id,
        name: name.clone(),
        version: version.clone(),
        input: input.clone(),
        parent: first.parent_link(),
        carried: carry_forward_events.clone().unwrap_or_default(),
        custom_status: initial_custom_status.clone(),
    })
}

/// The parent's call, by the automatic id of its child: `{parent}::sub::{event}`, or with the execution before
/// the event from the second execution on.
pub(crate) fn link_of_automatic_id(instance: &str) -> Option<ParentLink> {
    let (parent, suffix) = instance.rsplit_once("::sub::")?;
    let (execution_id, event_id) = match suffix.split_once('_') {
        Some((execution, event)) => (execution.parse().ok()?, event),
        None => (INITIAL_EXECUTION_ID, suffix),
    };
    Some(ParentLink {
        instance: parent.to_owned(),
        event_id: event_id.parse().ok()?,
        execution_id: Some(execution_id),
    })
}

/// The call of `child` in its parent's own history.
pub(crate) fn call_in_history(history: &[Event], child: &str) -> Option<ParentLink> {
    history.iter().rev().find_map(|event| match &event.kind {
        EventKind::SubOrchestrationScheduled { instance, .. } if instance == child => Some(ParentLink {
            instance: event.instance_id.clone(),
            event_id: event.event_id,
            execution_id: Some(event.execution_id),
        }),
        _ => None,
    })
}

/// Says why an execution is ended.
pub(crate) fn log_termination(claim: Claimed<'_>, termination: &Termination, max_attempts: u32) {
    let (instance, attempt_count) = (claim.instance, claim.attempt_count);
    match &termination.cause {
        Cause::Poison { reason: None } => warn!(
            target: "duroxide::runtime",
            instance, attempt_count, max_attempts,
            "Orchestration message exceeded max attempts, marking as poison"
        ),
        Cause::Poison { reason: Some(reason) } => warn!(
            target: "duroxide::runtime",
            instance, attempt_count, max_attempts, reason,
            "Orchestration message exceeded max attempts, marking as poison"
        ),
        Cause::UnsupportedVersion => warn!(
            target: "duroxide::runtime",
            instance, attempt_count, max_attempts,
            "no node could replay this execution, failing it"
        ),
        Cause::Stranded { missing } => warn!(
            target: "duroxide::runtime",
            instance, missing, "no node could take this instance for too long, failing it"
        ),
        Cause::CancelledUnsupported => info!(
            target: "duroxide::runtime",
            instance, orchestration_name = claim.name, "cancelled without replay, which is not supported here"
        ),
        Cause::CancelledWithoutHandler => info!(
            target: "duroxide::runtime",
            instance, orchestration_name = claim.name,
            "cancelled without running its code, which is not registered here"
        ),
    }
}

/// The kinds of a dropped batch, for the log.
pub(crate) fn kinds_of(messages: &[WorkItem]) -> Vec<&'static str> {
    messages.iter().map(WorkItem::kind).collect()
}

#[cfg(test)]
mod tests;
