//! Decodes stored text into events, on the caller's thread. An undecodable event is reported, never skipped.

use duroxide_core::{Event, EventKind, OrchestrationDescriptor, TracedInput, WorkItem};
use duroxide_provider::{
    LoadedExecution, ProviderError, RawEvent, StartOutcome, StatusSnapshot,
    store::{EventRow, StoredExecution, StoredStart, StoredStatus},
};
use serde::Deserialize;

/// The execution that a history belongs to, for error texts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryOf<'a> {
    pub(crate) instance: &'a str,
    pub(crate) execution_id: u64,
}

/// The events before the first that cannot be decoded, and the error of that one.
pub(crate) fn decode_events(rows: &[EventRow], of: HistoryOf<'_>) -> (Vec<Event>, Option<String>) {
    let mut events = Vec::with_capacity(rows.len());
    for (position, row) in rows.iter().enumerate() {
        match serde_json::from_str(&row.data) {
            Ok(event) => events.push(event),
            Err(error) => return (events, Some(undecodable(position, &error, of))),
        }
    }
    (events, None)
}

/// The whole history, or a permanent error.
pub(crate) fn decode_history(
    operation: &str,
    rows: &[EventRow],
    of: HistoryOf<'_>,
) -> Result<Vec<Event>, ProviderError> {
    match decode_events(rows, of) {
        (events, None) => Ok(events),
        (_, Some(error)) => Err(ProviderError::permanent(operation, error)),
    }
}

/// A loaded execution; it reports undecodable events.
pub(crate) fn decode_execution(stored: StoredExecution, of: HistoryOf<'_>) -> LoadedExecution {
    let (history, history_error) = decode_events(&stored.events, of);
    LoadedExecution { history, history_error, kv_snapshot: stored.kv.into_iter().collect() }
}

/// Decodes one event. The error is permanent.
pub(crate) fn decode_event(operation: &str, data: &str, instance: &str) -> Result<Event, ProviderError> {
    serde_json::from_str(data).map_err(|error| {
        let message = format!("Failed to deserialize event: {error} (instance {instance})");
        ProviderError::permanent(operation, message)
    })
}

/// The status of an instance, or a permanent error.
pub(crate) fn decode_status(
    operation: &str,
    stored: StoredStatus,
    instance: &str,
) -> Result<StatusSnapshot, ProviderError> {
    let terminal_event = stored.terminal_event.map(|data| decode_event(operation, &data, instance));
    Ok(StatusSnapshot {
        execution_id: stored.execution_id,
        terminal_event: terminal_event.transpose()?,
        custom_status: stored.custom_status,
        custom_status_version: stored.custom_status_version,
    })
}

/// The descriptor of an instance, from its first event.
pub(crate) fn descriptor_of(first: Event) -> Option<OrchestrationDescriptor> {
    let EventKind::OrchestrationStarted { name, version, parent_instance, parent_id, .. } = first.kind else {
        return None;
    };
    Some(OrchestrationDescriptor { name, version, parent_instance, parent_id })
}

/// Whether an existing instance has the name and the input of a start. The version is not compared, because a start without
/// a version is recorded with the version that a node chose; nor is the trace, which differs in each call.
pub(crate) fn compare_starts(asked: &WorkItem, found: &StoredStart) -> StartOutcome {
    let WorkItem::StartOrchestration { orchestration: asked_name, input: asked_input, .. } = asked else {
        return StartOutcome::FoundUnknown;
    };
    let stored = match found {
        StoredStart::Recorded(event) => serde_json::from_str::<Event>(event).ok().and_then(recorded_start),
        StoredStart::Queued(start) => serde_json::from_str::<WorkItem>(start).ok().and_then(queued_start),
        StoredStart::Unknown => None,
    };
    match stored {
        Some((name, input))
            if &name == asked_name && TracedInput::plain(&input) == TracedInput::plain(asked_input) =>
        {
            StartOutcome::Found
        }
        Some(_) => StartOutcome::FoundDifferent,
        None => StartOutcome::FoundUnknown,
    }
}

fn recorded_start(first: Event) -> Option<(String, String)> {
    let EventKind::OrchestrationStarted { name, input, .. } = first.kind else { return None };
    Some((name, input))
}

fn queued_start(item: WorkItem) -> Option<(String, String)> {
    let WorkItem::StartOrchestration { orchestration, input, .. } = item else { return None };
    Some((orchestration, input))
}

/// How many queue messages the execution inherited from the one before it.
pub(crate) fn carried_messages(first: &Event) -> u64 {
    let EventKind::OrchestrationStarted { carry_forward_events: Some(carried), .. } = &first.kind else {
        return 0;
    };
    u64::try_from(carried.len()).unwrap_or(u64::MAX)
}

/// The duroxide version that an event is stamped with; `unknown` if the text has none.
pub(crate) fn stamped_version(data: &str) -> String {
    #[derive(Deserialize)]
    struct Stamp {
        duroxide_version: String,
    }
    serde_json::from_str::<Stamp>(data).map_or_else(|_| "unknown".to_owned(), |stamp| stamp.duroxide_version)
}

/// A stored event, with its kind if the text names one.
pub(crate) fn raw_event(row: EventRow) -> RawEvent {
    #[derive(Deserialize)]
    struct Kind {
        r#type: String,
    }
    let event_type = serde_json::from_str::<Kind>(&row.data).map(|kind| kind.r#type).unwrap_or_default();
    RawEvent { event_id: row.event_id, event_type, data: row.data }
}

fn undecodable(position: usize, error: &serde_json::Error, of: HistoryOf<'_>) -> String {
    let HistoryOf { instance, execution_id } = of;
    format!(
        "Failed to deserialize event at position {position}: {error} (instance {instance}, execution \
         {execution_id})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: HistoryOf<'_> = HistoryOf { instance: "order-1", execution_id: 3 };

    fn row(event_id: u64, data: &str) -> EventRow {
        EventRow { event_id, data: data.to_owned() }
    }

    fn timer_row(event_id: u64) -> EventRow {
        EventRow::new(&Event {
            event_id,
            source_event_id: None,
            instance_id: "order-1".to_owned(),
            execution_id: 3,
            timestamp_ms: 0,
            duroxide_version: "0.5.0".to_owned(),
            kind: EventKind::TimerCreated { fire_at_ms: 7 },
        })
    }

    /// S3.35, S3.37: the position counts from 0, the events before it are kept.
    #[test]
    fn the_first_undecodable_event_ends_the_history_and_is_named() {
        let rows = [timer_row(1), row(2, r#"{"type":"FromTheFuture"}"#), timer_row(3)];
        let (events, error) = decode_events(&rows, OF);
        let error = error.unwrap();
        assert_eq!(events.len(), 1);
        assert!(error.starts_with("Failed to deserialize event at position 1: "), "{error}");
        assert!(error.ends_with("(instance order-1, execution 3)"), "{error}");
    }

    /// S3.40: a plain read never leaves an event out.
    #[test]
    fn a_read_of_a_corrupt_history_is_a_permanent_error() {
        let error = decode_history("read", &[row(1, "nonsense")], OF).unwrap_err();
        assert!(!error.is_retryable() && error.message.contains("position 0"), "{error}");
    }

    #[test]
    fn raw_events_have_their_kind_if_it_can_be_read() {
        assert_eq!(raw_event(row(2, r#"{"type":"FromTheFuture"}"#)).event_type, "FromTheFuture");
        assert_eq!(raw_event(row(2, "nonsense")).event_type, "");
        assert_eq!(stamped_version(&timer_row(1).data), "0.5.0");
        assert_eq!(stamped_version("nonsense"), "unknown");
    }
}
