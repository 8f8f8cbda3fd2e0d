//! Finds queue items whose work is done and whose acknowledgement was lost.

use std::collections::BTreeSet;

use duroxide_core::{Event, EventRole, WorkItem};
use duroxide_provider::memory::record::StoredInstance;

use crate::{QueueItemId, WhichQueue};

/// A schedule: execution and event id.
type Schedule = (u64, u64);

/// The queue items of an instance that must not be delivered: completions that are already in its history, and
/// activities whose completion is in its history or in its queue.
///
/// A crash between an append and its acknowledgement leaves such items. Recovery acknowledges them.
pub fn already_recorded(stored: &StoredInstance) -> Vec<QueueItemId> {
    let completions: Vec<(u64, Schedule)> = stored
        .messages
        .iter()
        .filter_map(|message| {
            let item = serde_json::from_str(&message.row.data).ok()?;
            Some((message.row.number, completed_by(&item)?))
        })
        .collect();
    if completions.is_empty() && stored.activities.is_empty() {
        return Vec::new();
    }
    let recorded = recorded_completions(stored);
    let queued: BTreeSet<Schedule> = completions.iter().map(|(_, schedule)| *schedule).collect();
    let is_done = |schedule: &Schedule| recorded.contains(schedule) || queued.contains(schedule);
    let messages = completions
        .iter()
        .filter(|(_, schedule)| recorded.contains(schedule))
        .map(|(number, _)| (WhichQueue::Orchestrator, *number));
    let activities = stored
        .activities
        .iter()
        .filter(|activity| is_done(&(activity.row.execution_id, activity.row.activity_id)))
        .map(|activity| (WhichQueue::Worker, activity.row.number));
    let instance = &stored.instance.row.id;
    messages
        .chain(activities)
        .map(|(queue, number)| QueueItemId { queue, instance: instance.clone(), number })
        .collect()
}

/// The schedule that a message completes.
fn completed_by(item: &WorkItem) -> Option<Schedule> {
    match item {
        WorkItem::ActivityCompleted { execution_id, id, .. }
        | WorkItem::ActivityFailed { execution_id, id, .. }
        | WorkItem::TimerFired { execution_id, id, .. } => Some((*execution_id, *id)),
        WorkItem::SubOrchCompleted { parent_execution_id, parent_id, .. }
        | WorkItem::SubOrchFailed { parent_execution_id, parent_id, .. } => {
            Some((*parent_execution_id, *parent_id))
        }
        WorkItem::StartOrchestration { .. }
        | WorkItem::ActivityExecute { .. }
        | WorkItem::ExternalRaised { .. }
        | WorkItem::QueueMessage { .. }
        | WorkItem::CancelInstance { .. }
        | WorkItem::ContinueAsNew { .. } => None,
    }
}

fn recorded_completions(stored: &StoredInstance) -> BTreeSet<Schedule> {
    let mut recorded = BTreeSet::new();
    for (execution, events) in &stored.executions {
        let events = events.iter().filter_map(|row| serde_json::from_str::<Event>(&row.data).ok());
        let is_completion = |event: &Event| matches!(event.kind.role(), EventRole::Completion(_));
        let sources = events.filter(is_completion).filter_map(|event| event.source_event_id);
        recorded.extend(sources.map(|source| (execution.execution_id, source)));
    }
    recorded
}
