//! Rows that are still to be removed.

use std::collections::BTreeSet;

use duroxide_core::Timestamp;

use super::{
    MemoryTables, mailboxes,
    table::{Index, Table, refile},
};
use crate::rules::{Removal, RemovalBudget, RemovalTable, RemovedRows, Rows};

/// By number, each with its task.
pub(in crate::memory) type Removals = Table<u64, (u64, Removal), ByTask>;

#[derive(Debug, Clone, Default)]
pub(in crate::memory) struct ByTask(BTreeSet<(u64, u64)>);

impl Index<u64, (u64, Removal)> for ByTask {
    fn file(&mut self, number: &u64, before: Option<&(u64, Removal)>, after: Option<&(u64, Removal)>) {
        let of_task = |(task, _): &(u64, Removal)| (*task, *number);
        refile(&mut self.0, before.map(of_task), after.map(of_task));
    }
}

impl Removals {
    pub(in crate::memory) fn of_task(&self, task: u64) -> impl Iterator<Item = (u64, Removal)> {
        let numbers = self.index().0.range((task, 0)..=(task, u64::MAX)).map(|(_, number)| *number);
        numbers.filter_map(|number| self.get(&number).map(|(_, removal)| (number, *removal)))
    }
}

impl MemoryTables {
    /// Removes the rows of a deleted instance or a pruned execution, all at once: in memory that takes no bounded
    /// steps.
    pub(in crate::memory) fn remove_all_rows(&mut self, removal: &Removal) -> RemovedRows {
        let Removal { instance, execution_id } = *removal;
        let (first, last) = execution_id.map_or((0, u64::MAX), |execution_id| (execution_id, execution_id));
        let events = self.events.remove_range((instance, first, 0)..=(instance, last, u64::MAX));
        let mut removed = RemovedRows { events, ..RemovedRows::default() };
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

impl RemovalTable for MemoryTables {
    fn insert_removals(&mut self, task: u64, removals: &[(u64, Removal)]) -> Rows<()> {
        removals.iter().for_each(|(number, removal)| self.removals.put(*number, (task, *removal)));
        Ok(())
    }

    fn first_removals(&mut self, task: u64, limit: usize) -> Rows<Vec<(u64, Removal)>> {
        Ok(self.removals.of_task(task).take(limit).collect())
    }

    fn delete_removals(&mut self, numbers: &[u64]) -> Rows<()> {
        self.removals.remove_all(numbers);
        Ok(())
    }

    fn write_removal_task(&mut self, task: u64, remove_at: Timestamp) -> Rows<()> {
        self.removal_tasks.put(task, remove_at);
        Ok(())
    }

    fn delete_removal_task(&mut self, task: u64) -> Rows<()> {
        self.removal_tasks.remove(&task);
        Ok(())
    }

    fn due_removal_task(&mut self, now: Timestamp) -> Rows<Option<u64>> {
        let due = self.removal_tasks.iter().filter(|(_, remove_at)| **remove_at <= now);
        Ok(due.min_by_key(|(_, remove_at)| **remove_at).map(|(task, _)| *task))
    }

    fn remove_rows(&mut self, removals: &[Removal], budget: &mut RemovalBudget) -> Rows<RemovedRows> {
        budget.visit(removals, |removal, _| Ok(self.remove_all_rows(removal)))
    }
}
