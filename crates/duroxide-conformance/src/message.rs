//! Messages and activities as the runtime would send them.

use duroxide_core::WorkItem;

/// The orchestration that the validations pretend to run.
pub(crate) const ORCHESTRATION: &str = "Conformance";

/// A client's start that asks for a version.
pub(crate) fn start(instance: &str) -> WorkItem {
    start_of(instance, ORCHESTRATION, Some("1.0.0"))
}

/// A client's start.
pub(crate) fn start_of(instance: &str, orchestration: &str, version: Option<&str>) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: orchestration.to_owned(),
        input: "{}".to_owned(),
        version: version.map(str::to_owned),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

/// The start of a child, scheduled by event `parent_id` of the parent's first execution.
pub(crate) fn child_start(parent: &str, parent_id: u64, child: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: child.to_owned(),
        orchestration: ORCHESTRATION.to_owned(),
        input: "{}".to_owned(),
        version: Some("1.0.0".to_owned()),
        parent_instance: Some(parent.to_owned()),
        parent_id: Some(parent_id),
        parent_execution_id: Some(1),
        execution_id: 1,
    }
}

/// The start that wakes the successor of a continue-as-new (8.4).
pub(crate) fn wake_up(instance: &str, execution_id: u64) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: ORCHESTRATION.to_owned(),
        input: "next".to_owned(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id,
    }
}

/// The work item with which a plain provider starts the next execution (8.5).
pub(crate) fn continuation_start(instance: &str) -> WorkItem {
    WorkItem::ContinueAsNew {
        instance: instance.to_owned(),
        orchestration: ORCHESTRATION.to_owned(),
        input: "next".to_owned(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: Vec::new(),
        initial_custom_status: None,
    }
}

/// An activity without session or tag, scheduled by event `id`.
pub(crate) fn activity(instance: &str, execution_id: u64, id: u64) -> WorkItem {
    routed_activity(instance, execution_id, id, None, None)
}

/// An activity of the first execution that belongs to a session.
pub(crate) fn session_activity(instance: &str, id: u64, session: &str) -> WorkItem {
    routed_activity(instance, 1, id, Some(session), None)
}

/// An activity of the first execution with a routing tag.
pub(crate) fn tagged_activity(instance: &str, id: u64, tag: &str) -> WorkItem {
    routed_activity(instance, 1, id, None, Some(tag))
}

fn routed_activity(
    instance: &str,
    execution_id: u64,
    id: u64,
    session: Option<&str>,
    tag: Option<&str>,
) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id,
        id,
        name: "Work".to_owned(),
        input: format!("input {id}"),
        session_id: session.map(str::to_owned),
        tag: tag.map(str::to_owned),
    }
}

/// The result of an activity.
pub(crate) fn activity_completed(instance: &str, execution_id: u64, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: instance.to_owned(),
        execution_id,
        id,
        result: format!("result {id}"),
    }
}

/// A timer of the first execution that is due at this time.
pub(crate) fn timer_fired(instance: &str, id: u64, fire_at_ms: u64) -> WorkItem {
    WorkItem::TimerFired { instance: instance.to_owned(), execution_id: 1, id, fire_at_ms }
}

/// An external event.
pub(crate) fn raised(instance: &str, name: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.to_owned(), name: name.to_owned(), data: "data".to_owned() }
}

/// A message to a named queue of the instance.
pub(crate) fn queue_message(instance: &str, data: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: instance.to_owned(), name: "queue".to_owned(), data: data.to_owned() }
}

/// A client's cancellation.
pub(crate) fn cancel(instance: &str) -> WorkItem {
    WorkItem::CancelInstance { instance: instance.to_owned(), reason: "conformance".to_owned() }
}
