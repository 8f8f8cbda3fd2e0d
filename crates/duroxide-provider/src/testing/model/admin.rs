//! Deleting instances and pruning executions.

use super::{ModelEngine, instance::Instance};
use crate::{
    DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult,
    store::{Answer, Refusal, bounds::BULK_LIMIT_DEFAULT, calling_parent},
};

impl ModelEngine {
    pub(super) fn delete_instances(&mut self, ids: &[String], force: bool) -> Result<Answer, Refusal> {
        let mut keys = Vec::new();
        for key in ids.iter().filter_map(|id| self.find(id)) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        self.check_ended(&keys, force)?;
        for parent in &keys {
            if let Some(child) = self.children(*parent).into_iter().find(|child| !keys.contains(child)) {
                let (parent, child) = (self.instances[parent].id.clone(), self.instances[&child].id.clone());
                return Err(Refusal::ChildAppeared { parent, child });
            }
        }
        Ok(Answer::Deleted(self.delete(&keys)))
    }

    pub(super) fn delete_tree(&mut self, id: &str, force: bool) -> Result<Answer, Refusal> {
        let root = self.known_key(id)?;
        if self.instances[&root].parent.is_some() {
            return Err(Refusal::IsSubOrchestration { instance: id.to_owned() });
        }
        let keys = self.trees(vec![root]);
        self.check_ended(&keys, force)?;
        Ok(Answer::Deleted(self.delete(&keys)))
    }

    pub(super) fn delete_bulk(&mut self, filter: &InstanceFilter) -> Answer {
        let keys = self.trees(self.select(filter, false));
        Answer::Deleted(self.delete(&keys))
    }

    pub(super) fn prune(&mut self, id: &str, options: &PruneOptions) -> Result<Answer, Refusal> {
        let key = self.known_key(id)?;
        Ok(self.prune_each(vec![key], options))
    }

    pub(super) fn prune_bulk(&mut self, filter: &InstanceFilter, options: &PruneOptions) -> Answer {
        self.prune_each(self.select(filter, true), options)
    }

    fn known_key(&self, id: &str) -> Result<u64, Refusal> {
        let key = self.find(id).filter(|key| self.instances[key].is_known());
        key.ok_or_else(|| Refusal::InstanceNotFound { instance: id.to_owned() })
    }

    fn check_ended(&self, keys: &[u64], force: bool) -> Result<(), Refusal> {
        let mut instances = keys.iter().map(|key| &self.instances[key]);
        match instances.find(|instance| !force && instance.is_running()) {
            Some(running) => Err(Refusal::InstanceStillRunning { instance: running.id.clone() }),
            None => Ok(()),
        }
    }

    pub(super) fn children(&self, parent: u64) -> Vec<u64> {
        let id = Some(&self.instances[&parent].id);
        self.instances.iter().filter(|(_, row)| row.parent.as_ref() == id).map(|(key, _)| *key).collect()
    }

    /// These instances with all their descendants.
    fn trees(&self, mut keys: Vec<u64>) -> Vec<u64> {
        let mut visited = 0;
        while visited < keys.len() {
            for child in self.children(keys[visited]) {
                if !keys.contains(&child) {
                    keys.push(child);
                }
            }
            visited += 1;
        }
        keys
    }

    fn delete(&mut self, keys: &[u64]) -> DeleteInstanceResult {
        let mut result = DeleteInstanceResult::default();
        let parents: Vec<String> = keys.iter().map(|key| self.instances[key].id.clone()).collect();
        keys.iter().for_each(|key| self.delete_one(*key, &mut result));
        self.delete_pending_calls(&parents, &mut result);
        result
    }

    fn delete_one(&mut self, key: u64, result: &mut DeleteInstanceResult) {
        let instance = self.instances.remove(&key).unwrap();
        let activities = self.activities.len();
        self.activities.retain(|_, activity| activity.instance != key);
        self.dead_letters.retain(|_, letter| letter.shown.instance_id.as_ref() != Some(&instance.id));
        result.instances_deleted += u64::from(instance.is_known());
        result.executions_deleted += instance.executions.len() as u64;
        result.events_deleted += instance.executions.values().map(|row| row.events.len() as u64).sum::<u64>();
        result.queue_messages_deleted +=
            (instance.messages.len() + activities - self.activities.len()) as u64;
    }

    /// Deletes the calls of deleted parents that were not carried out yet: their children belong to the tree, although
    /// only their starts exist. A turn that is about to begin such a child loses its lock.
    fn delete_pending_calls(&mut self, parents: &[String], result: &mut DeleteInstanceResult) {
        let is_theirs = |key: &String| {
            calling_parent(key).is_some_and(|parent| parents.iter().any(|deleted| deleted == parent))
        };
        for key in self.instances.keys().copied().collect::<Vec<_>>() {
            let instance = self.instances.get_mut(&key).unwrap();
            let before = instance.messages.len();
            instance.messages.retain(|message| !message.key.as_ref().is_some_and(is_theirs));
            let calls = before - instance.messages.len();
            if calls == 0 {
                continue;
            }
            result.queue_messages_deleted += calls as u64;
            if !instance.is_known() {
                instance.lock = None;
                instance.release(Default::default(), false);
            }
            if instance.is_known() || instance.has_start() {
                self.settle(key);
            } else {
                self.delete_one(key, result);
            }
        }
    }

    /// Known instances that a bulk call visits, in the order of their rows: ended roots, or running ones too.
    pub(super) fn select(&self, filter: &InstanceFilter, running_too: bool) -> Vec<u64> {
        let is_selected = |instance: &Instance| {
            let is_named = filter.instance_ids.as_ref().is_none_or(|ids| ids.contains(&instance.id));
            let is_accepted = running_too || (instance.parent.is_none() && !instance.is_running());
            let ended_in_time = |time| {
                !instance.is_running() && instance.current().is_some_and(|row| row.completed_before(time))
            };
            instance.is_known()
                && is_named
                && is_accepted
                && filter.completed_before.is_none_or(ended_in_time)
        };
        let selected = self.instances.iter().filter(|(_, instance)| is_selected(instance));
        let limit = filter.limit.unwrap_or(BULK_LIMIT_DEFAULT) as usize;
        selected.map(|(key, _)| *key).take(limit).collect()
    }

    /// The newest executions stay, the current one, and running ones.
    fn prune_each(&mut self, keys: Vec<u64>, options: &PruneOptions) -> Answer {
        let mut result = PruneResult::default();
        for key in keys {
            let instance = self.instances.get_mut(&key).unwrap();
            let keep = options.keep_last.unwrap_or_default() as usize;
            let old: Vec<u64> = instance.executions.keys().rev().skip(keep).copied().collect();
            for id in old.into_iter().filter(|id| *id != instance.execution_id) {
                let execution = &instance.executions[&id];
                let in_time = options.completed_before.is_none_or(|time| execution.completed_before(time));
                if execution.status != "Running" && in_time {
                    result.executions_deleted += 1;
                    result.events_deleted += execution.events.len() as u64;
                    instance.executions.remove(&id);
                }
            }
            result.instances_processed += 1;
        }
        Answer::Pruned(result)
    }
}
