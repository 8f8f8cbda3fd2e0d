//! What is known of instances without reading them: their rows, as the engine wrote them last. Most turns follow the
//! message that wakes them by milliseconds, and find everything here.

use std::{collections::HashMap, sync::Arc};

use duroxide_core::WorkItem;
use duroxide_provider::store::{Ended, PreparedRound, StateChange};

use super::{InstanceRow, Place};
use crate::{executions::ExecutionRow, mailbox::Message};

/// Some megabytes. What is not kept is read.
const KEPT_MAX: usize = 8192;
/// Messages of one instance that are kept while they wait. If more do, they are read.
const WAITING_MAX: usize = 256;

/// An instance with its current execution, as they are stored.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) row: InstanceRow,
    /// One that never ran a turn has none.
    pub(crate) execution: Option<ExecutionRow>,
    /// The messages of its mailbox that no lock holds, or held and lost, if all of them are known. A claim can see them,
    /// and they came in this order.
    pub(crate) waiting: Option<Vec<(Message, Arc<WorkItem>)>>,
    /// The row of the instance that started it, if that is known.
    pub(crate) parent: Option<i64>,
    /// Whether its current execution is known to have changed no key.
    pub(crate) kv_unchanged: bool,
    /// Whether its custom status is known never to have been set.
    pub(crate) custom_status_unset: bool,
}

impl Kept {
    /// A mailbox that was made just now.
    pub(crate) fn new_mailbox(row: InstanceRow) -> Self {
        Self {
            row,
            execution: None,
            waiting: Some(Vec::new()),
            parent: None,
            kv_unchanged: true,
            custom_status_unset: true,
        }
    }

    /// Notes what a round changes beside the history of the instance.
    pub(crate) fn note_changes(&mut self, changes: &[StateChange]) {
        self.kv_unchanged &= !changes.iter().any(StateChange::is_of_keys);
        self.custom_status_unset &= changes.iter().all(StateChange::is_of_keys);
    }

    /// What is known of its end, if this round, just stored, has made it.
    pub(crate) fn ended_by(&self, round: &PreparedRound) -> Option<Ended> {
        let end = round.end().filter(|_| self.row.execution_id == round.execution.execution_id)?;
        let last = self.execution.as_ref().map(|execution| execution.last_event_id);
        let known = self.custom_status_unset && last == Some(end);
        known.then_some(Ended { custom_status: None, custom_status_version: 0 })
    }

    /// The messages that a claim takes, if they are all that the mailbox holds. They no longer wait then.
    pub(crate) fn take_waiting(&mut self) -> Option<Vec<(Message, Arc<WorkItem>)>> {
        // What a lock held and lost is in the mailbox too.
        let waiting = self.waiting.take().filter(|_| self.row.batch.is_none());
        let waiting = waiting.filter(|waiting| !waiting.is_empty())?;
        self.waiting = Some(Vec::new());
        Some(waiting)
    }

    pub(crate) fn stand_at(&mut self, Place { route, ready, wake_at }: Place) {
        self.row.route = route;
        self.row.ready = ready;
        self.row.wake_at = wake_at;
    }
}

/// Whoever writes a row of an instance says so here, or makes it forgotten. What others write to the store, and what is
/// rolled back, makes everything forgotten.
#[derive(Debug, Default)]
pub(crate) struct KeptInstances {
    by_id: HashMap<i64, Kept>,
}

impl KeptInstances {
    pub(crate) fn keep(&mut self, kept: Kept) {
        if self.by_id.len() < KEPT_MAX {
            self.by_id.insert(kept.row.id, kept);
        }
    }

    pub(crate) fn take(&mut self, id: i64) -> Option<Kept> {
        self.by_id.remove(&id)
    }

    pub(crate) fn forget(&mut self, id: i64) {
        self.by_id.remove(&id);
    }

    /// The row of this number, if it is kept and has this name.
    pub(crate) fn named(&self, id: i64, instance_id: &str) -> Option<InstanceRow> {
        let kept = self.by_id.get(&id)?;
        (kept.row.instance_id == instance_id).then(|| kept.row.clone())
    }

    /// One that waited for a message stands in line on its route.
    pub(crate) fn stood_up(&mut self, id: i64, ready: i64) {
        if let Some(kept) = self.by_id.get_mut(&id) {
            kept.row.ready = Some(ready);
            kept.row.wake_at = None;
        }
    }

    /// `visible` is the message itself, if a claim can see it from now on.
    pub(crate) fn message_arrived(&mut self, id: i64, visible: Option<(Message, Arc<WorkItem>)>) {
        if let Some(kept) = self.by_id.get_mut(&id) {
            let waiting = kept.waiting.take().filter(|waiting| waiting.len() < WAITING_MAX);
            kept.waiting = waiting.zip(visible).map(|(mut waiting, message)| {
                waiting.push(message);
                waiting
            });
        }
    }

    /// A message was deleted by other means than a turn.
    pub(crate) fn message_removed(&mut self, id: i64) {
        if let Some(kept) = self.by_id.get_mut(&id) {
            kept.waiting = None;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.by_id.clear();
    }
}
