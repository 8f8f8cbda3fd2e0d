//! Pruning old executions (19.3).

use duroxide_core::Timestamp;

use crate::rules::{
    ExecutionAge, RemovalBudget, Rows, Rules, Tables, is_end_of_execution,
    management::removal::{STEP, unfinished},
};
use crate::{
    DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult,
    store::{Answer, ApplyError},
};

impl<T: Tables> Rules<T> {
    pub(in crate::rules) fn prune(&mut self, id: &str, options: &PruneOptions) -> Result<Answer, ApplyError> {
        let row = self.known_instance(id)?;
        Ok(self.prune_each(vec![(row.number, row.id)], options)?)
    }

    pub(in crate::rules) fn prune_bulk(
        &mut self,
        filter: &InstanceFilter,
        options: &PruneOptions,
    ) -> Result<Answer, ApplyError> {
        let selected = self.tables.bulk_selection(filter, true)?;
        Ok(self.prune_each(selected, options)?)
    }

    /// Prunes instances until the step has removed as many rows as it may.
    fn prune_each(&mut self, selected: Vec<(u64, String)>, options: &PruneOptions) -> Rows<Answer> {
        let (mut result, mut removed) = (PruneResult::default(), DeleteInstanceResult::default());
        let mut budget = STEP;
        let task = self.tables.next_number()?;
        let mut selected = selected.into_iter().peekable();
        while let Some((instance, _)) = selected.peek() {
            if !self.prune_executions(task, *instance, options, &mut budget, &mut result)? {
                break;
            }
            selected.next();
            result.instances_processed += 1;
        }
        let rows = self.remove_rows(task, &mut budget, &mut removed)?.then_some(task);
        result.events_deleted += removed.events_deleted;
        let unfinished = unfinished(rows, selected);
        Ok(if unfinished.is_empty() {
            Answer::Pruned(result)
        } else {
            Answer::PrunedPart(result, unfinished)
        })
    }

    /// Takes old executions of an instance away from every read. The newest ones, the current one and running ones stay.
    /// Returns whether none is left to prune within the budget.
    fn prune_executions(
        &mut self,
        task: u64,
        instance: u64,
        options: &PruneOptions,
        budget: &mut RemovalBudget,
        result: &mut PruneResult,
    ) -> Rows<bool> {
        // Visiting an instance has a cost even with nothing to prune.
        if !budget.spend(0) {
            return Ok(false);
        }
        let Some(row) = self.tables.instance(instance)? else { return Ok(true) };
        let keep = options.keep_last.unwrap_or(1).max(1);
        let Some(oldest_kept) = self.tables.nth_newest_execution(instance, keep)? else { return Ok(true) };
        let mut after = 0;
        while !budget.is_spent() {
            let page = self.tables.executions_between(instance, after, oldest_kept, budget.rows())?;
            let Some(last) = page.last() else { return Ok(true) };
            after = last.execution_id;
            for old in
                page.iter().filter(|old| old.execution_id != row.execution_id && is_prunable(old, options))
            {
                budget.spend(0);
                self.tables.delete_execution(instance, old.execution_id)?;
                self.add_removal(task, instance, Some(old.execution_id))?;
                result.executions_deleted += 1;
            }
        }
        Ok(false)
    }
}

fn is_prunable(execution: &ExecutionAge, options: &PruneOptions) -> bool {
    let in_time = |before: u64| execution.completed_at.is_some_and(|at| at < Timestamp::from_millis(before));
    is_end_of_execution(&execution.status) && options.completed_before.is_none_or(in_time)
}
