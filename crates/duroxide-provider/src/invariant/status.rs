//! Invariant I19: the stored status agrees with the history.

use std::collections::BTreeMap;

use duroxide_core::{Event, EventRole, ExecutionEnd, KeyValueChange, KvEntry};

use super::{
    Violations,
    view::{ExecutionView, InstanceView},
};

const NAME: &str = "I19 StatusAgrees";

/// I19: stored status and output agree with the last event.
pub(super) fn status_agrees(instance: &InstanceView<'_>, found: &mut Violations) {
    for execution in instance.executions.iter().filter(|execution| execution.readable) {
        let expected = match execution.end() {
            None => "Running",
            Some(ExecutionEnd::Completed { .. }) => "Completed",
            Some(ExecutionEnd::Failed { .. }) => "Failed",
            Some(ExecutionEnd::ContinuedAsNew { .. }) => "ContinuedAsNew",
        };
        let (execution_id, status) = (execution.row.execution_id, &execution.row.status);
        if status != expected {
            let detail =
                format!("execution {execution_id} is stored as {status}, its history says {expected}");
            found.add(NAME, instance.id(), detail);
        }
        if execution.row.output != output(execution) {
            let detail = format!("the output of execution {execution_id} is not that of its last event");
            found.add(NAME, instance.id(), detail);
        }
    }
}

fn output(execution: &ExecutionView<'_>) -> Option<String> {
    Some(match execution.end()? {
        ExecutionEnd::Completed { output } => output,
        ExecutionEnd::Failed { details } => details.display_message(),
        ExecutionEnd::ContinuedAsNew { input } => input,
    })
}

/// I19: the custom status is the last one recorded.
pub(super) fn custom_status_agrees(instance: &InstanceView<'_>, found: &mut Violations) {
    let events = instance.executions.iter().flat_map(|execution| &execution.events);
    let recorded = events.rev().find_map(|event| {
        let EventRole::CustomStatus(status) = event.kind.role() else { return None };
        Some(status)
    });
    let stored = instance.row.custom_status.as_ref().map(|(status, _)| status.as_deref());
    let forgotten = recorded.is_none() && !instance.is_complete();
    if stored != recorded && !forgotten {
        found.add(NAME, instance.id(), format!("custom status {stored:?}, history says {recorded:?}"));
    }
}

/// I19: the key-value store equals the recorded changes of all executions, applied in order.
pub(super) fn key_values_agree(instance: &InstanceView<'_>, found: &mut Violations) {
    if !instance.is_complete() {
        return;
    }
    let mut recorded = BTreeMap::new();
    for event in instance.executions.iter().flat_map(|execution| &execution.events) {
        apply(&mut recorded, event);
    }
    let mut stored = instance.row.kv.clone();
    for (key, change) in &instance.row.kv_changes {
        match change {
            Some(entry) => stored.insert(key.clone(), entry.clone()),
            None => stored.remove(key),
        };
    }
    if stored != recorded {
        let keys = (stored.keys().collect::<Vec<_>>(), recorded.keys().collect::<Vec<_>>());
        found.add(NAME, instance.id(), format!("stored keys {:?}, recorded keys {:?}", keys.0, keys.1));
    }
}

fn apply(kv: &mut BTreeMap<String, KvEntry>, event: &Event) {
    let EventRole::KeyValues(change) = event.kind.role() else { return };
    match change {
        KeyValueChange::Set { key, value, last_updated_at_ms } => {
            kv.insert(key.to_owned(), KvEntry { value: value.to_owned(), last_updated_at_ms });
        }
        KeyValueChange::Clear { key } => {
            kv.remove(key);
        }
        KeyValueChange::ClearAll => kv.clear(),
    }
}
