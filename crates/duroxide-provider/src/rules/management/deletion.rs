//! Deleting instances (19).

mod trees;

use std::collections::BTreeSet;

use crate::rules::{
    InstanceChange, InstanceRow, NOT_HIDDEN, Removal, RemovalBudget, Rows, Rules, Tables,
    management::removal::{STEP, deleted, unfinished},
};
use crate::{
    DeleteInstanceResult, InstanceFilter,
    store::{Answer, ApplyError, Refusal, bounds::REMOVED_ROWS_MAX},
};

/// How many trees a bulk delete reads at a time. An ended instance with its execution, its start and its end usually costs four
/// rows of a step.
const TREES_AT_A_TIME: usize = REMOVED_ROWS_MAX / 4;

impl<T: Tables> Rules<T> {
    /// Deletes these instances. Unknown ids are ignored.
    pub(in crate::rules) fn delete_instances(
        &mut self,
        ids: &[String],
        force: bool,
    ) -> Result<Answer, ApplyError> {
        let mut seen = BTreeSet::new();
        let mut rows = Vec::new();
        for id in ids.iter().filter(|id| seen.insert(*id)) {
            rows.extend(self.tables.instance_named(id)?);
        }
        check_ended(&rows, force)?;
        self.check_no_child_left(&rows)?;
        Ok(self.delete(rows)?)
    }

    /// Deletes a root with all its descendants.
    pub(in crate::rules) fn delete_tree(&mut self, id: &str, force: bool) -> Result<Answer, ApplyError> {
        let root = self.known_instance(id)?;
        if root.parent.is_some() {
            return Err(Refusal::IsSubOrchestration { instance: id.to_owned() }.into());
        }
        let rows = self.trees(&[root.number], usize::MAX)?.concat();
        check_ended(&rows, force)?;
        Ok(self.delete(rows)?)
    }

    /// Deletes trees until the step has removed as many rows as it may.
    pub(in crate::rules) fn delete_bulk(&mut self, filter: &InstanceFilter) -> Result<Answer, ApplyError> {
        let (roots, ids): (Vec<u64>, Vec<String>) =
            self.tables.bulk_selection(filter, false)?.into_iter().unzip();
        let (mut result, mut budget) = (DeleteInstanceResult::default(), STEP);
        let (mut deleted_trees, mut rows) = (0, None);
        while rows.is_none() && !budget.is_spent() && deleted_trees < roots.len() {
            let next = roots.iter().skip(deleted_trees).take(TREES_AT_A_TIME).copied();
            let trees = self.trees(&next.collect::<Vec<_>>(), budget.rows())?;
            let (count, left) = self.delete_trees(&trees, &mut budget, &mut result)?;
            deleted_trees += count;
            rows = self.leave_removals(&left)?;
        }
        Ok(deleted(result, unfinished(rows, ids.into_iter().skip(deleted_trees))))
    }

    pub(in crate::rules) fn known_instance(&mut self, id: &str) -> Result<InstanceRow, ApplyError> {
        let row = self.tables.instance_named(id)?.filter(|row| row.known);
        row.ok_or_else(|| Refusal::InstanceNotFound { instance: id.to_owned() }.into())
    }

    fn check_no_child_left(&mut self, rows: &[InstanceRow]) -> Result<(), ApplyError> {
        let listed: BTreeSet<u64> = rows.iter().map(|row| row.number).collect();
        let numbers: Vec<u64> = rows.iter().map(|row| row.number).collect();
        for family in self.tables.families(&numbers)? {
            if let Some(child) = family.children.into_iter().find(|child| !listed.contains(child)) {
                let child = self.tables.instance(child)?.map(|row| row.id).unwrap_or_default();
                return Err(Refusal::ChildAppeared { parent: family.row.id, child }.into());
            }
        }
        Ok(())
    }

    /// Deletes instances: no later read finds any of them, but rows may be left to remove.
    fn delete(&mut self, rows: Vec<InstanceRow>) -> Rows<Answer> {
        let (mut result, mut budget) = (DeleteInstanceResult::default(), STEP);
        let (_, left) = self.delete_trees(&[rows], &mut budget, &mut result)?;
        let rows = self.leave_removals(&left)?;
        Ok(deleted(result, unfinished(rows, [])))
    }

    /// Deletes trees as long as the budget lasts, and at least the first one. Returns how many, and their rows that are left.
    fn delete_trees(
        &mut self,
        trees: &[Vec<InstanceRow>],
        budget: &mut RemovalBudget,
        result: &mut DeleteInstanceResult,
    ) -> Rows<(usize, Vec<Removal>)> {
        let all: Vec<Removal> = trees.iter().flatten().map(all_rows).collect();
        let done = self.remove_rows(&all, budget, result)?;
        // Behind those that are done one may have lost a part of its rows.
        let (mut count, mut rows) = (0, Vec::new());
        for tree in trees {
            if count > 0 && rows.len() > done {
                break;
            }
            rows.extend_from_slice(tree);
            count += 1;
        }
        let mut left: Vec<Removal> = rows.iter().skip(done).map(all_rows).collect();
        left.extend(self.detach(&rows, result)?);
        let done = self.remove_rows(&left, budget, result)?;
        Ok((count, left.split_off(done)))
    }

    /// Takes instances away from every read, claim and commit. Returns the mailboxes that go with them.
    fn detach(&mut self, rows: &[InstanceRow], result: &mut DeleteInstanceResult) -> Rows<Vec<Removal>> {
        let mut calls = Vec::new();
        for row in rows {
            calls.extend(self.tables.calls_of(&row.id)?);
        }
        self.delete_visible_rows(rows, result)?;
        let mut mailboxes = Vec::new();
        for (child, call) in calls {
            self.delete_pending_call(child, &call, &mut mailboxes, result)?;
        }
        self.delete_visible_rows(&mailboxes, result)?;
        Ok(mailboxes.iter().map(all_rows).collect())
    }

    /// Activities and dead letters are found without their instance, so they are deleted with it.
    fn delete_visible_rows(&mut self, rows: &[InstanceRow], result: &mut DeleteInstanceResult) -> Rows<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let (numbers, ids): (Vec<u64>, Vec<String>) =
            rows.iter().map(|row| (row.number, row.id.clone())).unzip();
        result.queue_messages_deleted += self.tables.delete_activities(&numbers)?;
        self.tables.delete_dead_letters_of(&ids)?;
        for row in rows {
            result.instances_deleted += u64::from(row.known);
            self.tables.delete_instance(row.number)?;
        }
        Ok(())
    }

    /// Deletes a call of a deleted parent that was not carried out yet: the child belongs to the tree, although only its start
    /// exists. A turn that is about to begin such a child loses its lock. A mailbox without another start is added to those that are
    /// deleted, too.
    fn delete_pending_call(
        &mut self,
        child: u64,
        call: &str,
        mailboxes: &mut Vec<InstanceRow>,
        result: &mut DeleteInstanceResult,
    ) -> Rows<()> {
        // Without its row the child is being removed already, and without its call it was carried out.
        let Some(mut row) = self.tables.instance(child)? else { return Ok(()) };
        if !self.tables.delete_message_by_key(child, call)? {
            return Ok(());
        }
        result.queue_messages_deleted += 1;
        if row.known {
            self.settle(row)?;
        } else if self.tables.has_start(child)? {
            if let Some(lock) = row.lock.take() {
                self.tables.release(child, &lock.extent, NOT_HIDDEN, 1)?;
            }
            self.settle_with(row, InstanceChange::Lock)?;
        } else if !mailboxes.iter().any(|mailbox| mailbox.number == child) {
            mailboxes.push(row);
        }
        Ok(())
    }
}

/// All rows of an instance.
fn all_rows(row: &InstanceRow) -> Removal {
    Removal { instance: row.number, execution_id: None }
}

fn check_ended(rows: &[InstanceRow], force: bool) -> Result<(), Refusal> {
    match rows.iter().find(|row| !force && row.is_running()) {
        Some(row) => Err(Refusal::InstanceStillRunning { instance: row.id.clone() }),
        None => Ok(()),
    }
}
