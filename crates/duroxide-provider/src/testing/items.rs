//! Short names for messages.

use duroxide_core::{ErrorDetails, WorkItem};

use crate::store::{ActivityRow, MessageKind, MessageRow, Visibility};

/// The name of the orchestration in all stories.
pub const ORDER: &str = "Order";
/// Its version.
pub const VERSION: &str = "1.0.0";

/// A client's start.
pub fn start(instance: &str) -> WorkItem {
    start_of(instance, ORDER, None)
}

/// A client's start of a named orchestration.
pub fn start_of(instance: &str, name: &str, version: Option<&str>) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: name.to_owned(),
        input: "{}".to_owned(),
        version: version.map(str::to_owned),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

/// A start that a parent sends.
pub fn child_start(instance: &str, parent: &str, parent_execution: u64, call: u64) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: ORDER.to_owned(),
        input: "{}".to_owned(),
        version: None,
        parent_instance: Some(parent.to_owned()),
        parent_id: Some(call),
        parent_execution_id: Some(parent_execution),
        execution_id: 1,
    }
}

/// The wake-up of a later execution.
pub fn wake_up(instance: &str, execution_id: u64) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: ORDER.to_owned(),
        input: "{}".to_owned(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id,
    }
}

/// The start of a successor, where a round does not hold it.
pub fn continue_as_new(instance: &str, version: Option<&str>) -> WorkItem {
    WorkItem::ContinueAsNew {
        instance: instance.to_owned(),
        orchestration: ORDER.to_owned(),
        input: "{}".to_owned(),
        version: version.map(str::to_owned),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: Vec::new(),
        initial_custom_status: None,
    }
}

/// An external event.
pub fn raise(instance: &str, data: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.to_owned(), name: "e".to_owned(), data: data.to_owned() }
}

/// A queue message.
pub fn queue(instance: &str, data: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: instance.to_owned(), name: "q".to_owned(), data: data.to_owned() }
}

/// A cancellation.
pub fn cancel(instance: &str) -> WorkItem {
    WorkItem::CancelInstance { instance: instance.to_owned(), reason: "x".to_owned() }
}

/// A timer of execution 1.
pub fn timer(instance: &str, id: u64, fire_at_ms: u64) -> WorkItem {
    WorkItem::TimerFired { instance: instance.to_owned(), execution_id: 1, id, fire_at_ms }
}

/// An activity of execution 1, without tag and session.
pub fn activity(instance: &str, id: u64) -> WorkItem {
    routed_activity(instance, id, None, None)
}

/// An activity of execution 1 with tag and session.
pub fn routed_activity(instance: &str, id: u64, tag: Option<&str>, session: Option<&str>) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        name: "charge".to_owned(),
        input: "{}".to_owned(),
        session_id: session.map(str::to_owned),
        tag: tag.map(str::to_owned),
    }
}

/// The result of an activity of execution 1.
pub fn completed(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        result: "ok".to_owned(),
    }
}

/// The failure of an activity of execution 1.
pub fn failed(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityFailed { instance: instance.to_owned(), execution_id: 1, id, details: refused() }
}

/// An application error.
pub fn refused() -> ErrorDetails {
    ErrorDetails::Application {
        kind: duroxide_core::AppErrorKind::ActivityFailed,
        message: "refused".to_owned(),
        retryable: false,
    }
}

/// The data of a row that cannot be decoded.
pub const NONSENSE: &str = r#"{"Nonsense":1}"#;

/// A message that cannot be decoded.
pub fn undecodable_message(instance: &str, kind: MessageKind) -> MessageRow {
    MessageRow {
        instance: instance.to_owned(),
        kind,
        key: None,
        visible: Visibility::Now,
        start: None,
        data: NONSENSE.to_owned(),
        item: None,
        mailbox_max: None,
    }
}

/// An activity that cannot be decoded.
pub fn undecodable_activity(instance: &str, activity_id: u64) -> ActivityRow {
    ActivityRow {
        instance: instance.to_owned(),
        execution_id: 1,
        activity_id,
        name: "charge".to_owned(),
        tag: None,
        session_id: None,
        data: NONSENSE.to_owned(),
        item: None,
    }
}
