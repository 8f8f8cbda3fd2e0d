//! Orders the steps that carry out a change.

use std::collections::BTreeSet;

use duroxide_provider::memory::record::{ActivityRecord, Changes, MessageRecord};

use crate::{QueueItem, QueueItemId, Step, WhichQueue};

/// The steps of a change, in an order in which a crash between any two of them does no harm: work is enqueued after its
/// schedule is in the history, and a queue item is acknowledged after all its effects are stored.
pub(crate) fn plan(changes: Changes) -> Vec<Step> {
    let added: BTreeSet<String> =
        changes.added_instances.iter().map(|record| record.row.id.clone()).collect();
    let (replaced, gone): (Vec<String>, Vec<String>) =
        changes.removed_instances.into_iter().partition(|instance| added.contains(instance));

    let mut steps: Vec<Step> = Vec::new();
    steps.extend(replaced.into_iter().map(Step::RemoveInstance));
    steps.extend(changes.added_instances.into_iter().map(Step::PutInstance));
    steps.extend(changes.appended.into_iter().map(|(instance, execution_id, events)| Step::Append {
        instance,
        execution_id,
        events,
    }));
    steps.extend(items(changes.messages.added, changes.activities.added).map(Step::Enqueue));
    steps.extend(changes.executions.into_iter().map(Step::PutExecution));
    steps.extend(changes.changed_instances.into_iter().map(Step::PutInstance));
    let touched = items(changes.messages.changed, changes.activities.changed);
    steps.extend(
        touched.map(|item| if item.is_locked() { Step::PeekLock(item) } else { Step::Abandon(item) }),
    );
    steps.extend(changes.added_dead_letters.into_iter().map(Step::PutDeadLetter));
    steps.extend(ids(WhichQueue::Orchestrator, changes.messages.removed).map(Step::Ack));
    steps.extend(ids(WhichQueue::Worker, changes.activities.removed).map(Step::Ack));
    steps.extend(changes.removed_dead_letters.into_iter().map(Step::RemoveDeadLetter));
    steps.extend(
        changes
            .removed_executions
            .into_iter()
            .map(|(instance, execution_id)| Step::RemoveExecution { instance, execution_id }),
    );
    // Children before their parents: a tree is deleted by its root, which must remain until its children are gone.
    steps.extend(gone.into_iter().rev().map(Step::RemoveInstance));
    steps
}

/// Whether the steps must be recorded first, because order and repetition alone do not repair a crash between them.
pub(crate) fn needs_note(is_round: bool, steps: &[Step]) -> bool {
    // Messages change together with the lock that held or holds them: their attempt is counted once, in their rows or
    // by the lock.
    let is_kept_whole = |step: &Step| {
        matches!(
            step,
            Step::Append { .. }
                | Step::PeekLock(QueueItem::Message(_))
                | Step::Abandon(QueueItem::Message(_))
                | Step::PutDeadLetter(_)
                | Step::RemoveDeadLetter(_)
                | Step::RemoveExecution { .. }
                | Step::RemoveInstance(_)
        )
    };
    steps.len() > 1 && (is_round || steps.iter().any(is_kept_whole))
}

fn items(messages: Vec<MessageRecord>, activities: Vec<ActivityRecord>) -> impl Iterator<Item = QueueItem> {
    messages.into_iter().map(QueueItem::Message).chain(activities.into_iter().map(QueueItem::Activity))
}

fn ids(queue: WhichQueue, rows: Vec<(String, u64)>) -> impl Iterator<Item = QueueItemId> {
    rows.into_iter().map(move |(instance, number)| QueueItemId { queue, instance, number })
}
