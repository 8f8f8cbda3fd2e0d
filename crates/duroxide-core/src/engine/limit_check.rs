//! Checks the limits on the actions of one turn (15.1, 15.2).

use std::fmt::Arguments;

use super::execution::{Draft, Execution};
use crate::{
    Action, RuntimeLimits,
    limits::{MAX_CUSTOM_STATUS_BYTES, MAX_KV_KEYS, MAX_KV_VALUE_BYTES, MAX_TAG_NAME_BYTES},
};

/// The first limit that this turn goes over, as the text of its failure.
pub(super) fn violation(execution: &Execution, draft: &Draft) -> Option<String> {
    let limits = &execution.limits;
    too_many_actions(execution)
        .or_else(|| draft.scheduled.iter().find_map(|(_, action)| of_action(action, limits)))
        .or_else(|| too_many_keys(execution, draft))
        .or_else(|| output_too_large(execution))
        .or_else(|| history_too_long(execution))
}

fn too_many_actions(execution: &Execution) -> Option<String> {
    let asked = execution.shared.lock().emissions_in_turn();
    let max = execution.limits.max_actions_per_turn?;
    (asked > max).then(|| format!("Actions in one turn ({asked}) exceed limit ({max})"))
}

fn of_action(action: &Action, limits: &RuntimeLimits) -> Option<String> {
    match action {
        Action::CallActivity { name, input, session_id, tag, .. } => tag_too_large(name, tag.as_deref())
            .or_else(|| payload("Activity input", input, limits))
            .or_else(|| payload("Activity name", name, limits))
            .or_else(|| payload("Session id", session_id.as_deref()?, limits)),
        Action::StartSubOrchestration { name, instance, input, .. } => {
            payload("Sub-orchestration input", input, limits)
                .or_else(|| payload("Sub-orchestration name", name, limits))
                .or_else(|| payload("Sub-orchestration instance id", instance, limits))
        }
        Action::StartOrchestrationDetached { name, instance, input, .. } => {
            payload("Orchestration input", input, limits)
                .or_else(|| payload("Orchestration name", name, limits))
                .or_else(|| payload("Orchestration instance id", instance, limits))
        }
        Action::WaitExternal { name, .. } => payload("Event name", name, limits),
        Action::DequeueEvent { name, .. } => payload("Queue name", name, limits),
        Action::ClearKeyValue { key } => payload("KV key", key, limits),
        Action::UpdateCustomStatus { status: Some(status) } => {
            over(format_args!("Custom status size"), status.len(), MAX_CUSTOM_STATUS_BYTES)
        }
        Action::SetKeyValue { key, value, .. } => payload("KV key", key, limits)
            .or_else(|| over(format_args!("KV value for key '{key}'"), value.len(), MAX_KV_VALUE_BYTES)),
        Action::CreateTimer { .. }
        | Action::AwaitCancellation
        | Action::ContinueAsNew { .. }
        | Action::UpdateCustomStatus { status: None }
        | Action::ClearKeyValues => None,
    }
}

fn tag_too_large(name: &str, tag: Option<&str>) -> Option<String> {
    over(format_args!("Activity '{name}' tag size"), tag?.len(), MAX_TAG_NAME_BYTES)
}

/// Counts the keys that exist after the turn: those of earlier executions with all changes of this one (11.4).
fn too_many_keys(execution: &Execution, draft: &Draft) -> Option<String> {
    let sets_keys = draft.scheduled.iter().any(|(_, action)| matches!(action, Action::SetKeyValue { .. }));
    let keys = execution.shared.lock().kv.entries.len();
    (sets_keys && keys > MAX_KV_KEYS).then(|| format!("KV key count ({keys}) exceeds limit ({MAX_KV_KEYS})"))
}

fn output_too_large(execution: &Execution) -> Option<String> {
    let limits = &execution.limits;
    match (&execution.continuation, &execution.ended) {
        (Some((input, _)), _) => payload("Continue-as-new input", input, limits),
        (None, Some(Ok(output))) => payload("Orchestration output", output, limits),
        (None, Some(Err(details))) => payload("Orchestration output", &details.display_message(), limits),
        (None, None) => None,
    }
}

fn history_too_long(execution: &Execution) -> Option<String> {
    let events = execution.last_event_id();
    let max = execution.limits.max_history_events?;
    (events > max).then(|| format!("History length ({events} events) exceeds limit ({max})"))
}

fn payload(what: &str, text: &str, limits: &RuntimeLimits) -> Option<String> {
    over(format_args!("{what} size"), text.len(), limits.max_payload_bytes?)
}

fn over(what: Arguments<'_>, bytes: usize, max: usize) -> Option<String> {
    (bytes > max).then(|| format!("{what} ({bytes} bytes) exceeds limit ({max} bytes)"))
}
