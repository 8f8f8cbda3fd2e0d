//! A8: work items.

use duroxide::providers::WorkItem;

use crate::bounds;

/// Every variant with every field; no wildcard, so that a new variant or field shows here.
fn addressee(item: WorkItem) -> String {
    match item {
        WorkItem::StartOrchestration {
            instance,
            orchestration: _,
            input: _,
            version: _,
            parent_instance: _,
            parent_id: _,
            parent_execution_id: _,
            execution_id: _,
        } => instance,
        WorkItem::ActivityExecute {
            instance,
            execution_id: _,
            id: _,
            name: _,
            input: _,
            session_id: _,
            tag: _,
        } => instance,
        WorkItem::ActivityCompleted { instance, execution_id: _, id: _, result: _ } => instance,
        WorkItem::ActivityFailed { instance, execution_id: _, id: _, details: _ } => instance,
        WorkItem::TimerFired { instance, execution_id: _, id: _, fire_at_ms: _ } => instance,
        WorkItem::ExternalRaised { instance, name: _, data: _ } => instance,
        WorkItem::QueueMessage { instance, name: _, data: _ } => instance,
        WorkItem::SubOrchCompleted { parent_instance, parent_execution_id: _, parent_id: _, result: _ } => {
            parent_instance
        }
        WorkItem::SubOrchFailed { parent_instance, parent_execution_id: _, parent_id: _, details: _ } => {
            parent_instance
        }
        WorkItem::CancelInstance { instance, reason: _ } => instance,
        WorkItem::ContinueAsNew {
            instance,
            orchestration: _,
            input: _,
            version: _,
            parent_instance: _,
            parent_id: _,
            parent_execution_id: _,
            carry_forward_events: _,
            initial_custom_status: _,
        } => instance,
    }
}

#[test]
fn work_items_are_plain_serializable_values() {
    bounds::value::<WorkItem>();
    bounds::eq::<WorkItem>();
    bounds::serde::<WorkItem>();
    let item = WorkItem::CancelInstance { instance: "i".into(), reason: "r".into() };
    let stored = serde_json::to_value(&item).unwrap();
    assert_eq!(stored, serde_json::json!({"CancelInstance": {"instance": "i", "reason": "r"}}));
    assert_eq!(addressee(item), "i");
}

#[test]
fn fields_that_may_be_missing_are_not_written() {
    let item = WorkItem::ActivityExecute {
        instance: "i".into(),
        execution_id: 1,
        id: 2,
        name: "a".into(),
        input: "x".into(),
        session_id: None,
        tag: None,
    };
    let text = serde_json::to_string(&item).unwrap();
    assert!(!text.contains("session_id") && !text.contains("tag"), "{text}");
    assert_eq!(serde_json::from_str::<WorkItem>(&text).unwrap(), item);
}
