//! Rows that are still to be removed.

use std::collections::BTreeSet;

use super::{
    MemoryTables, mailboxes,
    table::{Index, Table, refile},
};
use crate::rules::{Removal, RemovedRows};

/// By number, each with its task.
pub(super) type Removals = Table<u64, (u64, Removal), ByTask>;

#[derive(Debug, Clone, Default)]
pub(super) struct ByTask(BTreeSet<(u64, u64)>);

impl Index<u64, (u64, Removal)> for ByTask {
    fn file(&mut self, number: &u64, before: Option<&(u64, Removal)>, after: Option<&(u64, Removal)>) {
        let of_task = |(task, _): &(u64, Removal)| (*task, *number);
        refile(&mut self.0, before.map(of_task), after.map(of_task));
    }
}

impl Removals {
    pub(super) fn first_of(&self, task: u64) -> Option<Removal> {
        let (_, number) = self.index().0.range((task, 0)..=(task, u64::MAX)).next()?;
        self.get(number).map(|(_, removal)| *removal)
    }
}

impl MemoryTables {
    /// Removes the rows of a deleted instance or a pruned execution, all at once: nobody waits long for memory.
    pub(super) fn remove_all_rows(&mut self, removal: &Removal) -> RemovedRows {
        let Removal { instance, execution_id, .. } = *removal;
        let (first, last) = execution_id.map_or((0, u64::MAX), |execution_id| (execution_id, execution_id));
        let events = self.events.remove_range((instance, first, 0)..=(instance, last, u64::MAX));
        let mut removed = RemovedRows { events, is_done: true, ..RemovedRows::default() };
        if execution_id.is_none() {
            removed.messages = self.messages.remove_range(mailboxes::all(instance));
            removed.executions = self.executions.remove_range((instance, 0)..=(instance, u64::MAX));
            let keys = (instance, String::new())..(instance + 1, String::new());
            self.kv.remove_range(keys.clone());
            self.kv_changes.remove_range(keys);
            self.custom_statuses.remove(&instance);
        }
        removed
    }
}
