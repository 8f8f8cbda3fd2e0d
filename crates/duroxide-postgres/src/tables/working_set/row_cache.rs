//! Rows as this node wrote or locked them last.
//!
//! A transaction that finds all its rows in this cache takes one round trip, because it reads nothing. The cached rows are
//! not locked, so another node may have changed one of them. Every write gives a row a new revision. The transaction
//! compares revisions when it writes; if one differs, the transaction has no effect, and the engine repeats it with rows
//! from the database.
//!
//! A node that writes an execution, event, message or value of an instance also gives the instance a new revision. So an
//! instance that still has the cached revision has not been changed, and neither has anything that belongs to it.

mod recall;

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use duroxide_provider::{
    rules::{InstanceRow, LaneId, Readiness, RouteId, is_end_of_execution},
    store::Readies,
};

pub(in crate::tables) use self::recall::Accepted;
use super::{Mailbox, WorkingSet};
use crate::{
    record::{Activity, ActivityKey, CustomStatus, Execution, KeyValueChange, Message},
    tables::ready::ready_on,
};

/// How many rows and how many bytes of texts are kept. If more come, all are forgotten.
const ROWS_MAX: usize = 32_768;
const BYTES_MAX: usize = 32 << 20;
/// For this many transactions after a failure the cache is not used.
const PAUSE: u32 = 16;

#[derive(Debug, Default)]
pub(in crate::tables) struct RowCache {
    instances: HashMap<u64, CachedInstance>,
    numbers: HashMap<String, u64>,
    activities: HashMap<u64, CachedActivity>,
    activity_numbers: HashMap<ActivityKey, u64>,
    /// Instances that can be claimed, by route and place.
    ready_instances: BTreeSet<(RouteId, u64, u64)>,
    /// Activities of no session that can be claimed.
    ready_activities: BTreeSet<(LaneId, u64)>,
    bytes: usize,
    all_ready_instances: AllReady,
    all_ready_activities: AllReady,
    /// Whether to assume that no other node writes: for tests.
    pub(in crate::tables) is_only_writer: bool,
    /// For how many more transactions the cache is not used.
    pause: u32,
}

/// Whether the cache holds all ready rows of a queue, and when that was last verified.
///
/// Other nodes notify this one of rows that they make ready, unless they have not noticed this node yet. Therefore the node
/// verifies at intervals that the first ready row of the database is the first ready row of the cache.
#[derive(Debug, Default)]
struct AllReady(Option<Instant>);

impl AllReady {
    const CHECK_INTERVAL: Duration = Duration::from_millis(250);
    const FRESH: Duration = Duration::from_secs(1);

    /// Whether all ready rows are known to be in the cache. `always`: however long ago that was verified.
    fn is_known(&self, always: bool) -> bool {
        self.0.is_some_and(|at| always || at.elapsed() < Self::FRESH)
    }

    fn is_check_due(&self) -> bool {
        self.0.is_some_and(|at| at.elapsed() >= Self::CHECK_INTERVAL)
    }

    fn compare(&mut self, is_same: bool) {
        self.0 = self.0.filter(|_| is_same).map(|_| Instant::now());
    }
}

/// The first rows of the store that can be claimed.
#[derive(Debug)]
pub(in crate::tables) struct FirstReady {
    /// The place of the first ready instance.
    pub(in crate::tables) instance: Option<u64>,
    /// The number of the first ready activity.
    pub(in crate::tables) activity: Option<u64>,
    /// Whether there are stray mailboxes, or ready activities of sessions.
    pub(in crate::tables) has_others: bool,
}

/// An instance and its known rows.
#[derive(Debug)]
struct CachedInstance {
    row: InstanceRow,
    revision: u64,
    /// The current execution.
    execution: Option<Execution>,
    /// All messages of its mailbox.
    messages: Vec<Message>,
    custom_status: Option<Option<CustomStatus>>,
    key_value_changes: Option<Vec<KeyValueChange>>,
    bytes: usize,
}

#[derive(Debug)]
struct CachedActivity {
    activity: Activity,
    revision: u64,
}

impl RowCache {
    /// Clears the cache after a failure. The next reads go to the database.
    pub(in crate::tables) fn suspend(&mut self) {
        self.clear();
        self.pause = PAUSE;
    }

    fn clear(&mut self) {
        *self = Self { is_only_writer: self.is_only_writer, pause: self.pause, ..Self::default() };
    }

    /// Other processes may have made rows of these queues ready.
    pub(in crate::tables) fn forget_ready(&mut self, queues: Readies) {
        if queues.instances {
            self.all_ready_instances = AllReady(None);
        }
        if queues.activities {
            self.all_ready_activities = AllReady(None);
        }
    }

    /// After a transaction has read all rows that can be claimed, later ready rows are written by this node, or other
    /// processes notify of them. Cached rows that it did not find were claimed by other nodes.
    fn take_ready_lists(&mut self, set: &WorkingSet) {
        if set.is_loaded && set.strays_are_read && set.ready_routes.is_whole() {
            let known: Vec<u64> = self.ready_instances.iter().map(|(_, _, number)| *number).collect();
            known.into_iter().for_each(|number| self.remove_instance(number));
            self.all_ready_instances = AllReady(Some(Instant::now()));
        }
        let has_no_sessions = set.session_lanes.as_ref().is_some_and(BTreeSet::is_empty);
        if set.is_loaded && has_no_sessions && set.ready_lanes.is_whole() {
            let known: Vec<u64> = self.ready_activities.iter().map(|(_, number)| *number).collect();
            known.into_iter().for_each(|number| self.remove_activity(number));
            self.all_ready_activities = AllReady(Some(Instant::now()));
        }
    }

    /// Forgets activities that a statement has deleted.
    pub(in crate::tables) fn forget_activities(&mut self, numbers: &[u64]) {
        // If the statement is rolled back, they exist in the database only.
        if numbers.iter().any(|number| self.activities.contains_key(number)) {
            self.all_ready_activities = AllReady(None);
        }
        numbers.iter().for_each(|number| self.remove_activity(*number));
    }

    /// Whether it is time to read the first ready rows.
    pub(in crate::tables) fn is_check_due(&self) -> bool {
        let is_due = self.all_ready_instances.is_check_due() || self.all_ready_activities.is_check_due();
        is_due && !self.is_only_writer
    }

    /// Compares the first rows of the store with the first ones here.
    pub(in crate::tables) fn compare_first(&mut self, first: Option<FirstReady>) {
        let Some(first) = first.filter(|first| !first.has_others) else {
            return self.forget_ready(Readies { instances: true, activities: true });
        };
        let instance = self.ready_instances.iter().map(|(_, place, _)| *place).min();
        self.all_ready_instances.compare(first.instance == instance);
        let activity = self.ready_activities.iter().map(|(_, number)| *number).min();
        self.all_ready_activities.compare(first.activity == activity);
    }

    /// Takes the rows that a committed transaction has locked or written, all of which were sent.
    pub(in crate::tables) fn take(&mut self, mut set: WorkingSet) {
        self.take_ready_lists(&set);
        set.instances.absent_keys().for_each(|number| self.remove_instance(*number));
        set.activities.absent_keys().for_each(|number| self.remove_activity(*number));
        let mut mailboxes: HashMap<u64, Vec<Message>> = HashMap::new();
        for message in std::mem::take(&mut set.messages).into_rows() {
            mailboxes.entry(message.instance).or_default().push(message);
        }
        for row in std::mem::take(&mut set.instances).into_rows() {
            let Some(revision) = set.instance_revisions.get(&row.number).copied() else { continue };
            self.remove_instance(row.number);
            let is_ready = ready_on(&row).is_some();
            let is_stray = matches!(row.readiness, Readiness::Stray { .. });
            let messages = mailboxes.remove(&row.number).unwrap_or_default();
            let cached = CachedInstance::of(&mut set, row, messages, revision);
            // The next claim takes it, too, and would not find it here.
            if is_stray || (is_ready && cached.is_none()) {
                self.all_ready_instances = AllReady(None);
            }
            cached.into_iter().for_each(|cached| self.insert_instance(cached));
        }
        for activity in std::mem::take(&mut set.activities).into_rows() {
            let number = activity.queued.number;
            let Some(revision) = set.activity_revisions.get(&number).copied() else { continue };
            self.remove_activity(number);
            self.insert_activity(CachedActivity { activity, revision });
        }
        if self.instances.len() + self.activities.len() > ROWS_MAX || self.bytes > BYTES_MAX {
            self.clear();
        }
    }

    fn insert_instance(&mut self, cached: CachedInstance) {
        let number = cached.row.number;
        if let Some((route, place)) = ready_on(&cached.row) {
            self.ready_instances.insert((route, place, number));
        }
        self.bytes += cached.bytes;
        self.numbers.insert(cached.row.id.clone(), number);
        self.instances.insert(number, cached);
    }

    /// Forgets instances, wherever they are now.
    pub(in crate::tables) fn forget_instances(&mut self, numbers: BTreeSet<u64>) {
        numbers.into_iter().for_each(|number| self.remove_instance(number));
    }

    fn remove_instance(&mut self, number: u64) {
        let Some(cached) = self.instances.remove(&number) else { return };
        if let Some((route, place)) = ready_on(&cached.row) {
            self.ready_instances.remove(&(route, place, number));
        }
        self.bytes -= cached.bytes;
        self.numbers.remove(&cached.row.id);
    }

    fn insert_activity(&mut self, cached: CachedActivity) {
        let queued = &cached.activity.queued;
        if queued.is_ready() {
            match queued.session_id {
                None => _ = self.ready_activities.insert((queued.lane, queued.number)),
                // The owner of a session is not cached.
                Some(_) => self.all_ready_activities = AllReady(None),
            }
        }
        self.bytes += bytes_of(&cached.activity);
        self.activity_numbers.insert(cached.activity.key(), queued.number);
        self.activities.insert(queued.number, cached);
    }

    fn remove_activity(&mut self, number: u64) {
        let Some(cached) = self.activities.remove(&number) else { return };
        self.ready_activities.remove(&(cached.activity.queued.lane, number));
        self.bytes -= bytes_of(&cached.activity);
        self.activity_numbers.remove(&cached.activity.key());
    }
}

fn bytes_of(activity: &Activity) -> usize {
    activity.data.as_ref().map_or(0, String::len)
}

impl CachedInstance {
    /// `None`: some rows are unknown, or the instance will not be needed soon.
    fn of(set: &mut WorkingSet, row: InstanceRow, messages: Vec<Message>, revision: u64) -> Option<Self> {
        let number = row.number;
        if set.mailboxes.get(&number) != Some(&Mailbox::Whole) {
            return None;
        }
        let is_over = row.status.as_deref().is_some_and(is_end_of_execution) && messages.is_empty();
        if is_over || messages.iter().any(|message| !message.has_data) {
            return None;
        }
        let key = (number, row.execution_id);
        if row.known && !set.executions.knows(&key) {
            return None;
        }
        let changes = || {
            let of_instance = (number, String::new())..(number + 1, String::new());
            set.key_value_changes.range(of_instance).cloned().collect()
        };
        let key_value_changes = set.whole_key_value_changes.contains(&number).then(changes);
        let bytes = messages.iter().map(|message| message.bytes).sum();
        Some(Self {
            row,
            revision,
            execution: set.executions.take(&key),
            messages,
            custom_status: set.custom_status.knows(&number).then(|| set.custom_status.get(&number).cloned()),
            key_value_changes,
            bytes,
        })
    }
}
