//! Finds out whether a call whose answer was lost had succeeded (16.5, 22).
//!
//! A retry of such a call finds that its lock has ended. If the first try succeeded, its effects are counted and logged
//! as usual. The history decides, because no other worker can have written the same events at the same time.

use duroxide_core::{Event, EventKind, WorkItem};
use duroxide_provider::Round;

use crate::dispatch::{node::Node, provider_call};

/// Whether the round is stored: the history contains its last event exactly as this node made it, timestamp included.
pub(crate) async fn was_committed(node: &Node, instance: &str, round: &Round) -> bool {
    let Some(last) = round.history_delta.last() else { return false };
    let history = history(node, instance, round.execution_id).await;
    history.iter().any(|event| event == last)
}

/// Whether the outcome of an activity is stored. The outcome may still be a message that waits for the next turn, where
/// no read finds it. If the lock was held until the call (`lock_was_held`), no other worker can have claimed the
/// activity, so the outcome is stored unless a turn has cancelled the activity.
pub(crate) async fn was_recorded(node: &Node, outcome: &WorkItem, lock_was_held: bool) -> bool {
    let Some((instance, execution_id, activity_id, recorded_as)) = event_of(outcome) else { return false };
    let history = history(node, instance, execution_id).await;
    let mut of_activity = history.iter().filter(|event| event.source_event_id == Some(activity_id)).map(kind);
    if of_activity.clone().any(is_outcome) {
        return of_activity.any(|kind| *kind == recorded_as);
    }
    let is_given_up = of_activity.next().is_some();
    lock_was_held && !is_given_up && !history.is_empty()
}

async fn history(node: &Node, instance: &str, execution_id: u64) -> Vec<Event> {
    let read = node.store.read_with_execution(instance, execution_id);
    provider_call("read_with_execution", read).await.unwrap_or_default()
}

fn kind(event: &Event) -> &EventKind {
    &event.kind
}

fn is_outcome(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ActivityCompleted { .. } | EventKind::ActivityFailed { .. })
}

/// Instance, execution and id of an activity, and the event that records its outcome.
fn event_of(outcome: &WorkItem) -> Option<(&str, u64, u64, EventKind)> {
    match outcome {
        WorkItem::ActivityCompleted { instance, execution_id, id, result } => {
            let kind = EventKind::ActivityCompleted { result: result.clone() };
            Some((instance, *execution_id, *id, kind))
        }
        WorkItem::ActivityFailed { instance, execution_id, id, details } => {
            let kind = EventKind::ActivityFailed { details: details.clone() };
            Some((instance, *execution_id, *id, kind))
        }
        WorkItem::StartOrchestration { .. }
        | WorkItem::ContinueAsNew { .. }
        | WorkItem::ActivityExecute { .. }
        | WorkItem::TimerFired { .. }
        | WorkItem::ExternalRaised { .. }
        | WorkItem::QueueMessage { .. }
        | WorkItem::SubOrchCompleted { .. }
        | WorkItem::SubOrchFailed { .. }
        | WorkItem::CancelInstance { .. } => None,
    }
}
