//! Invariant I19: the stored status agrees with the history.

use std::collections::BTreeMap;

use duroxide_core::{Event, EventKind, KvEntry};

use super::{
    Violations,
    view::{Ending, ExecutionView, InstanceView},
};

const NAME: &str = "I19 StatusAgrees";

/// I19: stored status and output say what the last event says.
pub(super) fn status_agrees(instance: &InstanceView<'_>, found: &mut Violations) {
    for execution in instance.executions.iter().filter(|execution| execution.readable) {
        let expected = match execution.ending() {
            None => "Running",
            Some(Ending::Completed { .. }) => "Completed",
            Some(Ending::Failed { .. }) => "Failed",
            Some(Ending::ContinuedAsNew { .. }) => "ContinuedAsNew",
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
    Some(match execution.ending()? {
        Ending::Completed { output } => output.to_owned(),
        Ending::Failed { details } => details.display_message(),
        Ending::ContinuedAsNew { input } => input.to_owned(),
    })
}

/// I19: the custom status is the last one recorded.
pub(super) fn custom_status_agrees(instance: &InstanceView<'_>, found: &mut Violations) {
    let events = instance.executions.iter().flat_map(|execution| &execution.events);
    let recorded = events.rev().find_map(|event| {
        let EventKind::CustomStatusUpdated { status } = &event.kind else { return None };
        Some(status)
    });
    let stored = instance.row.custom_status.as_ref().map(|(status, _)| status);
    let forgotten = recorded.is_none() && !instance.is_complete();
    if stored != recorded && !forgotten {
        found.add(NAME, instance.id(), format!("custom status {stored:?}, history says {recorded:?}"));
    }
}

/// I19: the key-value store is what the recorded changes of all executions make.
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
    use EventKind as E;
    match &event.kind {
        E::KeyValueSet { key, value, last_updated_at_ms } => {
            let entry = KvEntry { value: value.clone(), last_updated_at_ms: *last_updated_at_ms };
            kv.insert(key.clone(), entry);
        }
        E::KeyValueCleared { key } => {
            kv.remove(key);
        }
        E::KeyValuesCleared => kv.clear(),
        E::OrchestrationStarted { .. }
        | E::OrchestrationCompleted { .. }
        | E::OrchestrationFailed { .. }
        | E::OrchestrationContinuedAsNew { .. }
        | E::OrchestrationCancelRequested { .. }
        | E::ActivityScheduled { .. }
        | E::ActivityCompleted { .. }
        | E::ActivityFailed { .. }
        | E::ActivityCancelRequested { .. }
        | E::TimerCreated { .. }
        | E::TimerFired { .. }
        | E::ExternalSubscribed { .. }
        | E::ExternalEvent { .. }
        | E::ExternalSubscribedCancelled { .. }
        | E::QueueSubscribed { .. }
        | E::QueueEventDelivered { .. }
        | E::QueueSubscriptionCancelled { .. }
        | E::OrchestrationChained { .. }
        | E::SubOrchestrationScheduled { .. }
        | E::SubOrchestrationCompleted { .. }
        | E::SubOrchestrationFailed { .. }
        | E::SubOrchestrationCancelRequested { .. }
        | E::CustomStatusUpdated { .. } => {}
    }
}
