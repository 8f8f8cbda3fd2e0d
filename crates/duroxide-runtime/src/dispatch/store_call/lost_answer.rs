//! Whether a call that found its lock gone had succeeded in an earlier try, whose answer was lost (semantics 16.5, 22).
//!
//! Such a call is as good as one that was answered: what it did is counted and logged, and activities that it took back are
//! told. The history decides, because nobody else can have written the same events at the same time.

use duroxide_core::{Event, EventKind, WorkItem};
use duroxide_provider::Round;

use crate::dispatch::{node::Node, provider_call};

/// Whether the round is stored: its last event is there as this node made it, times included.
pub(crate) async fn was_committed(node: &Node, instance: &str, round: &Round) -> bool {
    let Some(last) = round.history_delta.last() else { return false };
    let history = history(node, instance, round.execution_id).await;
    history.iter().any(|event| event == last)
}

/// Whether the outcome of an activity is stored. It may still wait for its turn, where no read finds it. If the lock was
/// `kept` until the call, nobody else can have taken the activity, so then it is stored unless a turn has given it up.
pub(crate) async fn was_recorded(node: &Node, outcome: &WorkItem, kept: bool) -> bool {
    let Some((instance, execution_id, activity_id, recorded_as)) = event_of(outcome) else { return false };
    let history = history(node, instance, execution_id).await;
    let mut of_activity = history.iter().filter(|event| event.source_event_id == Some(activity_id)).map(kind);
    if of_activity.clone().any(is_outcome) {
        return of_activity.any(|kind| *kind == recorded_as);
    }
    let is_given_up = of_activity.next().is_some();
    kept && !is_given_up && !history.is_empty()
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

/// Instance, execution and number of an activity, and the event that its outcome becomes.
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
        _ => None,
    }
}
