//! Deleting instances and pruning executions (19).

use std::collections::{BTreeSet, VecDeque};

use duroxide_core::Timestamp;
use duroxide_provider::{
    DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult,
    store::{Answer, ApplyError, Refusal, StoreFailure, bounds::BULK_LIMIT_DEFAULT, calling_parent},
};

use crate::{
    SqliteEngine,
    db::{micros, number},
    instances::{CONTINUED_AS_NEW, Changed, InstanceRow, RUNNING},
};

const CHILDREN: &str = "SELECT id FROM instance WHERE parent = ?1 ORDER BY id";
/// Ended roots, or with `?1` all known instances. An instance that waits for its successor has not ended.
const SELECTED: &str = "SELECT instance.id, instance.instance_id FROM instance
    LEFT JOIN execution
        ON execution.instance = instance.id AND execution.execution_id = instance.execution_id
    WHERE known = 1
      AND (?1 OR (instance.parent IS NULL AND execution.status NOT IN ('Running', 'ContinuedAsNew')))
      AND (?2 IS NULL OR (execution.status NOT IN ('Running', 'ContinuedAsNew') AND execution.completed_at < ?2))
    ORDER BY instance.id";
/// The first two conditions are those of the index.
const CALLS_IN_RANGE: &str = "SELECT instance, key FROM message
    WHERE key >= 'ST/' AND key < 'ST0' AND key >= ?1 AND key < ?2";
const DELETE_EXECUTIONS: &str = "DELETE FROM execution WHERE instance = ?1";
const DELETE_HISTORY: &str = "DELETE FROM history WHERE instance = ?1";
const DELETE_MESSAGES: &str = "DELETE FROM message WHERE instance = ?1";
const DELETE_ACTIVITIES: &str = "DELETE FROM activity WHERE instance = ?1";
const DELETE_KV: &str = "DELETE FROM kv WHERE instance = ?1";
const DELETE_KV_CHANGES: &str = "DELETE FROM kv_change WHERE instance = ?1";
const DELETE_CUSTOM_STATUS: &str = "DELETE FROM custom_status WHERE instance = ?1";
const DELETE_DEAD_LETTERS: &str = "DELETE FROM dead_letter WHERE instance_id = ?1";
/// Old executions beyond the newest `?2` that ended, before `?4` if given. Never the current one.
const PRUNABLE: &str = "SELECT execution_id FROM
        (SELECT execution_id, status, completed_at FROM execution WHERE instance = ?1
         ORDER BY execution_id DESC LIMIT -1 OFFSET ?2)
    WHERE status <> 'Running' AND execution_id <> ?3 AND (?4 IS NULL OR completed_at < ?4)";
const PRUNE_EXECUTION: &str = "DELETE FROM execution WHERE instance = ?1 AND execution_id = ?2";
const PRUNE_HISTORY: &str = "DELETE FROM history WHERE instance = ?1 AND execution_id = ?2";

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
        Ok(Answer::Deleted(self.delete(&rows)?))
    }

    /// Deletes a root with all its descendants.
    pub(crate) fn delete_tree(&mut self, id: &str, force: bool) -> Result<Answer, ApplyError> {
        let root = self.known_instance(id)?;
        if root.parent.is_some() {
            return Err(Refusal::IsSubOrchestration { instance: id.to_owned() }.into());
        }
        let rows = self.tree([root.id])?;
        check_ended(&rows, force)?;
        Ok(Answer::Deleted(self.delete(&rows)?))
    }

    pub(crate) fn delete_bulk(&mut self, filter: &InstanceFilter) -> Result<Answer, ApplyError> {
        let roots = self.select(filter, false)?;
        let rows = self.tree(roots)?;
        Ok(Answer::Deleted(self.delete(&rows)?))
    }

    pub(crate) fn prune(&mut self, id: &str, options: &PruneOptions) -> Result<Answer, ApplyError> {
        let row = self.known_instance(id)?;
        Ok(Answer::Pruned(self.prune_each([row.id], options)?))
    }

    pub(crate) fn prune_bulk(
        &mut self,
        filter: &InstanceFilter,
        options: &PruneOptions,
    ) -> Result<Answer, ApplyError> {
        let ids = self.select(filter, true)?;
        Ok(Answer::Pruned(self.prune_each(ids, options)?))
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

    fn delete(&mut self, rows: &[InstanceRow]) -> Result<DeleteInstanceResult, StoreFailure> {
        let mut result = DeleteInstanceResult::default();
        for row in rows {
            self.delete_one(row, &mut result)?;
        }
        for row in rows {
            self.delete_unborn(&row.instance_id, &mut result)?;
        }
        Ok(result)
    }

    fn delete_one(
        &mut self,
        row: &InstanceRow,
        result: &mut DeleteInstanceResult,
    ) -> Result<(), StoreFailure> {
        result.instances_deleted += u64::from(row.known);
        result.executions_deleted += self.db.execute(DELETE_EXECUTIONS, [row.id])? as u64;
        result.events_deleted += self.db.execute(DELETE_HISTORY, [row.id])? as u64;
        result.queue_messages_deleted += self.db.execute(DELETE_MESSAGES, [row.id])? as u64;
        self.kept_activities.clear();
        result.queue_messages_deleted += self.db.execute(DELETE_ACTIVITIES, [row.id])? as u64;
        self.db.execute(DELETE_KV, [row.id])?;
        self.db.execute(DELETE_KV_CHANGES, [row.id])?;
        self.db.execute(DELETE_CUSTOM_STATUS, [row.id])?;
        self.db.execute(DELETE_DEAD_LETTERS, [&row.instance_id])?;
        self.delete_instance_row(row.id)
    }

    /// Deletes the calls of a deleted parent that were not carried out yet: their children belong to the tree, although
    /// there is nothing of them but a start. A turn that is about to make one loses its lock.
    fn delete_unborn(&mut self, parent: &str, result: &mut DeleteInstanceResult) -> Result<(), StoreFailure> {
        // The character behind the slash ends the range.
        let range = (format!("ST/{parent}/"), format!("ST/{parent}0"));
        let calls: Vec<(i64, String)> =
            self.db.all(CALLS_IN_RANGE, range, |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (child, call) in calls.iter().filter(|(_, call)| calling_parent(call) == Some(parent)) {
            result.queue_messages_deleted += self.delete_by_key(*child, call)?;
            let Some(mut row) = self.instance(*child)? else { continue };
            if row.known {
                self.settle(&row)?;
            } else if self.has_start(row.id)? {
                self.release_batch(&row, Timestamp::ZERO, false)?;
                (row.lock, row.batch) = (None, None);
                self.write_settled(&row, Changed::Nothing)?;
            } else {
                self.delete_one(&row, result)?;
            }
        }
        Ok(())
    }

    /// Known instances that match the filter, in the order of their rows. The limit comes last.
    fn select(&self, filter: &InstanceFilter, running_too: bool) -> Result<Vec<i64>, StoreFailure> {
        let wanted = filter.instance_ids.as_ref().map(|ids| ids.iter().collect::<BTreeSet<_>>());
        let before = filter.completed_before.map(|millis| micros(Timestamp::from_millis(millis)));
        let limit = filter.limit.unwrap_or(BULK_LIMIT_DEFAULT) as usize;
        let rows: Vec<(i64, String)> =
            self.db.all(SELECTED, (running_too, before), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let matching = rows.into_iter().filter(|(_, id)| wanted.as_ref().is_none_or(|ids| ids.contains(id)));
        Ok(matching.map(|(id, _)| id).take(limit).collect())
    }

    fn prune_each(
        &mut self,
        ids: impl IntoIterator<Item = i64>,
        options: &PruneOptions,
    ) -> Result<PruneResult, StoreFailure> {
        let keep = i64::from(options.keep_last.unwrap_or(1).max(1));
        let before = options.completed_before.map(|millis| micros(Timestamp::from_millis(millis)));
        let mut result = PruneResult::default();
        for id in ids {
            let Some(row) = self.instance(id)? else { continue };
            let columns = (id, keep, number(row.execution_id), before);
            for execution_id in self.db.all(PRUNABLE, columns, |row| row.get::<_, i64>(0))? {
                result.executions_deleted += self.db.execute(PRUNE_EXECUTION, (id, execution_id))? as u64;
                result.events_deleted += self.db.execute(PRUNE_HISTORY, (id, execution_id))? as u64;
            }
            result.instances_processed += 1;
        }
        Ok(result)
    }
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
