//! Deleting instances (19).

use std::collections::{BTreeSet, VecDeque};

use crate::rules::{
    InstanceChange, InstanceRow, NOT_HIDDEN, Rows, Rules, Tables,
    management::removal::{STEP, deleted, unfinished},
};
use crate::{
    DeleteInstanceResult, InstanceFilter,
    store::{Answer, ApplyError, Refusal},
};

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
        Ok(self.delete(&rows)?)
    }

    /// Deletes a root with all its descendants.
    pub(in crate::rules) fn delete_tree(&mut self, id: &str, force: bool) -> Result<Answer, ApplyError> {
        let root = self.known_instance(id)?;
        if root.parent.is_some() {
            return Err(Refusal::IsSubOrchestration { instance: id.to_owned() }.into());
        }
        let rows = self.tree(root.number)?;
        check_ended(&rows, force)?;
        Ok(self.delete(&rows)?)
    }

    /// Deletes trees until the step has removed as many rows as it may.
    pub(in crate::rules) fn delete_bulk(&mut self, filter: &InstanceFilter) -> Result<Answer, ApplyError> {
        let mut roots = self.tables.bulk_selection(filter, false)?.into_iter();
        let (mut result, mut budget) = (DeleteInstanceResult::default(), STEP);
        let mut rows = None;
        while rows.is_none() && !budget.is_spent() {
            let Some((root, _)) = roots.next() else { break };
            let tree = self.tree(root)?;
            let task = self.detach(&tree, &mut result)?;
            let rows_left = self.remove_rows(task, &mut budget, &mut result)?;
            rows = rows_left.then_some(task);
        }
        Ok(deleted(result, unfinished(rows, roots)))
    }

    pub(in crate::rules) fn known_instance(&mut self, id: &str) -> Result<InstanceRow, ApplyError> {
        let row = self.tables.instance_named(id)?.filter(|row| row.known);
        row.ok_or_else(|| Refusal::InstanceNotFound { instance: id.to_owned() }.into())
    }

    fn check_no_child_left(&mut self, rows: &[InstanceRow]) -> Result<(), ApplyError> {
        let listed: BTreeSet<u64> = rows.iter().map(|row| row.number).collect();
        for parent in rows {
            let children = self.tables.children(&parent.id)?;
            if let Some(child) = children.into_iter().find(|child| !listed.contains(child)) {
                let child = self.tables.instance(child)?.map(|row| row.id).unwrap_or_default();
                return Err(Refusal::ChildAppeared { parent: parent.id.clone(), child }.into());
            }
        }
        Ok(())
    }

    /// An instance with all its descendants, each before its children.
    fn tree(&mut self, root: u64) -> Rows<Vec<InstanceRow>> {
        let mut to_visit = VecDeque::from([root]);
        let mut seen = BTreeSet::from([root]);
        let mut tree = Vec::new();
        while let Some(number) = to_visit.pop_front() {
            let Some(row) = self.tables.instance(number)? else { continue };
            to_visit.extend(self.tables.children(&row.id)?.into_iter().filter(|child| seen.insert(*child)));
            tree.push(row);
        }
        Ok(tree)
    }

    /// Deletes instances: no later read finds any of them, but rows may be left to remove.
    fn delete(&mut self, rows: &[InstanceRow]) -> Rows<Answer> {
        let (mut result, mut budget) = (DeleteInstanceResult::default(), STEP);
        let task = self.detach(rows, &mut result)?;
        let rows = self.remove_rows(task, &mut budget, &mut result)?.then_some(task);
        Ok(deleted(result, unfinished(rows, [])))
    }

    /// Takes instances away from every read, claim and commit. Their rows are left to a task.
    fn detach(&mut self, rows: &[InstanceRow], result: &mut DeleteInstanceResult) -> Rows<u64> {
        let task = self.tables.next_number()?;
        for row in rows {
            self.delete_visible_rows(task, row, result)?;
        }
        for row in rows {
            self.delete_pending_calls(task, &row.id, result)?;
        }
        Ok(task)
    }

    /// Activities and dead letters are found without their instance, so they are deleted with it.
    fn delete_visible_rows(
        &mut self,
        task: u64,
        row: &InstanceRow,
        result: &mut DeleteInstanceResult,
    ) -> Rows<()> {
        result.instances_deleted += u64::from(row.known);
        result.queue_messages_deleted += self.tables.delete_activities(row.number)?;
        self.tables.delete_dead_letters_of(&row.id)?;
        self.tables.delete_instance(row.number)?;
        self.add_removal(task, row.number, None)
    }

    /// Deletes the calls of a deleted parent that were not carried out yet: their children belong to the tree, although
    /// only their starts exist. A turn that is about to begin such a child loses its lock.
    fn delete_pending_calls(
        &mut self,
        task: u64,
        parent: &str,
        result: &mut DeleteInstanceResult,
    ) -> Rows<()> {
        for (child, call) in self.tables.calls_of(parent)? {
            // Without its row the child is being removed already.
            let Some(mut row) = self.tables.instance(child)? else { continue };
            result.queue_messages_deleted += u64::from(self.tables.delete_message_by_key(child, &call)?);
            if row.known {
                self.settle(row)?;
            } else if self.tables.has_start(child)? {
                if let Some(lock) = row.lock.take() {
                    self.tables.release(child, &lock.extent, NOT_HIDDEN, 1)?;
                }
                self.settle_with(row, InstanceChange::Lock)?;
            } else {
                self.delete_visible_rows(task, &row, result)?;
            }
        }
        Ok(())
    }
}

fn check_ended(rows: &[InstanceRow], force: bool) -> Result<(), Refusal> {
    match rows.iter().find(|row| !force && row.is_running()) {
        Some(row) => Err(Refusal::InstanceStillRunning { instance: row.id.clone() }),
        None => Ok(()),
    }
}
