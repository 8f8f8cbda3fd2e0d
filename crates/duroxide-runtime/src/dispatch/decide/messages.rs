//! Finds starts and cancellations among the messages of a claim.

use duroxide_core::{INITIAL_EXECUTION_ID, WorkItem};

/// The message that starts an instance without history. A `ContinueAsNew` takes precedence over a client's start.
pub(crate) fn start_item(messages: &[WorkItem]) -> Option<&WorkItem> {
    successor_item(messages)
        .or_else(|| messages.iter().find(|item| matches!(item, WorkItem::StartOrchestration { .. })))
}

/// The message that starts the next execution of an instance that continued as new.
pub(crate) fn successor_item(messages: &[WorkItem]) -> Option<&WorkItem> {
    messages.iter().find(|item| matches!(item, WorkItem::ContinueAsNew { .. }))
}

/// The reason of the first cancellation, if there is one.
pub(crate) fn cancellation(messages: &[WorkItem]) -> Option<&str> {
    cancellations(messages).next()
}

/// The reasons of the cancellations.
pub(crate) fn cancellations(messages: &[WorkItem]) -> impl Iterator<Item = &str> {
    messages.iter().filter_map(|item| {
        let WorkItem::CancelInstance { reason, .. } = item else { return None };
        Some(reason.as_str())
    })
}

/// The orchestration name and version that a start asks for.
pub(crate) fn wanted_handler(item: &WorkItem) -> Option<(&str, Option<&str>)> {
    match item {
        WorkItem::StartOrchestration { orchestration, version, .. }
        | WorkItem::ContinueAsNew { orchestration, version, .. } => Some((orchestration, version.as_deref())),
        WorkItem::ActivityExecute { .. }
        | WorkItem::ActivityCompleted { .. }
        | WorkItem::ActivityFailed { .. }
        | WorkItem::TimerFired { .. }
        | WorkItem::ExternalRaised { .. }
        | WorkItem::QueueMessage { .. }
        | WorkItem::SubOrchCompleted { .. }
        | WorkItem::SubOrchFailed { .. }
        | WorkItem::CancelInstance { .. } => None,
    }
}

/// Whether a start only wakes an execution that a round has already started (8.4), or whose steps run.
pub(crate) fn is_wake_up(item: &WorkItem) -> bool {
    matches!(item, WorkItem::StartOrchestration { execution_id, parent_instance: None, parent_id, .. }
        if *execution_id > INITIAL_EXECUTION_ID || *parent_id == Some(0))
}
