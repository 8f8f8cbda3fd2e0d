//! The JSON of events and work items is a contract: stored histories are decoded for ever.

mod decode_errors;
mod trace;

use duroxide_core::{ErrorDetails, Event, EventKind, PoisonMessageType, WorkItem};
use serde_json::{Value, json};

fn event(kind: EventKind, source: Option<u64>) -> Event {
    Event {
        event_id: 3,
        source_event_id: source,
        instance_id: "i".into(),
        execution_id: 1,
        timestamp_ms: 5,
        duroxide_version: "0.5.0".into(),
        kind,
    }
}

#[track_caller]
fn check_event(kind: EventKind, source: Option<u64>, expected: Value) {
    let event = event(kind, source);
    assert_eq!(event.kind.clone().into_end().is_some(), event.is_terminal());
    let mut whole = json!({
        "event_id": 3, "source_event_id": source, "instance_id": "i", "execution_id": 1, "timestamp_ms": 5,
        "duroxide_version": "0.5.0",
    });
    whole.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
    assert_eq!(serde_json::to_value(&event).unwrap(), whole);
    assert_eq!(serde_json::from_value::<Event>(whole).unwrap(), event);
}

fn details() -> (ErrorDetails, Value) {
    let details = ErrorDetails::Poison {
        attempt_count: 11,
        max_attempts: 10,
        message_type: PoisonMessageType::Activity {
            instance: "i".into(),
            execution_id: 1,
            activity_name: "a".into(),
            activity_id: 2,
        },
        message: "m".into(),
    };
    let value = json!({"Poison": {
        "attempt_count": 11, "max_attempts": 10, "message": "m",
        "message_type": {"Activity":
            {"instance": "i", "execution_id": 1, "activity_name": "a", "activity_id": 2}},
    }});
    (details, value)
}

/// Checks kinds with this source, together with the names under which they are stored.
#[track_caller]
fn check_kinds<const N: usize>(source: Option<u64>, kinds: [(EventKind, Value); N]) {
    for (kind, expected) in kinds {
        assert_eq!(expected["type"], kind.wire_name());
        check_event(kind, source, expected);
    }
}

fn s(text: &str) -> String {
    text.to_owned()
}

/// S2.1, S2.2: the common fields and the first event; later fields are left out if they have no value.
#[test]
fn a_start_has_its_stored_form() {
    use EventKind as E;
    check_event(
        E::OrchestrationStarted {
            name: s("o"),
            version: s("1.0.0"),
            input: s("x"),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        },
        None,
        json!({"type": "OrchestrationStarted", "name": "o", "version": "1.0.0", "input": "x",
               "parent_instance": null, "parent_id": null}),
    );
    check_event(
        E::OrchestrationStarted {
            name: s("o"),
            version: s("1.0.0"),
            input: s("x"),
            parent_instance: Some(s("p")),
            parent_id: Some(4),
            parent_execution_id: Some(2),
            carry_forward_events: Some(vec![(s("q"), s("1"))]),
            initial_custom_status: Some(s("st")),
        },
        None,
        json!({"type": "OrchestrationStarted", "name": "o", "version": "1.0.0", "input": "x",
               "parent_instance": "p", "parent_id": 4, "parent_execution_id": 2,
               "carry_forward_events": [["q", "1"]], "initial_custom_status": "st"}),
    );
}

/// S2.2
#[test]
fn every_end_has_its_stored_form() {
    use EventKind as E;
    let (error, error_json) = details();
    check_kinds(
        None,
        [
            (
                E::OrchestrationCompleted { output: s("o") },
                json!({"type": "OrchestrationCompleted", "output": "o"}),
            ),
            (
                E::OrchestrationFailed { details: error },
                json!({"type": "OrchestrationFailed", "details": error_json}),
            ),
            (
                E::OrchestrationContinuedAsNew { input: s("n") },
                json!({"type": "OrchestrationContinuedAsNew", "input": "n"}),
            ),
            (
                E::OrchestrationCancelRequested { reason: s("r") },
                json!({"type": "OrchestrationCancelRequested", "reason": "r"}),
            ),
        ],
    );
}

/// S2.2
#[test]
fn every_call_and_message_has_its_stored_form() {
    use EventKind as E;
    check_kinds(
        None,
        [
            (
                E::ActivityScheduled { name: s("a"), input: s("x"), session_id: None, tag: Some(s("gpu")) },
                json!({"type": "ActivityScheduled", "name": "a", "input": "x", "tag": "gpu"}),
            ),
            (E::TimerCreated { fire_at_ms: 9 }, json!({"type": "TimerCreated", "fire_at_ms": 9})),
            (
                E::StepEnded { step: 1, name: s("p"), result: Ok(s("7")) },
                json!({"type": "StepEnded", "step": 1, "name": "p", "result": {"Ok": "7"}}),
            ),
            (E::CancellationSubscribed, json!({"type": "CancellationSubscribed"})),
            (E::ExternalSubscribed { name: s("e") }, json!({"type": "ExternalSubscribed", "name": "e"})),
            (
                E::ExternalEvent { name: s("e"), data: s("d") },
                json!({"type": "ExternalEvent", "name": "e", "data": "d"}),
            ),
            (
                E::QueueSubscribed { name: s("q") },
                json!({"type": "ExternalSubscribedPersistent", "name": "q"}),
            ),
            (
                E::QueueEventDelivered { name: s("q"), data: s("d") },
                json!({"type": "ExternalEventPersistent", "name": "q", "data": "d"}),
            ),
            (
                E::OrchestrationChained { name: s("o"), instance: s("i2"), input: s("x") },
                json!({"type": "OrchestrationChained", "name": "o", "instance": "i2", "input": "x"}),
            ),
            (
                E::SubOrchestrationScheduled { name: s("c"), instance: s("sub::3"), input: s("x") },
                json!({"type": "SubOrchestrationScheduled", "name": "c", "instance": "sub::3", "input": "x"}),
            ),
        ],
    );
}

/// S2.2
#[test]
fn every_change_of_state_has_its_stored_form() {
    use EventKind as E;
    check_kinds(
        None,
        [
            (E::CustomStatusUpdated { status: None }, json!({"type": "CustomStatusUpdated", "status": null})),
            (
                E::KeyValueSet { key: s("k"), value: s("v"), last_updated_at_ms: 7 },
                json!({"type": "KeyValueSet", "key": "k", "value": "v", "last_updated_at_ms": 7}),
            ),
            (E::KeyValueCleared { key: s("k") }, json!({"type": "KeyValueCleared", "key": "k"})),
            (E::KeyValuesCleared, json!({"type": "KeyValuesCleared"})),
        ],
    );
}

/// S2.2
#[test]
fn every_completion_has_its_stored_form() {
    use EventKind as E;
    let (error, error_json) = details();
    check_kinds(
        Some(2),
        [
            (E::ActivityCompleted { result: s("r") }, json!({"type": "ActivityCompleted", "result": "r"})),
            (
                E::ActivityFailed { details: error.clone() },
                json!({"type": "ActivityFailed", "details": error_json}),
            ),
            (
                E::ActivityCancelRequested { reason: s("r") },
                json!({"type": "ActivityCancelRequested", "reason": "r"}),
            ),
            (E::TimerFired { fire_at_ms: 9 }, json!({"type": "TimerFired", "fire_at_ms": 9})),
            (
                E::ExternalSubscribedCancelled { reason: s("r") },
                json!({"type": "ExternalSubscribedCancelled", "reason": "r"}),
            ),
            (
                E::QueueSubscriptionCancelled { reason: s("r") },
                json!({"type": "ExternalSubscribedPersistentCancelled", "reason": "r"}),
            ),
            (
                E::SubOrchestrationCompleted { result: s("r") },
                json!({"type": "SubOrchestrationCompleted", "result": "r"}),
            ),
            (
                E::SubOrchestrationFailed { details: error },
                json!({"type": "SubOrchestrationFailed", "details": error_json}),
            ),
            (
                E::SubOrchestrationCancelRequested { reason: s("r") },
                json!({"type": "SubOrchestrationCancelRequested", "reason": "r"}),
            ),
        ],
    );
}

/// S2.4, S3.34: a missing stamp and an unknown kind are errors, not guesses.
#[test]
fn incomplete_and_unknown_events_do_not_decode() {
    let mut value =
        serde_json::to_value(event(EventKind::KeyValuesCleared, None)).unwrap().as_object().unwrap().clone();
    value["type"] = json!("FromTheFuture");
    let unknown = serde_json::from_value::<Event>(Value::Object(value.clone())).unwrap_err().to_string();
    assert!(unknown.contains("unknown variant `FromTheFuture`"), "{unknown}");
    value["type"] = json!("KeyValuesCleared");
    value.remove("duroxide_version");
    let missing = serde_json::from_value::<Event>(Value::Object(value)).unwrap_err().to_string();
    assert!(missing.contains("missing field `duroxide_version`"), "{missing}");
}

#[test]
fn optional_fields_of_work_items_may_be_missing() {
    let text = r#"{"ContinueAsNew":{"instance":"i","orchestration":"o","input":"x","version":null}}"#;
    let item: WorkItem = serde_json::from_str(text).unwrap();
    assert!(
        matches!(&item, WorkItem::ContinueAsNew { carry_forward_events, .. } if carry_forward_events.is_empty())
    );
    let start = WorkItem::StartOrchestration {
        instance: "i".into(),
        orchestration: "o".into(),
        input: "x".into(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    assert_eq!(
        serde_json::to_value(start).unwrap(),
        json!({"StartOrchestration": {"instance": "i", "orchestration": "o", "input": "x", "version": null,
               "parent_instance": null, "parent_id": null, "execution_id": 1}})
    );
}

/// S1.15, S1.16, S1.17, S1.18, S2.9: the texts users see.
#[test]
fn errors_have_their_texts() {
    let (poison, _) = details();
    assert_eq!(poison.display_message(), "poison: activity a#2 exceeded 11 attempts (max 10)");
    assert_eq!((poison.category(), poison.is_retryable()), ("poison", false));
    let orchestration = ErrorDetails::Poison {
        attempt_count: 4,
        max_attempts: 3,
        message_type: PoisonMessageType::Orchestration { instance: "i".into(), execution_id: 1 },
        message: String::new(),
    };
    assert_eq!(orchestration.display_message(), "poison: orchestration i exceeded 4 attempts (max 3)");
    assert_eq!(ErrorDetails::cancelled("why").display_message(), "canceled: why");
    assert_eq!(ErrorDetails::nondeterminism("x").display_message(), "nondeterministic: x");
}
