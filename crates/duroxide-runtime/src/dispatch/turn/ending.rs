//! Ends executions without running their code: poison, unsupported version, cancellation without a handler, and rounds
//! that the store refused.

use crate::{dispatch::decide::EndTarget, kind_of};
use duroxide_core::{
    Event, EventKind, INITIAL_EXECUTION_ID, ParentLink, WorkItem,
    engine::{Record, Seed},
};

/// The event id of a failure if the store does not know the length of the history (16.6).
const UNKNOWN_LAST_EVENT_ID: u64 = 99_998;

/// The record from which the engine ends an execution. `last_event_id` is used for a history that cannot be decoded; `None` if
/// the store does not know it.
pub(crate) fn record_of(
    target: EndTarget,
    instance: &str,
    execution_id: u64,
    history: Vec<Event>,
    last_event_id: Option<u64>,
) -> Record {
    match target {
        EndTarget::Unstarted(seed) => Record::Unstarted(seed),
        EndTarget::Stored => Record::Stored(history),
        EndTarget::Unreadable => Record::Unreadable {
            instance: instance.to_owned(),
            execution_id,
            last_event_id: last_event_id.unwrap_or(UNKNOWN_LAST_EVENT_ID),
        },
    }
}

/// The seed of the execution that a round starts, if it starts one. Used to fail that execution after the round was
/// refused.
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

/// The parent's call, from the automatic id of its child: `{parent}::sub::{event}`, or
/// `{parent}::sub::{execution}_{event}` from the second execution on.
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

/// The call of `child` in its parent's history.
pub(crate) fn call_in_history(history: &[Event], child: &str) -> Option<ParentLink> {
    let calls_child = |event: &&Event| matches!(&event.kind, EventKind::SubOrchestrationScheduled { instance, .. } if instance == child);
    history.iter().rev().find(calls_child).map(|event| ParentLink {
        instance: event.instance_id.clone(),
        event_id: event.event_id,
        execution_id: Some(event.execution_id),
    })
}

/// Messages that are dropped, for the log: kind and identifying field of each. Payloads are logged by size.
pub(crate) fn labels_of(messages: &[WorkItem]) -> Vec<String> {
    messages.iter().map(label_of).collect()
}

fn label_of(message: &WorkItem) -> String {
    let kind = kind_of(message);
    match message {
        WorkItem::ActivityExecute { execution_id, id, .. }
        | WorkItem::ActivityCompleted { execution_id, id, .. }
        | WorkItem::ActivityFailed { execution_id, id, .. }
        | WorkItem::TimerFired { execution_id, id, .. }
        | WorkItem::SubOrchCompleted { parent_execution_id: execution_id, parent_id: id, .. }
        | WorkItem::SubOrchFailed { parent_execution_id: execution_id, parent_id: id, .. } => {
            format!("{kind} of event {id} of execution {execution_id}")
        }
        WorkItem::ExternalRaised { name, data, .. } | WorkItem::QueueMessage { name, data, .. } => {
            format!("{kind} '{name}' ({} bytes)", data.len())
        }
        WorkItem::StartOrchestration { orchestration, input, parent_instance, .. } => {
            let from = parent_instance.as_deref().map(|parent| format!(" from {parent}")).unwrap_or_default();
            format!("{kind} {orchestration}{from} ({} bytes)", input.len())
        }
        WorkItem::ContinueAsNew { orchestration, input, .. } => {
            format!("{kind} {orchestration} ({} bytes)", input.len())
        }
        WorkItem::CancelInstance { reason, .. } => format!("{kind} '{reason}'"),
    }
}

#[cfg(test)]
mod tests;
