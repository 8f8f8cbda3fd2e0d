//! Events and rounds as the runtime would commit them.

use duroxide_core::{ErrorDetails, Event, EventKind};
use duroxide_provider::{ExecutionMetadata, Round, ScheduledActivityIdentifier};
use semver::Version;

use crate::message::{ORCHESTRATION, continuation_start};

/// An event of an execution.
pub(crate) fn event(instance: &str, execution_id: u64, event_id: u64, kind: EventKind) -> Event {
    Event::with_event_id(event_id, instance, execution_id, None, kind)
}

/// The first event of an execution.
pub(crate) fn started(instance: &str, execution_id: u64) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: ORCHESTRATION.to_owned(),
        version: "1.0.0".to_owned(),
        input: "{}".to_owned(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    event(instance, execution_id, 1, kind)
}

/// The schedule of an activity.
pub(crate) fn activity_scheduled(instance: &str, execution_id: u64, event_id: u64) -> Event {
    let kind = EventKind::ActivityScheduled {
        name: "Work".to_owned(),
        input: format!("input {event_id}"),
        session_id: None,
        tag: None,
    };
    event(instance, execution_id, event_id, kind)
}

/// A custom status, or its removal.
pub(crate) fn status_updated(
    instance: &str,
    execution_id: u64,
    event_id: u64,
    status: Option<&str>,
) -> Event {
    let kind = EventKind::CustomStatusUpdated { status: status.map(str::to_owned) };
    event(instance, execution_id, event_id, kind)
}

/// A key that is set. Its time is the event id in seconds, so that tests can distinguish sets.
pub(crate) fn kv_set(instance: &str, execution_id: u64, event_id: u64, key: &str, value: &str) -> Event {
    let kind = EventKind::KeyValueSet {
        key: key.to_owned(),
        value: value.to_owned(),
        last_updated_at_ms: event_id * 1_000,
    };
    event(instance, execution_id, event_id, kind)
}

/// The removal of a key.
pub(crate) fn kv_cleared(instance: &str, execution_id: u64, event_id: u64, key: &str) -> Event {
    event(instance, execution_id, event_id, EventKind::KeyValueCleared { key: key.to_owned() })
}

/// The removal of all keys.
pub(crate) fn kv_all_cleared(instance: &str, execution_id: u64, event_id: u64) -> Event {
    event(instance, execution_id, event_id, EventKind::KeyValuesCleared)
}

/// The metadata of the first round of an execution.
pub(crate) fn first_metadata() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some(ORCHESTRATION.to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    }
}

/// The first round of an instance, which starts and waits.
pub(crate) fn first_round(instance: &str) -> Round {
    next_execution_round(instance, 1)
}

/// The first round of an instance that is pinned to a duroxide version.
pub(crate) fn pinned_round(instance: &str, pinned: Version) -> Round {
    let mut round = first_round(instance);
    round.metadata.pinned_duroxide_version = Some(pinned);
    round
}

/// The first round of an execution, which starts and waits.
pub(crate) fn next_execution_round(instance: &str, execution_id: u64) -> Round {
    Round { metadata: first_metadata(), ..turn_round(execution_id, vec![started(instance, execution_id)]) }
}

/// A round that appends events and leaves the execution running.
pub(crate) fn turn_round(execution_id: u64, history_delta: Vec<Event>) -> Round {
    Round { execution_id, history_delta, ..Round::default() }
}

/// A round that ends the instance with this output.
pub(crate) fn completion(instance: &str, execution_id: u64, event_id: u64, output: &str) -> Round {
    let kind = EventKind::OrchestrationCompleted { output: output.to_owned() };
    ending(execution_id, event(instance, execution_id, event_id, kind), "Completed", output)
}

/// A round that fails the instance.
pub(crate) fn failure(instance: &str, execution_id: u64, event_id: u64, message: &str) -> Round {
    let kind = EventKind::OrchestrationFailed { details: ErrorDetails::orchestration_failed(message) };
    ending(execution_id, event(instance, execution_id, event_id, kind), "Failed", message)
}

/// A round that ends the execution and leaves a `ContinueAsNew` item for the next one.
pub(crate) fn continuation(instance: &str, execution_id: u64, event_id: u64) -> Round {
    let kind = EventKind::OrchestrationContinuedAsNew { input: "next".to_owned() };
    Round {
        orchestrator_items: vec![continuation_start(instance)],
        ..ending(execution_id, event(instance, execution_id, event_id, kind), "ContinuedAsNew", "next")
    }
}

fn ending(execution_id: u64, last: Event, status: &str, output: &str) -> Round {
    let metadata = ExecutionMetadata {
        status: Some(status.to_owned()),
        output: Some(output.to_owned()),
        ..ExecutionMetadata::default()
    };
    Round { metadata, ..turn_round(execution_id, vec![last]) }
}

/// Identifies an activity of the first execution.
pub(crate) fn activity_of(instance: &str, activity_id: u64) -> ScheduledActivityIdentifier {
    ScheduledActivityIdentifier { instance: instance.to_owned(), execution_id: 1, activity_id }
}
