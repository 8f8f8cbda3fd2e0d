//! A working set made of cached rows.

use std::collections::{BTreeMap, BTreeSet};

use duroxide_provider::rules::{LaneId, RouteId};

use super::RowCache;
use crate::{
    needs::Needs,
    record::ActivityKey,
    tables::{
        load::NamedInstances,
        working_set::{Mailbox, ReadUpTo, ReadyLists, WorkingSet},
    },
};

/// The routes and lanes that the claims of a batch accept, and how many items of each they may take.
#[derive(Debug)]
pub(in crate::tables) struct Accepted<K> {
    pub(in crate::tables) keys: BTreeSet<K>,
    pub(in crate::tables) at_most: usize,
}

impl RowCache {
    /// Whether rows may be taken from here now.
    pub(in crate::tables) fn is_in_use(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0
    }

    /// Puts everything that the operations of a batch need into a working set. `None`: not all of it is here.
    pub(in crate::tables) fn recall_operations(&self, needs: &Needs<'_>, set: &mut WorkingSet) -> Option<()> {
        if needs.reads_more() {
            return None;
        }
        for number in &needs.instances.numbers {
            self.recall_instance(*number, set)?;
        }
        for id in &needs.instances.ids {
            match self.numbers.get(id) {
                // How it was started is in its history.
                Some(_) if needs.first_events.contains(id) => return None,
                Some(number) => self.recall_instance(*number, set)?,
                // Most starts are of new instances. If this one is not, its insert fails.
                None if needs.starts.contains(id) => _ = set.ids.insert(id.clone(), None),
                None => return None,
            }
        }
        for number in needs.activities.iter().chain(&needs.instances.activities) {
            let instance = self.recall_activity(*number, set)?;
            self.recall_instance(instance, set)?;
        }
        for key in &needs.activity_keys {
            self.recall_activity(*self.activity_numbers.get(key)?, set)?;
        }
        for key in &needs.new_activity_keys {
            match self.activity_numbers.get(key) {
                Some(number) => _ = self.recall_activity(*number, set)?,
                None => _ = set.activity_keys.insert(*key, None),
            }
        }
        set.unverified_instances = set.instances.rows().map(|row| row.number).collect();
        set.unverified_activities = set.activities.rows().map(|activity| activity.queued.number).collect();
        let knows_changes = |number: &u64| set.whole_key_value_changes.contains(number);
        let knows_status = |number: &u64| set.custom_status.knows(number);
        let is_known = needs.key_value_changes.iter().all(knows_changes)
            && needs.custom_status.iter().all(knows_status)
            && needs.key_value_keys.is_empty();
        is_known.then_some(())
    }

    /// The cached ones of these instances, with their revisions, and the others.
    pub(in crate::tables) fn cached_among(
        &self,
        named: &NamedInstances,
    ) -> (BTreeMap<u64, u64>, NamedInstances) {
        let (mut cached, mut others) = (BTreeMap::new(), NamedInstances::default());
        let mut is_cached = |number: Option<u64>| {
            let found = number.and_then(|number| self.instances.get(&number));
            cached.extend(found.map(|found| (found.row.number, found.revision)));
            found.is_some()
        };
        let instance_of =
            |activity: &u64| self.activities.get(activity).map(|cached| cached.activity.queued.instance);
        let unknown = named.numbers.iter().filter(|number| !is_cached(Some(**number)));
        others.numbers = unknown.copied().collect();
        let unknown = named.ids.iter().filter(|id| !is_cached(self.numbers.get(*id).copied()));
        others.ids = unknown.cloned().collect();
        let unknown = named.activities.iter().filter(|activity| !is_cached(instance_of(activity)));
        others.activities = unknown.copied().collect();
        (cached, others)
    }

    pub(in crate::tables) fn has_instance(&self, id: &str) -> bool {
        self.numbers.contains_key(id)
    }

    pub(in crate::tables) fn has_activity(&self, key: &ActivityKey) -> bool {
        self.activity_numbers.contains_key(key)
    }

    /// Puts an instance and its rows into a working set. `None`: it is not cached.
    pub(in crate::tables) fn recall_instance(&self, number: u64, set: &mut WorkingSet) -> Option<()> {
        let cached = self.instances.get(&number)?;
        if set.instances.knows(&number) {
            return Some(());
        }
        set.ids.insert(cached.row.id.clone(), Some(number));
        set.instance_revisions.insert(number, cached.revision);
        set.executions.learn((number, cached.row.execution_id), cached.execution.clone());
        set.mailboxes.insert(number, Mailbox::Whole);
        for message in &cached.messages {
            set.messages.learn(message.key(), Some(message.clone()));
        }
        if let Some(status) = &cached.custom_status {
            set.custom_status.learn(number, status.clone());
        }
        if let Some(changes) = &cached.key_value_changes {
            set.whole_key_value_changes.insert(number);
            for change in changes {
                set.key_value_changes.learn((number, change.key.clone()), Some(change.clone()));
            }
        }
        set.learn_instance(cached.row.clone());
        Some(())
    }

    /// Returns the instance of the activity. An activity of a session is left to the database, which has the session.
    fn recall_activity(&self, number: u64, set: &mut WorkingSet) -> Option<u64> {
        let cached = self.activities.get(&number)?;
        let queued = &cached.activity.queued;
        if queued.session_id.is_some() {
            return None;
        }
        if !set.activities.knows(&number) {
            set.activity_revisions.insert(number, cached.revision);
            set.activity_keys.insert(cached.activity.key(), Some(number));
            set.activities.learn(number, Some(cached.activity.clone()));
        }
        Some(queued.instance)
    }

    /// Puts the instances that claims may take into a working set. Where other nodes take them, too, there must be none.
    pub(in crate::tables) fn recall_ready_instances(
        &self,
        accepted: &Accepted<RouteId>,
        is_alone: bool,
        set: &mut WorkingSet,
    ) -> Option<()> {
        if !self.all_ready_instances.is_known(self.is_only_writer)
            || !(is_alone || self.ready_instances.is_empty())
        {
            return None;
        }
        let ready = self.ready_instances.iter().map(|(route, place, number)| (*route, *place, *number));
        set.strays_are_read = true;
        let (lists, taken) = ready_lists(ready, accepted);
        set.ready_routes = lists;
        taken.into_iter().try_for_each(|number| self.recall_instance(number, set))
    }

    pub(in crate::tables) fn recall_ready_activities(
        &self,
        accepted: &Accepted<LaneId>,
        is_alone: bool,
        set: &mut WorkingSet,
    ) -> Option<()> {
        if !self.all_ready_activities.is_known(self.is_only_writer)
            || !(is_alone || self.ready_activities.is_empty())
        {
            return None;
        }
        let ready = self.ready_activities.iter().map(|(lane, number)| (*lane, *number, *number));
        set.session_lanes = Some(BTreeSet::new());
        let (lists, taken) = ready_lists(ready, accepted);
        set.ready_lanes = lists;
        taken.into_iter().try_for_each(|number| self.recall_activity(number, set).map(|_| ()))
    }
}

/// The lists of ready rows, given by key, ready number and row number in order, and the row numbers that claims may
/// take.
fn ready_lists<K: Ord + Copy>(
    ready: impl Iterator<Item = (K, u64, u64)>,
    accepted: &Accepted<K>,
) -> (ReadyLists<K>, Vec<u64>) {
    let mut counts: BTreeMap<K, usize> = BTreeMap::new();
    let mut read: BTreeMap<K, ReadUpTo> = accepted.keys.iter().map(|key| (*key, ReadUpTo::End)).collect();
    let mut last_taken: BTreeMap<K, u64> = BTreeMap::new();
    let mut taken = Vec::new();
    for (key, place, number) in ready {
        let count = counts.entry(key).or_default();
        *count += 1;
        let Some(up_to) = read.get_mut(&key) else { continue };
        if *count > accepted.at_most {
            *up_to = ReadUpTo::Number(last_taken.get(&key).copied());
        } else {
            last_taken.insert(key, place);
            taken.push(number);
        }
    }
    (ReadyLists { counts: Some(counts), read }, taken)
}
