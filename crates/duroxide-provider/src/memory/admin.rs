//! Deleting instances and pruning executions.

use std::collections::{BTreeSet, VecDeque};

use super::{
    MemoryEngine,
    history::{Execution, RUNNING},
    instance::Instance,
    instances::InstanceKey,
};
use crate::{
    DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult,
    store::{Answer, Refusal, bounds::BULK_LIMIT_DEFAULT, calling_parent},
};

impl MemoryEngine {
    pub(super) fn delete_instances(&mut self, ids: &[String], force: bool) -> Result<Answer, Refusal> {
        let mut seen = BTreeSet::new();
        let keys: Vec<_> =
            ids.iter().filter_map(|id| self.instances.find(id)).filter(|key| seen.insert(*key)).collect();
        self.check_ended(&keys, force)?;
        self.check_no_child_left(&keys, &seen)?;
        Ok(Answer::Deleted(self.delete(&keys)))
    }

    pub(super) fn delete_tree(&mut self, id: &str, force: bool) -> Result<Answer, Refusal> {
        let Some(root) = self.instances.known(id) else {
            return Err(Refusal::InstanceNotFound { instance: id.to_owned() });
        };
        if root.parent.is_some() {
            return Err(Refusal::IsSubOrchestration { instance: id.to_owned() });
        }
        let keys = self.tree(self.instances.find(id));
        self.check_ended(&keys, force)?;
        Ok(Answer::Deleted(self.delete(&keys)))
    }

    pub(super) fn delete_bulk(&mut self, filter: &InstanceFilter) -> Result<Answer, Refusal> {
        let roots = self.select(filter, is_ended_root);
        let keys = self.tree(roots);
        Ok(Answer::Deleted(self.delete(&keys)))
    }

    pub(super) fn prune(&mut self, id: &str, options: &PruneOptions) -> Result<Answer, Refusal> {
        let known = self.instances.known(id).and_then(|_| self.instances.find(id));
        let key = known.ok_or_else(|| Refusal::InstanceNotFound { instance: id.to_owned() })?;
        Ok(Answer::Pruned(self.prune_each([key], options)))
    }

    pub(super) fn prune_bulk(
        &mut self,
        filter: &InstanceFilter,
        options: &PruneOptions,
    ) -> Result<Answer, Refusal> {
        let keys = self.select(filter, |_| true);
        Ok(Answer::Pruned(self.prune_each(keys, options)))
    }

    fn check_ended(&self, keys: &[InstanceKey], force: bool) -> Result<(), Refusal> {
        let mut instances = keys.iter().filter_map(|key| self.instances.get(*key));
        match instances.find(|instance| !force && instance.is_running()) {
            Some(running) => Err(Refusal::InstanceStillRunning { instance: running.id.clone() }),
            None => Ok(()),
        }
    }

    fn check_no_child_left(
        &self,
        keys: &[InstanceKey],
        going: &BTreeSet<InstanceKey>,
    ) -> Result<(), Refusal> {
        for parent in keys.iter().filter_map(|key| self.instances.get(*key)) {
            let mut children = self.instances.children(&parent.id).filter(|child| !going.contains(child));
            if let Some(child) = children.find_map(|child| self.instances.get(child)) {
                let (parent, child) = (parent.id.clone(), child.id.clone());
                return Err(Refusal::ChildAppeared { parent, child });
            }
        }
        Ok(())
    }

    /// These instances with all their descendants, each before its children.
    fn tree(&self, roots: impl IntoIterator<Item = InstanceKey>) -> Vec<InstanceKey> {
        let mut to_visit: VecDeque<_> = roots.into_iter().collect();
        let mut seen: BTreeSet<_> = to_visit.iter().copied().collect();
        let mut tree = Vec::new();
        while let Some(key) = to_visit.pop_front() {
            let children =
                self.instances.get(key).into_iter().flat_map(|row| self.instances.children(&row.id));
            to_visit.extend(children.filter(|child| seen.insert(*child)));
            tree.push(key);
        }
        tree
    }

    fn delete(&mut self, keys: &[InstanceKey]) -> DeleteInstanceResult {
        let mut result = DeleteInstanceResult::default();
        let ids = keys.iter().filter_map(|key| self.instances.get(*key));
        let parents: BTreeSet<_> = ids.map(|instance| instance.id.clone()).collect();
        keys.iter().for_each(|key| self.delete_one(*key, &mut result));
        self.delete_unborn(&parents, &mut result);
        result
    }

    fn delete_one(&mut self, key: InstanceKey, result: &mut DeleteInstanceResult) {
        let Some(instance) = self.instances.remove(key) else { return };
        result.instances_deleted += u64::from(instance.is_known());
        result.executions_deleted += instance.executions.len() as u64;
        result.events_deleted += instance.executions.values().map(Execution::event_count).sum::<u64>();
        result.queue_messages_deleted += (instance.mailbox.len() + instance.activities.len()) as u64;
        for activity in instance.activities.values() {
            self.activities.remove(*activity);
        }
        self.dead_letters.remove_instance(&instance.id);
    }

    /// Deletes the calls of deleted parents that were not carried out yet: their children belong to the tree, although
    /// there is nothing of them but a start. A turn that is about to make one loses its lock.
    fn delete_unborn(&mut self, parents: &BTreeSet<String>, result: &mut DeleteInstanceResult) {
        let is_theirs = |key: &&String| calling_parent(key).is_some_and(|parent| parents.contains(parent));
        let called: Vec<(InstanceKey, Vec<String>)> = self
            .instances
            .iter()
            .map(|(key, instance)| (key, instance.mailbox.keys().filter(is_theirs).cloned().collect()))
            .collect();
        for (key, calls) in called.into_iter().filter(|(_, calls)| !calls.is_empty()) {
            result.queue_messages_deleted += calls.len() as u64;
            let others_want_it = self.instances.change(key, self.now, |instance| {
                calls.iter().for_each(|call| instance.mailbox.remove_by_key(call));
                if !instance.is_known() {
                    instance.lock = None;
                    instance.mailbox.release_locked(None, false);
                }
                instance.is_known() || instance.mailbox.has_start()
            });
            if others_want_it == Some(false) {
                self.delete_one(key, result);
            }
        }
    }

    /// The ids of the instances that a bulk call visits.
    pub(super) fn selected_ids(&self, filter: &InstanceFilter, running_too: bool) -> Vec<String> {
        let keys = self.select(filter, |instance| running_too || is_ended_root(instance));
        keys.into_iter().filter_map(|key| Some(self.instances.get(key)?.id.clone())).collect()
    }

    /// Known instances that match the filter, in the order of their rows. The limit comes last.
    fn select(&self, filter: &InstanceFilter, accept: impl Fn(&Instance) -> bool) -> Vec<InstanceKey> {
        let ids = filter.instance_ids.as_ref().map(|ids| ids.iter().collect::<BTreeSet<_>>());
        let ended_in_time = |instance: &Instance| match filter.completed_before {
            Some(time) => {
                !instance.is_running() && instance.current().is_some_and(|e| e.completed_before(time))
            }
            None => true,
        };
        self.instances
            .iter()
            .filter(|(_, instance)| instance.is_known() && accept(instance) && ended_in_time(instance))
            .filter(|(_, instance)| ids.as_ref().is_none_or(|ids| ids.contains(&instance.id)))
            .map(|(key, _)| key)
            .take(filter.limit.unwrap_or(BULK_LIMIT_DEFAULT) as usize)
            .collect()
    }

    fn prune_each(
        &mut self,
        keys: impl IntoIterator<Item = InstanceKey>,
        options: &PruneOptions,
    ) -> PruneResult {
        let mut result = PruneResult::default();
        for key in keys {
            let pruned = self.instances.change(key, self.now, |instance| prune(instance, options));
            let pruned = pruned.unwrap_or_default();
            result.instances_processed += 1;
            result.executions_deleted += pruned.len() as u64;
            result.events_deleted += pruned.iter().map(Execution::event_count).sum::<u64>();
        }
        result
    }
}

fn is_ended_root(instance: &Instance) -> bool {
    instance.parent.is_none() && !instance.is_running()
}

/// Takes old executions out of an instance. The current one and running ones always stay.
fn prune(instance: &mut Instance, options: &PruneOptions) -> Vec<Execution> {
    let keep = options.keep_last.unwrap_or_default() as usize;
    let old: Vec<u64> = instance.executions.keys().rev().skip(keep).copied().collect();
    let current = instance.execution_id;
    let goes = |execution: &Execution| {
        execution.status() != RUNNING
            && options.completed_before.is_none_or(|time| execution.completed_before(time))
    };
    let going = old.into_iter().filter(|id| *id != current && instance.executions.get(id).is_some_and(goes));
    let going: Vec<u64> = going.collect();
    instance.touched_executions.extend(&going);
    going.iter().filter_map(|id| instance.executions.remove(id)).collect()
}
