//! Deleting instances and pruning executions (19).

use std::collections::{BTreeSet, VecDeque};

use duroxide_core::Timestamp;
use duroxide_provider::{
    DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult,
    store::{Answer, ApplyError, Refusal, RemovalTask, StoreFailure, Unfinished, calling_parent},
};

use crate::{
    SqliteEngine,
    bulk::{self, Selected},
    db::{micros, number, unsigned},
    instances::{CONTINUED_AS_NEW, Changed, InstanceRow, RUNNING},
    removal::Budget,
};

const CHILDREN: &str = "SELECT id FROM instance WHERE parent = ?1 ORDER BY id";
/// The first two conditions are those of the index.
const CALLS_IN_RANGE: &str = "SELECT instance, key FROM message
    WHERE key >= 'ST/' AND key < 'ST0' AND key >= ?1 AND key < ?2";
const DELETE_ACTIVITIES: &str = "DELETE FROM activity WHERE instance = ?1";
const DELETE_DEAD_LETTERS: &str = "DELETE FROM dead_letter WHERE instance_id = ?1";
/// Old executions beyond the newest `?2` that ended, before `?4` if given, oldest first. Never the current one.
const PRUNABLE: &str = "SELECT execution_id FROM execution
    WHERE instance = ?1 AND status <> 'Running' AND execution_id <> ?3 AND (?4 IS NULL OR completed_at < ?4)
      AND execution_id < (SELECT execution_id FROM execution WHERE instance = ?1
        ORDER BY execution_id DESC LIMIT 1 OFFSET ?2 - 1)
    ORDER BY execution_id LIMIT ?5";
const PRUNE_EXECUTION: &str = "DELETE FROM execution WHERE instance = ?1 AND execution_id = ?2";

impl SqliteEngine {
    /// Deletes these instances. Unknown ids are passed over.
    pub(crate) fn delete_instances(&mut self, ids: &[String], force: bool) -> Result<Answer, ApplyError> {
        let mut seen = BTreeSet::new();
        let mut rows = Vec::new();
        for id in ids.iter().filter(|id| seen.insert(*id)) {
            rows.extend(self.instance_named(id)?);
        }
        check_ended(&rows, force)?;
        self.check_no_child_left(&rows)?;
        Ok(self.delete(&rows)?)
    }

    /// Deletes a root with all its descendants.
    pub(crate) fn delete_tree(&mut self, id: &str, force: bool) -> Result<Answer, ApplyError> {
        let root = self.known_instance(id)?;
        if root.parent.is_some() {
            return Err(Refusal::IsSubOrchestration { instance: id.to_owned() }.into());
        }
        let rows = self.tree([root.id])?;
        check_ended(&rows, force)?;
        Ok(self.delete(&rows)?)
    }

    /// Deletes trees until the step has removed as many rows as it may.
    pub(crate) fn delete_bulk(&mut self, filter: &InstanceFilter) -> Result<Answer, ApplyError> {
        let mut roots = bulk::select(&self.db, filter, false)?.into_iter();
        let (mut result, mut budget) = (DeleteInstanceResult::default(), Budget::OF_STEP);
        let mut rows = None;
        while rows.is_none() && !budget.is_spent() {
            let Some((id, _)) = roots.next() else { break };
            let tree = self.tree([id])?;
            let task = self.detach(&tree, &mut result)?;
            let rows_left = self.remove_rows(task, &mut budget, &mut result)?;
            rows = rows_left.then_some(task);
        }
        Ok(deleted(result, unfinished(rows, roots)))
    }

    pub(crate) fn prune(&mut self, id: &str, options: &PruneOptions) -> Result<Answer, ApplyError> {
        let row = self.known_instance(id)?;
        Ok(self.prune_each(vec![(row.id, row.instance_id)], options)?)
    }

    pub(crate) fn prune_bulk(
        &mut self,
        filter: &InstanceFilter,
        options: &PruneOptions,
    ) -> Result<Answer, ApplyError> {
        let selected = bulk::select(&self.db, filter, true)?;
        Ok(self.prune_each(selected, options)?)
    }

    /// Goes on removing what a delete or a prune has left.
    pub(crate) fn go_on_removing(&mut self, task: RemovalTask) -> Result<Answer, ApplyError> {
        let (mut result, mut budget) = (DeleteInstanceResult::default(), Budget::OF_STEP);
        let task = number(task.0);
        let rows = self.remove_rows(task, &mut budget, &mut result)?.then_some(task);
        Ok(deleted(result, unfinished(rows, [])))
    }

    fn known_instance(&self, id: &str) -> Result<InstanceRow, ApplyError> {
        let row = self.instance_named(id)?.filter(|row| row.known);
        row.ok_or_else(|| Refusal::InstanceNotFound { instance: id.to_owned() }.into())
    }

    fn check_no_child_left(&self, rows: &[InstanceRow]) -> Result<(), ApplyError> {
        let listed: BTreeSet<i64> = rows.iter().map(|row| row.id).collect();
        for parent in rows {
            let children = self.children_of(parent)?;
            if let Some(child) = children.into_iter().find(|child| !listed.contains(child)) {
                let child = self.instance(child)?.map(|row| row.instance_id).unwrap_or_default();
                return Err(Refusal::ChildAppeared { parent: parent.instance_id.clone(), child }.into());
            }
        }
        Ok(())
    }

    fn children_of(&self, row: &InstanceRow) -> Result<Vec<i64>, StoreFailure> {
        self.db.all(CHILDREN, [&row.instance_id], |row| row.get(0))
    }

    /// These instances with all their descendants, each before its children.
    fn tree(&self, roots: impl IntoIterator<Item = i64>) -> Result<Vec<InstanceRow>, StoreFailure> {
        let mut to_visit: VecDeque<i64> = roots.into_iter().collect();
        let mut seen: BTreeSet<i64> = to_visit.iter().copied().collect();
        let mut tree = Vec::new();
        while let Some(id) = to_visit.pop_front() {
            let Some(row) = self.instance(id)? else { continue };
            to_visit.extend(self.children_of(&row)?.into_iter().filter(|child| seen.insert(*child)));
            tree.push(row);
        }
        Ok(tree)
    }

    /// Deletes instances: all of them are gone at once, but rows may be left to remove.
    fn delete(&mut self, rows: &[InstanceRow]) -> Result<Answer, StoreFailure> {
        let (mut result, mut budget) = (DeleteInstanceResult::default(), Budget::OF_STEP);
        let task = self.detach(rows, &mut result)?;
        let rows = self.remove_rows(task, &mut budget, &mut result)?.then_some(task);
        Ok(deleted(result, unfinished(rows, [])))
    }

    /// Takes instances away from every read, claim and commit. Their rows are left to a task.
    fn detach(
        &mut self,
        rows: &[InstanceRow],
        result: &mut DeleteInstanceResult,
    ) -> Result<i64, StoreFailure> {
        let task = self.new_removal_task();
        for row in rows {
            self.detach_one(task, row, result)?;
        }
        for row in rows {
            self.delete_unborn(task, &row.instance_id, result)?;
        }
        Ok(task)
    }

    /// Activities and dead letters are found without their instance, so they go with it.
    fn detach_one(
        &mut self,
        task: i64,
        row: &InstanceRow,
        result: &mut DeleteInstanceResult,
    ) -> Result<(), StoreFailure> {
        result.instances_deleted += u64::from(row.known);
        self.kept_activities.clear();
        result.queue_messages_deleted += self.db.execute(DELETE_ACTIVITIES, [row.id])? as u64;
        self.db.execute(DELETE_DEAD_LETTERS, [&row.instance_id])?;
        self.delete_instance_row(row.id)?;
        self.add_removal(task, row.id, None)
    }

    /// Deletes the calls of a deleted parent that were not carried out yet: their children belong to the tree, although
    /// there is nothing of them but a start. A turn that is about to make one loses its lock.
    fn delete_unborn(
        &mut self,
        task: i64,
        parent: &str,
        result: &mut DeleteInstanceResult,
    ) -> Result<(), StoreFailure> {
        // The character behind the slash ends the range.
        let range = (format!("ST/{parent}/"), format!("ST/{parent}0"));
        let calls: Vec<(i64, String)> =
            self.db.all(CALLS_IN_RANGE, range, |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (child, call) in calls.iter().filter(|(_, call)| calling_parent(call) == Some(parent)) {
            // Without its row the child is being removed already.
            let Some(mut row) = self.instance(*child)? else { continue };
            result.queue_messages_deleted += self.delete_by_key(*child, call)?;
            if row.known {
                self.settle(&row)?;
            } else if self.has_start(row.id)? {
                self.release_batch(&row, Timestamp::ZERO, false)?;
                (row.lock, row.batch) = (None, None);
                self.write_settled(&row, Changed::Nothing)?;
            } else {
                self.detach_one(task, &row, result)?;
            }
        }
        Ok(())
    }

    /// Prunes instances until the step has removed as many rows as it may.
    fn prune_each(
        &mut self,
        selected: Vec<Selected>,
        options: &PruneOptions,
    ) -> Result<Answer, StoreFailure> {
        let (mut result, mut removed) = (PruneResult::default(), DeleteInstanceResult::default());
        let mut budget = Budget::OF_STEP;
        let task = self.new_removal_task();
        let mut selected = selected.into_iter().peekable();
        while let Some((id, _)) = selected.peek() {
            let pruned_whole = self.prune_executions(task, *id, options, &mut budget, &mut result)?;
            if !pruned_whole {
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

    /// Takes old executions of an instance away from every read. Returns whether none is left within the budget.
    fn prune_executions(
        &mut self,
        task: i64,
        id: i64,
        options: &PruneOptions,
        budget: &mut Budget,
        result: &mut PruneResult,
    ) -> Result<bool, StoreFailure> {
        let keep = i64::from(options.keep_last.unwrap_or(1).max(1));
        let before = options.completed_before.map(|millis| micros(Timestamp::from_millis(millis)));
        // Visiting an instance costs something, also if there is nothing to prune.
        if !budget.spend(0) {
            return Ok(false);
        }
        let Some(row) = self.instance(id)? else { return Ok(true) };
        let columns = (id, keep, number(row.execution_id), before, budget.rows());
        for execution_id in self.db.all(PRUNABLE, columns, |row| row.get::<_, i64>(0))? {
            budget.spend(0);
            result.executions_deleted += self.db.execute(PRUNE_EXECUTION, (id, execution_id))? as u64;
            self.add_removal(task, id, Some(execution_id))?;
        }
        Ok(!budget.is_spent())
    }
}

fn unfinished(rows: Option<i64>, instances: impl IntoIterator<Item = Selected>) -> Unfinished {
    Unfinished {
        rows: rows.map(|task| RemovalTask(unsigned(task))),
        instances: instances.into_iter().map(|(_, id)| id).collect(),
    }
}

fn deleted(result: DeleteInstanceResult, unfinished: Unfinished) -> Answer {
    if unfinished.is_empty() { Answer::Deleted(result) } else { Answer::DeletedPart(result, unfinished) }
}

fn check_ended(rows: &[InstanceRow], force: bool) -> Result<(), Refusal> {
    match rows.iter().find(|row| !force && is_running(row)) {
        Some(row) => Err(Refusal::InstanceStillRunning { instance: row.instance_id.clone() }),
        None => Ok(()),
    }
}

/// Whether it has not ended. One that waits for its successor has not.
fn is_running(row: &InstanceRow) -> bool {
    row.known && matches!(row.status.as_deref(), None | Some(RUNNING | CONTINUED_AS_NEW))
}
