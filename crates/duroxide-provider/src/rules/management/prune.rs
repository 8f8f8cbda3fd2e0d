//! Pruning old executions (19.3).

use std::{collections::BTreeMap, iter::Peekable, vec};

use duroxide_core::Timestamp;

use crate::rules::{
    ExecutionAge, Removal, RemovalBudget, Rows, Rules, Tables, is_end_of_execution,
    management::removal::{STEP, unfinished},
};
use crate::{
    DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult,
    store::{Answer, ApplyError},
};

/// Instances to prune, one after the other.
struct Visits<'a> {
    /// Those that were not finished, the one that is being visited first.
    left: &'a [u64],
    /// The last execution of that one that was looked at; 0 before the visit.
    after: u64,
    budget: RemovalBudget,
    /// The executions that were taken away.
    pruned: Vec<Removal>,
}

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
        let (instances, ids): (Vec<u64>, Vec<String>) = selected.into_iter().unzip();
        let mut visits = Visits { left: &instances, after: 0, budget: STEP, pruned: Vec::new() };
        while !visits.left.is_empty() && !visits.budget.is_spent() {
            self.prune_executions(&mut visits, options)?;
        }
        let Visits { left, mut budget, pruned, .. } = visits;
        let processed = instances.len() - left.len();
        let mut removed = DeleteInstanceResult::default();
        let done = self.remove_rows(&pruned, &mut budget, &mut removed)?;
        let rows = self.leave_removals(pruned.get(done..).unwrap_or_default())?;
        let result = PruneResult {
            instances_processed: processed as u64,
            executions_deleted: pruned.len() as u64,
            events_deleted: removed.events_deleted,
        };
        let unfinished = unfinished(rows, ids.into_iter().skip(processed));
        Ok(if unfinished.is_empty() {
            Answer::Pruned(result)
        } else {
            Answer::PrunedPart(result, unfinished)
        })
    }

    /// Takes old executions of the next instances away from every read: as many as one read finds. The newest ones, the current
    /// one and running ones stay.
    fn prune_executions(&mut self, visits: &mut Visits<'_>, options: &PruneOptions) -> Rows<()> {
        let limit = visits.budget.rows();
        let (left, keep) = (visits.left, options.keep_last.unwrap_or(1).max(1));
        // Visiting an instance has a cost even with nothing to prune.
        let next = left.get(..limit.min(left.len())).unwrap_or_default();
        let rows = self.tables.instances(next)?;
        let current: BTreeMap<u64, u64> = rows.iter().map(|row| (row.number, row.execution_id)).collect();
        let found = self.tables.old_executions(next, keep, visits.after, limit)?;
        let found_all = found.len() < limit;
        let mut found = found.into_iter().peekable();
        for instance in next {
            if visits.after == 0 && !visits.budget.spend(0) {
                return Ok(());
            }
            let is_looked_at =
                self.prune_instance(*instance, current.get(instance), &mut found, visits, options)?;
            // More executions of it may follow those that were found.
            if !is_looked_at || (found.peek().is_none() && !found_all) {
                return Ok(());
            }
            (visits.left, visits.after) = (visits.left.get(1..).unwrap_or_default(), 0);
        }
        Ok(())
    }

    /// Prunes those of the `found` executions that belong to an instance. Returns whether the budget was enough.
    fn prune_instance(
        &mut self,
        instance: u64,
        current: Option<&u64>,
        found: &mut Peekable<vec::IntoIter<ExecutionAge>>,
        visits: &mut Visits<'_>,
        options: &PruneOptions,
    ) -> Rows<bool> {
        while let Some(old) = found.next_if(|old| old.instance == instance) {
            if visits.budget.is_spent() {
                return Ok(false);
            }
            visits.after = old.execution_id;
            // An instance without a row was deleted.
            if current.is_none_or(|current| *current == old.execution_id) || !is_prunable(&old, options) {
                continue;
            }
            visits.budget.spend(0);
            self.tables.delete_execution(instance, old.execution_id)?;
            visits.pruned.push(Removal { instance, execution_id: Some(old.execution_id) });
        }
        Ok(true)
    }
}

fn is_prunable(execution: &ExecutionAge, options: &PruneOptions) -> bool {
    let in_time = |before: u64| execution.completed_at.is_some_and(|at| at < Timestamp::from_millis(before));
    is_end_of_execution(&execution.status) && options.completed_before.is_none_or(in_time)
}
