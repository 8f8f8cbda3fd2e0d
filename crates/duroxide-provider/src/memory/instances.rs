use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    time::Duration,
};

use duroxide_core::Timestamp;

use super::{instance::Instance, lock::Lock, record::Changes, route::Route};
use crate::store::{HeldBack, InstanceNeeds, InstanceOrder, MessageRow, token_row};

/// The number of an instance's row. Never reused, so an instance that was deleted and started again differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InstanceKey(pub(super) u64);

/// All instances and mailboxes, and the indexes by which claims and promotions find them.
#[derive(Debug, Clone)]
pub(super) struct Instances {
    rows: BTreeMap<InstanceKey, Row>,
    ids: BTreeMap<String, InstanceKey>,
    children: BTreeMap<String, BTreeSet<InstanceKey>>,
    /// Ready instances by route, in the order in which they became ready.
    ready: BTreeMap<Route, BTreeMap<u64, InstanceKey>>,
    /// When rows have to be looked at again.
    wake: BTreeSet<(Timestamp, InstanceKey)>,
    /// Mailboxes of only queue messages; the next claim drops them.
    stray_queues: BTreeSet<InstanceKey>,
    orphan_ttl: Duration,
    last_row: u64,
    /// Counts arrivals and ready numbers.
    sequence: u64,
    touched: BTreeSet<InstanceKey>,
    removed: Vec<String>,
}

#[derive(Debug, Clone)]
struct Row {
    instance: Instance,
    ready: Option<(Route, u64)>,
    wake_at: Option<Timestamp>,
}

impl Instances {
    pub(super) fn new(orphan_ttl: Duration) -> Self {
        Self {
            rows: BTreeMap::new(),
            ids: BTreeMap::new(),
            children: BTreeMap::new(),
            ready: BTreeMap::new(),
            wake: BTreeSet::new(),
            stray_queues: BTreeSet::new(),
            orphan_ttl,
            last_row: 0,
            sequence: 0,
            touched: BTreeSet::new(),
            removed: Vec::new(),
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<InstanceKey> {
        self.ids.get(id).copied()
    }

    pub(super) fn get(&self, key: InstanceKey) -> Option<&Instance> {
        self.rows.get(&key).map(|row| &row.instance)
    }

    /// An instance that was started; mailboxes are invisible to reads.
    pub(super) fn known(&self, id: &str) -> Option<&Instance> {
        self.find(id).and_then(|key| self.get(key)).filter(|instance| instance.is_known())
    }

    /// The row a token belongs to, if it is the token of that row's lock.
    pub(super) fn holder_of(&self, token: &str) -> Option<(InstanceKey, &Instance)> {
        let key = InstanceKey(token_row(token)?);
        let instance = self.get(key)?;
        (instance.lock.as_ref()?.token() == token).then_some((key, instance))
    }

    /// Rows in the order in which they were made.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (InstanceKey, &Instance)> {
        self.rows.iter().map(|(key, row)| (*key, &row.instance))
    }

    /// Rows made before this one, or all.
    pub(super) fn below(
        &self,
        key: Option<InstanceKey>,
    ) -> impl DoubleEndedIterator<Item = (InstanceKey, &Instance)> {
        let end = key.map_or(Bound::Unbounded, Bound::Excluded);
        self.rows.range((Bound::Unbounded, end)).map(|(key, row)| (*key, &row.instance))
    }

    /// Rows by instance id.
    pub(super) fn by_id(&self) -> impl Iterator<Item = &Instance> {
        self.ids.values().filter_map(|key| self.get(*key))
    }

    pub(super) fn children(&self, id: &str) -> impl Iterator<Item = InstanceKey> {
        self.children.get(id).into_iter().flatten().copied()
    }

    /// The row of this id; a mailbox if there is none.
    pub(super) fn open(&mut self, id: &str, now: Timestamp) -> InstanceKey {
        if let Some(key) = self.find(id) {
            return key;
        }
        self.last_row += 1;
        let key = InstanceKey(self.last_row);
        self.touched.insert(key);
        self.ids.insert(id.to_owned(), key);
        let row = Row { instance: Instance::mailbox(id, now), ready: None, wake_at: None };
        self.rows.insert(key, row);
        key
    }

    /// Changes a row and files it where it then belongs. Every change goes through here.
    pub(super) fn change<T>(
        &mut self,
        key: InstanceKey,
        now: Timestamp,
        change: impl FnOnce(&mut Instance) -> T,
    ) -> Option<T> {
        self.touched.insert(key);
        let row = self.rows.get_mut(&key)?;
        let parent_before = row.instance.parent.clone();
        let result = change(&mut row.instance);
        if row.instance.parent != parent_before {
            let parent = row.instance.parent.clone();
            self.file_child(key, parent_before, parent);
        }
        self.file(key, now);
        Some(result)
    }

    /// Takes a row out of the ready ones before a change, so that it goes to the back if it is ready again.
    pub(super) fn set_back(&mut self, key: InstanceKey) {
        let Some((route, number)) = self.rows.get_mut(&key).and_then(|row| row.ready.take()) else { return };
        if let Some(numbers) = self.ready.get_mut(&route) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.ready.remove(&route);
            }
        }
    }

    /// Shows the row's messages that were hidden until now. A ready row is not woken for that, so a claim asks.
    pub(super) fn show_due(&mut self, key: InstanceKey, now: Timestamp) {
        if let Some(row) = self.rows.get_mut(&key) {
            row.instance.mailbox.show_due(now);
        }
    }

    pub(super) fn enqueue(&mut self, message: &MessageRow, now: Timestamp) {
        let key = self.open(&message.instance, now);
        self.sequence += 1;
        let arrival = self.sequence;
        self.change(key, now, |instance| instance.mailbox.insert(message, arrival, now));
    }

    pub(super) fn remove(&mut self, key: InstanceKey) -> Option<Instance> {
        self.set_back(key);
        let row = self.rows.remove(&key)?;
        if let Some(at) = row.wake_at {
            self.wake.remove(&(at, key));
        }
        self.stray_queues.remove(&key);
        self.ids.remove(&row.instance.id);
        self.removed.push(row.instance.id.clone());
        self.file_child(key, row.instance.parent.clone(), None);
        Some(row.instance)
    }

    /// The instance among those the order accepts that has been ready longest.
    pub(super) fn first_ready(&self, routes: &[Route]) -> Option<InstanceKey> {
        let firsts = routes.iter().filter_map(|route| self.ready.get(route)?.first_key_value());
        firsts.min().map(|(_, key)| *key)
    }

    /// The routes of ready instances that the order accepts; counts those that it does not.
    pub(super) fn accepted_routes(&self, order: &InstanceOrder, held_back: &mut HeldBack) -> Vec<Route> {
        let mut accepted = Vec::new();
        for (route, ready) in &self.ready {
            match route.held_back_by(order) {
                Some(by) => held_back.count(by, ready.len().min(order.max)),
                None => accepted.push(route.clone()),
            }
        }
        accepted
    }

    /// The instance of this id, if it is ready.
    pub(super) fn ready_named(&self, id: &str) -> Option<InstanceKey> {
        self.find(id).filter(|key| self.rows.get(key).is_some_and(|row| row.ready.is_some()))
    }

    /// Ready instances on the routes for which this holds, longest ready first.
    pub(super) fn ready_where(
        &self,
        wanted: &dyn Fn(&InstanceNeeds) -> bool,
    ) -> impl Iterator<Item = (InstanceNeeds, &Instance)> {
        let routes =
            self.ready.iter().map(|(route, keys)| (route.needs(), keys)).filter(|(needs, _)| wanted(needs));
        let mut ready: Vec<_> = routes
            .flat_map(|(needs, keys)| keys.iter().map(move |(number, key)| (*number, needs.clone(), *key)))
            .collect();
        ready.sort_unstable_by_key(|(number, ..)| *number);
        ready.into_iter().filter_map(|(_, needs, key)| Some((needs, self.get(key)?)))
    }

    /// The next row that is due, in the order of due times.
    pub(super) fn next_due(&self, now: Timestamp) -> Option<InstanceKey> {
        self.wake.first().filter(|(at, _)| *at <= now).map(|(_, key)| *key)
    }

    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        self.wake.first().map(|(at, _)| *at)
    }

    /// Shortens leases that a clock that was set back made too long.
    pub(super) fn clamp_leases(&mut self, now: Timestamp) {
        let mut too_long = Vec::new();
        for (key, row) in &mut self.rows {
            match &mut row.instance.lock {
                // It has ended, and must not live again under the clock as it is now.
                Some(lock) if row.ready.is_some() => {
                    lock.end(now);
                    self.touched.insert(*key);
                }
                Some(lock) if lock.is_too_long(now) => {
                    self.touched.insert(*key);
                    lock.clamp(now);
                    too_long.push(*key);
                }
                _ => {}
            }
        }
        too_long.into_iter().for_each(|key| self.file(key, now));
    }

    /// Moves the leases that were live before the clock was set forward.
    pub(super) fn move_leases(&mut self, now: Timestamp, by: Duration) {
        let is_live = |lock: &Lock| lock.was_live_before(now, by);
        let waiting = self.rows.iter().filter(|(_, row)| row.ready.is_none());
        let live = waiting.filter(|(_, row)| row.instance.lock.as_ref().is_some_and(is_live));
        for key in live.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.change(key, now, |instance| {
                instance.lock.iter_mut().for_each(|lock| lock.move_by(now, by));
            });
        }
    }

    pub(super) fn take_stray_queues(&mut self) -> BTreeSet<InstanceKey> {
        std::mem::take(&mut self.stray_queues)
    }

    pub(super) fn orphan_ttl(&self) -> Duration {
        self.orphan_ttl
    }

    /// Adds what changed since this was last called.
    pub(super) fn take_changes(&mut self, changes: &mut Changes) {
        changes.removed_instances = std::mem::take(&mut self.removed);
        for key in std::mem::take(&mut self.touched) {
            let Some(row) = self.rows.get_mut(&key) else { continue };
            let ready = row.ready.as_ref().map(|(_, number)| *number);
            changes.instances.push(row.instance.record(key.0, ready));
            row.instance.take_changes(changes);
        }
    }

    pub(super) fn forget_changes(&mut self) {
        self.removed.clear();
        for key in std::mem::take(&mut self.touched) {
            if let Some(row) = self.rows.get_mut(&key) {
                row.instance.forget_changes();
            }
        }
    }

    /// Brings back an instance that was kept elsewhere, with everything in it. [`Self::file_restored`] must follow.
    pub(super) fn restore(&mut self, number: u64, ready: Option<u64>, instance: Instance, now: Timestamp) {
        let key = InstanceKey(number);
        self.last_row = self.last_row.max(number);
        self.sequence = self.sequence.max(instance.mailbox.last_number()).max(ready.unwrap_or_default());
        self.ids.insert(instance.id.clone(), key);
        self.file_child(key, None, instance.parent.clone());
        let ready = ready.map(|number| (instance.route(now), number));
        if let Some((route, number)) = &ready {
            self.ready.entry(route.clone()).or_default().insert(*number, key);
        }
        self.rows.insert(key, Row { instance, ready, wake_at: None });
    }

    /// Files restored rows where they belong. A row that was ready and still is stays as it was: what becomes visible
    /// beside its messages is looked at when it is claimed.
    pub(super) fn file_restored(&mut self, now: Timestamp) {
        let stays =
            |row: &Row| row.ready.is_some() && row.instance.has_work(now) && !row.instance.is_locked(now);
        let keys: Vec<_> = self.rows.iter().filter(|(_, row)| !stays(row)).map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| self.file(key, now));
    }

    /// Numbers that were used before are not used again.
    pub(super) fn continue_numbers_of(&mut self, before: &Self) {
        self.last_row = self.last_row.max(before.last_row);
        self.sequence = self.sequence.max(before.sequence);
    }

    fn file_child(&mut self, key: InstanceKey, before: Option<String>, after: Option<String>) {
        if let Some(parent) = before {
            let siblings = self.children.entry(parent);
            if let std::collections::btree_map::Entry::Occupied(mut siblings) = siblings {
                siblings.get_mut().remove(&key);
                if siblings.get().is_empty() {
                    siblings.remove();
                }
            }
        }
        if let Some(parent) = after {
            self.children.entry(parent).or_default().insert(key);
        }
    }

    /// Brings the indexes in line with a row.
    fn file(&mut self, key: InstanceKey, now: Timestamp) {
        let Some(row) = self.rows.get_mut(&key) else { return };
        row.instance.mailbox.show_due(now);
        if row.instance.is_empty_mailbox() {
            self.remove(key);
            return;
        }
        let locked = row.instance.is_locked(now);
        let ready = !locked && row.instance.has_work(now);
        let stray = row.instance.is_orphaned() && row.instance.mailbox.holds_only_queue_messages();
        let wake_at = wake_at(&row.instance, ready, self.orphan_ttl, now);
        if let Some(before) = std::mem::replace(&mut row.wake_at, wake_at) {
            self.wake.remove(&(before, key));
        }
        self.wake.extend(wake_at.map(|at| (at, key)));
        if stray {
            self.stray_queues.insert(key);
        } else {
            self.stray_queues.remove(&key);
        }
        self.file_ready(key, ready, now);
    }

    /// A row that stays ready keeps its number, also when its route changes.
    fn file_ready(&mut self, key: InstanceKey, ready: bool, now: Timestamp) {
        let Some(row) = self.rows.get(&key) else { return };
        let before = row.ready.clone();
        let number = before.as_ref().map(|(_, number)| *number);
        let after = ready.then(|| (row.instance.route(now), number.unwrap_or(self.sequence + 1)));
        if before == after {
            return;
        }
        self.set_back(key);
        let Some((route, number)) = after else { return };
        self.sequence = self.sequence.max(number);
        self.ready.entry(route.clone()).or_default().insert(number, key);
        if let Some(row) = self.rows.get_mut(&key) {
            row.ready = Some((route, number));
        }
    }
}

/// When a row has to be looked at again: when its lease ends, when something becomes visible, or when its messages
/// have waited too long for an instance. A ready row needs nothing.
fn wake_at(instance: &Instance, ready: bool, orphan_ttl: Duration, now: Timestamp) -> Option<Timestamp> {
    if ready {
        return None;
    }
    if let Some(lock) = instance.lock.as_ref().filter(|lock| lock.is_live(now)) {
        return Some(lock.until());
    }
    let orphaned = instance.is_orphaned().then(|| instance.mailbox.next_orphan(orphan_ttl)).flatten();
    instance.mailbox.next_visible(now).into_iter().chain(orphaned).min()
}
