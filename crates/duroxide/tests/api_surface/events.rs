//! A6: events and actions.

use duroxide::{Action, Event, EventKind};

use crate::bounds;

#[test]
fn events_are_built_in_full_and_serializable() {
    bounds::value::<Event>();
    bounds::eq::<Event>();
    bounds::serde::<Event>();
    bounds::value::<EventKind>();
    bounds::eq::<EventKind>();
    bounds::serde::<EventKind>();
    let event = Event {
        event_id: 7,
        source_event_id: Some(2),
        instance_id: "i".into(),
        execution_id: 1,
        timestamp_ms: 0,
        duroxide_version: "0.5.0".into(),
        kind: EventKind::OrchestrationCompleted { output: "o".into() },
    };
    let _: (u64, Option<u64>, bool) = (event.event_id(), event.source_event_id(), event.is_terminal());
    assert!(event.is_terminal());
    let stamped = Event::with_event_id(7, "i", 1, Some(2), event.kind.clone());
    assert_eq!(stamped.event_id, 7);
    assert_eq!(Event::new(String::from("i"), 1, None, event.kind).event_id, 0);
}

/// Every variant with every field; no wildcard, so that a new variant or field shows here.
fn wire_name(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::OrchestrationStarted {
            name: _,
            version: _,
            input: _,
            parent_instance: _,
            parent_id: _,
            parent_execution_id: _,
            carry_forward_events: _,
            initial_custom_status: _,
        } => "OrchestrationStarted",
        EventKind::OrchestrationCompleted { output: _ } => "OrchestrationCompleted",
        EventKind::OrchestrationFailed { details: _ } => "OrchestrationFailed",
        EventKind::OrchestrationContinuedAsNew { input: _ } => "OrchestrationContinuedAsNew",
        EventKind::OrchestrationCancelRequested { reason: _ } => "OrchestrationCancelRequested",
        EventKind::CancellationSubscribed => "CancellationSubscribed",
        EventKind::ActivityScheduled { name: _, input: _, session_id: _, tag: _ } => "ActivityScheduled",
        EventKind::ActivityCompleted { result: _ } => "ActivityCompleted",
        EventKind::ActivityFailed { details: _ } => "ActivityFailed",
        EventKind::ActivityCancelRequested { reason: _ } => "ActivityCancelRequested",
        EventKind::StepEnded { step: _, name: _, result: _ } => "StepEnded",
        EventKind::TimerCreated { fire_at_ms: _ } => "TimerCreated",
        EventKind::TimerFired { fire_at_ms: _ } => "TimerFired",
        EventKind::ExternalSubscribed { name: _ } => "ExternalSubscribed",
        EventKind::ExternalEvent { name: _, data: _ } => "ExternalEvent",
        EventKind::ExternalSubscribedCancelled { reason: _ } => "ExternalSubscribedCancelled",
        EventKind::QueueSubscribed { name: _ } => "ExternalSubscribedPersistent",
        EventKind::QueueEventDelivered { name: _, data: _ } => "ExternalEventPersistent",
        EventKind::QueueSubscriptionCancelled { reason: _ } => "ExternalSubscribedPersistentCancelled",
        EventKind::OrchestrationChained { name: _, instance: _, input: _ } => "OrchestrationChained",
        EventKind::SubOrchestrationScheduled { name: _, instance: _, input: _ } => {
            "SubOrchestrationScheduled"
        }
        EventKind::SubOrchestrationCompleted { result: _ } => "SubOrchestrationCompleted",
        EventKind::SubOrchestrationFailed { details: _ } => "SubOrchestrationFailed",
        EventKind::SubOrchestrationCancelRequested { reason: _ } => "SubOrchestrationCancelRequested",
        EventKind::CustomStatusUpdated { status: _ } => "CustomStatusUpdated",
        EventKind::KeyValueSet { key: _, value: _, last_updated_at_ms: _ } => "KeyValueSet",
        EventKind::KeyValueCleared { key: _ } => "KeyValueCleared",
        EventKind::KeyValuesCleared => "KeyValuesCleared",
    }
}

/// The envelope and the tag as they are stored.
#[test]
fn the_stored_form_is_flat_and_tagged_by_its_wire_name() {
    let kinds = [
        EventKind::OrchestrationStarted {
            name: "n".into(),
            version: "1.0.0".into(),
            input: "i".into(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        },
        EventKind::QueueSubscribed { name: "q".into() },
        EventKind::QueueEventDelivered { name: "q".into(), data: "d".into() },
        EventKind::QueueSubscriptionCancelled { reason: "r".into() },
        EventKind::ActivityScheduled { name: "a".into(), input: "i".into(), session_id: None, tag: None },
        EventKind::KeyValueSet { key: "k".into(), value: "v".into(), last_updated_at_ms: 5 },
    ];
    for kind in kinds {
        let name = wire_name(&kind);
        let stored = serde_json::to_value(Event::with_event_id(1, "i", 1, None, kind)).unwrap();
        assert_eq!(stored["type"], name);
        assert!(stored["source_event_id"].is_null() && stored.get("source_event_id").is_some());
        assert!(stored.get("tag").is_none() && stored.get("carry_forward_events").is_none());
    }
}

/// Every variant with every field.
fn action_name(action: Action) -> String {
    match action {
        Action::CallActivity { scheduling_event_id: _, name, input: _, session_id: _, tag: _ } => name,
        Action::CreateTimer { scheduling_event_id, fire_at_ms } => {
            u64::to_string(&(scheduling_event_id + fire_at_ms))
        }
        Action::WaitExternal { scheduling_event_id: _, name } => name,
        Action::AwaitCancellation => String::new(),
        Action::DequeueEvent { scheduling_event_id: _, name } => name,
        Action::StartSubOrchestration { scheduling_event_id: _, name, version: _, instance: _, input: _ } => {
            name
        }
        Action::StartOrchestrationDetached {
            scheduling_event_id: _,
            name,
            version: _,
            instance: _,
            input: _,
        } => name,
        Action::ContinueAsNew { input, version } => version.unwrap_or(input),
        Action::UpdateCustomStatus { status } => status.unwrap_or_default(),
        Action::SetKeyValue { key, value, last_updated_at_ms: _ } => key + &value,
        Action::ClearKeyValue { key } => key,
        Action::ClearKeyValues => String::new(),
    }
}

#[test]
fn actions_are_plain_values() {
    bounds::value::<Action>();
    assert_eq!(action_name(Action::ClearKeyValue { key: "k".into() }), "k");
}
