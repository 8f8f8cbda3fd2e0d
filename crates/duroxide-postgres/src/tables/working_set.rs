//! The rows that a transaction has read and written.

mod commit;
mod import;
mod row_cache;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Range,
};

use duroxide_core::Timestamp;
use duroxide_provider::rules::{InstanceRow, LaneId, RouteId};

pub(crate) use self::commit::NextDueTime;
pub(super) use self::row_cache::{Accepted, FirstReady, RowCache};
use self::writes::{Part, Writes, together};
use super::{executions::OldExecutions, instances::Families, nodes::EndingNode, numbers, ready::ready_on};
use crate::{
    connection::{Query, parameters},
    record::{
        Activity, CustomStatus, Event, Execution, KeyValue, KeyValueChange, Letter, Message, ReadyInstance,
        Session, delete, insert,
    },
    tracked_rows::TrackedRows,
    value::Value,
};

/// The known part of a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mailbox {
    /// All its messages are in the working set.
    Whole,
    /// The mailbox is longer than the limit.
    Large,
}

/// Which due rows were read, and locked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum DueRead {
    #[default]
    Nothing,
    /// Those that were due when the transaction began, by the database's clock, which is also the clock of the transaction.
    AtBegin,
    /// Those that are due at this time.
    At(Timestamp),
}

impl DueRead {
    /// A read at a time that the caller has set, or else when the transaction began.
    pub(super) fn at(time: Option<Timestamp>) -> Self {
        time.map_or(Self::AtBegin, Self::At)
    }

    /// Whether all rows that are due at this time of the transaction were read.
    pub(super) fn covers(self, now: Timestamp) -> bool {
        match self {
            Self::Nothing => false,
            Self::AtBegin => true,
            Self::At(time) => time >= now,
        }
    }
}

/// How far a list of ready rows was read: those are in the working set, and locked.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadUpTo {
    /// All of them.
    End,
    /// Those up to this number; `None` if none was.
    Number(Option<u64>),
}

/// A list of ready rows by route or lane.
#[derive(Debug)]
pub(super) struct ReadyLists<K> {
    /// Where rows were ready, and how many of them at most, when that was asked.
    pub(super) counts: Option<BTreeMap<K, usize>>,
    pub(super) read: BTreeMap<K, ReadUpTo>,
}

impl<K> Default for ReadyLists<K> {
    fn default() -> Self {
        Self { counts: None, read: BTreeMap::new() }
    }
}

impl<K: Ord> ReadyLists<K> {
    /// How far the list of a route or lane was read. Where nothing was ready there was nothing to read.
    pub(super) fn read_up_to(&self, key: K) -> Option<ReadUpTo> {
        let counted_none = self.counts.as_ref().is_some_and(|counts| !counts.contains_key(&key));
        let nothing = counted_none.then_some(ReadUpTo::End);
        self.read.get(&key).copied().or(nothing)
    }

    /// Whether all ready rows are in the working set.
    fn is_whole(&self) -> bool {
        let is_read = |key: &K| matches!(self.read.get(key), Some(ReadUpTo::End));
        self.counts.as_ref().is_some_and(|counts| counts.keys().all(is_read))
    }
}

#[derive(Debug, Default)]
pub(super) struct WorkingSet {
    /// The revision of the rows that this transaction writes, once it has begun to write.
    pub(super) revision: Option<u64>,
    /// Whether the rows were loaded from the database, and not recalled from the row cache.
    pub(super) is_loaded: bool,
    pub(super) instances: TrackedRows<u64, InstanceRow>,
    /// The revisions of instances as they are stored.
    pub(super) instance_revisions: HashMap<u64, u64>,
    /// The places of ready instances as they are stored.
    pub(super) places: HashMap<u64, (RouteId, u64)>,
    /// The numbers of the ids that were read; `None` if no instance has the id.
    pub(super) ids: HashMap<String, Option<u64>>,
    pub(super) executions: TrackedRows<(u64, u64), Execution>,
    /// Only appended events.
    pub(super) events: TrackedRows<(u64, u64, u64), Event>,
    /// The first events of executions, as far as read.
    pub(super) first_events: HashMap<(u64, u64), Option<String>>,
    pub(super) mailboxes: HashMap<u64, Mailbox>,
    pub(super) messages: TrackedRows<(u64, Timestamp, u64), Message>,
    pub(super) activities: TrackedRows<u64, Activity>,
    /// The revisions of activities as they are stored.
    pub(super) activity_revisions: HashMap<u64, u64>,
    /// Rows of the row cache that operations read. The cached values may be out of date, so the commit verifies all rows that
    /// it does not write.
    pub(super) unverified_instances: BTreeSet<u64>,
    pub(super) unverified_activities: BTreeSet<u64>,
    /// Instances that are in the row cache with another revision than in the database.
    pub(super) changed_elsewhere: BTreeSet<u64>,
    pub(super) activity_keys: HashMap<(u64, u64, u64), Option<u64>>,
    pub(super) sessions: TrackedRows<String, Session>,
    /// Owners whose leased sessions are all in `sessions`.
    pub(super) session_owners: BTreeSet<String>,
    /// Nodes that end, by name; `None` if no node has the name.
    pub(super) ending_nodes: BTreeMap<String, Option<EndingNode>>,
    /// Deleted nodes whose delete was not sent yet.
    pub(super) deleted_nodes: BTreeSet<u64>,
    pub(super) key_values: TrackedRows<(u64, String), KeyValue>,
    /// Instances of which all keys are in `key_values`.
    pub(super) whole_key_values: HashSet<u64>,
    pub(super) key_value_changes: TrackedRows<(u64, String), KeyValueChange>,
    /// Instances of which all changes are in `key_value_changes`.
    pub(super) whole_key_value_changes: HashSet<u64>,
    pub(super) custom_status: TrackedRows<u64, CustomStatus>,
    pub(super) letters: TrackedRows<u64, Letter>,
    pub(super) ready_routes: ReadyLists<RouteId>,
    pub(super) ready_lanes: ReadyLists<LaneId>,
    pub(super) session_lanes: Option<BTreeSet<(String, LaneId)>>,
    pub(super) ready_session_lanes: BTreeMap<(String, LaneId), ReadUpTo>,
    pub(super) strays_are_read: bool,
    pub(super) due_instances: DueRead,
    pub(super) due_activities: DueRead,
    pub(super) due_removal_task: Option<Option<u64>>,
    /// Whether tasks to remove rows were written.
    pub(super) touched_removals: bool,
    pub(super) families: Families,
    pub(super) old_executions: OldExecutions,
    /// Statements that return no rows.
    pub(super) unsent_statements: Vec<Query>,
    pub(super) numbers: Numbers,
}

/// Numbers drawn from the database.
#[derive(Debug, Default, Clone)]
pub(super) struct Numbers {
    blocks: Vec<Range<u64>>,
}

const DELETE_NODES: &str = "DELETE FROM {s}.node WHERE id = ANY ($1::bigint[])";

/// A transaction that changes no more rows of instances, messages and activities writes them by one statement.
const SMALL_ROWS: usize = 8;

/// How many numbers one draw gives.
pub(super) const NUMBERS_IN_BLOCK: u64 = 1_024;

impl Numbers {
    pub(super) fn next(&mut self) -> Option<u64> {
        let block = self.blocks.iter_mut().find(|block| !block.is_empty())?;
        block.next()
    }

    /// The next one.
    pub(super) fn first(&self) -> Option<u64> {
        self.blocks.iter().find(|block| !block.is_empty()).map(|block| block.start)
    }

    /// How many are left.
    pub(super) fn len(&self) -> usize {
        let left = self.blocks.iter().map(|block| block.end - block.start).sum::<u64>();
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Takes blocks that were drawn after those that are left.
    pub(super) fn add(&mut self, firsts: impl IntoIterator<Item = u64>) {
        self.blocks.retain(|block| !block.is_empty());
        self.blocks.extend(firsts.into_iter().map(|first| first..first.saturating_add(NUMBERS_IN_BLOCK)));
    }

    /// Takes new blocks. The rest of older ones is never used (24.3): it was drawn before some rows were locked, and a message must
    /// not get a lower number than those in its mailbox.
    pub(super) fn replace(&mut self, firsts: Vec<u64>) {
        self.blocks = firsts.into_iter().map(|first| first..first.saturating_add(NUMBERS_IN_BLOCK)).collect();
    }
}

impl WorkingSet {
    /// Statements that bring the database up to date: one that deletes and changes rows, so that no old row conflicts with an
    /// inserted one, and one that inserts, which also draws blocks of numbers. Tables that few transactions change have
    /// statements of their own, because each combination of tables is a statement that the server has to keep.
    pub(super) fn unsent(&mut self, blocks: u64) -> Vec<Query> {
        self.touch_owners();
        let revision = self.revision;
        let mut usual = Writes { revision, ..Writes::default() };
        // 24.2: in this order rows are locked, everywhere: instances, then activities.
        let unverified = self.unverified_instances.iter().filter(|key| !self.instances.is_unsent(key));
        usual.verifies::<InstanceRow>(unverified, &self.instance_revisions);
        usual.changes_unchanged(&self.instances.changes(), &self.instance_revisions, |row| row.number);
        self.add_places(&mut usual);
        usual.upserts(&self.executions.changes(), |key| vec![key.0.into(), key.1.into()]);
        usual.changes(&self.events.changes(), |key| vec![key.0.into(), key.1.into(), key.2.into()]);
        usual.changes(&self.messages.changes(), |key| vec![key.0.into(), key.1.into(), key.2.into()]);
        let unverified = self.unverified_activities.iter().filter(|key| !self.activities.is_unsent(key));
        usual.verifies::<Activity>(unverified, &self.activity_revisions);
        let activities = self.activities.changes();
        usual.changes_unchanged(&activities, &self.activity_revisions, |activity| activity.queued.number);
        let mut rare = Writes { revision, ..Writes::default() };
        rare.changes(&self.sessions.changes(), |key| vec![Value::from(key)]);
        rare.upserts(&self.key_values.changes(), |key| vec![key.0.into(), (&key.1).into()]);
        rare.upserts(&self.key_value_changes.changes(), |key| vec![key.0.into(), (&key.1).into()]);
        rare.upserts(&self.custom_status.changes(), |key| vec![Value::from(*key)]);
        rare.changes(&self.letters.changes(), |key| vec![Value::from(*key)]);
        let deleted_nodes = (!self.deleted_nodes.is_empty())
            .then(|| Query::new(DELETE_NODES, parameters![numbers(&self.deleted_nodes)]));
        let mut queries = std::mem::take(&mut self.unsent_statements);
        queries.extend(deleted_nodes.into_iter().chain(rare.parts.into_iter().map(|part| part.query)));
        let (inserts, others): (Vec<Part>, Vec<Part>) =
            usual.parts.into_iter().partition(|part| part.is_insert && !self.is_small());
        let (first_draws, last_draws) = if inserts.is_empty() { (blocks, 0) } else { (0, blocks) };
        queries.extend(together(others, first_draws));
        queries.extend(together(inserts, last_draws));
        queries
    }

    /// Takes a stored instance, unless it is known.
    pub(super) fn learn_instance(&mut self, row: InstanceRow) {
        let number = row.number;
        if self.instances.knows(&number) {
            return;
        }
        self.places.extend(ready_on(&row).map(|place| (number, place)));
        self.instances.learn(number, Some(row));
    }

    /// Moves instances among those that can be claimed.
    fn add_places(&self, writes: &mut Writes) {
        let changes = self.instances.changes();
        let written = changes.inserted.iter().chain(&changes.updated).map(|row| (row.number, ready_on(row)));
        let deleted = changes.deleted.iter().map(|number| (**number, None));
        let (mut left, mut taken) = (Vec::new(), Vec::new());
        for (instance, place) in written.chain(deleted) {
            let stored = self.places.get(&instance).copied();
            if stored != place {
                left.extend(stored.map(|(route, place)| vec![Value::from(route.0), Value::from(place)]));
                taken.extend(place.map(|(route, place)| ReadyInstance { route, place, instance }));
            }
        }
        if !left.is_empty() {
            writes.push(delete::<ReadyInstance>(left), false, 0);
        }
        if !taken.is_empty() {
            writes.push(insert(&taken, writes.revision), true, 0);
        }
    }

    /// A transaction that writes a row of an instance also writes the instance's row: its revision shows whether any of
    /// them was changed.
    fn touch_owners(&mut self) {
        let executions = self.executions.unsent_keys().map(|key| key.0);
        let messages = self.messages.unsent_keys().map(|key| key.0);
        let key_values =
            self.key_values.unsent_keys().chain(self.key_value_changes.unsent_keys()).map(|key| key.0);
        let statuses = self.custom_status.unsent_keys().copied();
        let owners: BTreeSet<u64> = executions.chain(messages).chain(key_values).chain(statuses).collect();
        owners.into_iter().for_each(|owner| self.touch_instance(owner));
    }

    /// Gives an instance a new revision, unless this transaction has done so before.
    pub(super) fn touch_instance(&mut self, number: u64) {
        if !self.has_sent_instance(number) {
            self.instances.touch(&number);
        }
    }

    /// Whether this transaction has written an instance, sent or not.
    pub(super) fn has_written_instance(&self, number: u64) -> bool {
        self.instances.is_unsent(&number) || self.has_sent_instance(number)
    }

    /// Whether the instance has the revision of this transaction.
    fn has_sent_instance(&self, number: u64) -> bool {
        self.revision.is_some() && self.instance_revisions.get(&number).copied() == self.revision
    }

    /// Whether this transaction has written something that was not sent.
    pub(super) fn has_writes(&self) -> bool {
        let usual = self.instances.is_dirty()
            || self.executions.is_dirty()
            || self.events.is_dirty()
            || self.messages.is_dirty()
            || self.activities.is_dirty();
        let state =
            self.key_values.is_dirty() || self.key_value_changes.is_dirty() || self.custom_status.is_dirty();
        usual || state || self.sessions.is_dirty() || self.letters.is_dirty()
    }

    /// Whether one statement is enough. A statement less is worth one more combination of tables: for a single operation
    /// each statement counts.
    fn is_small(&self) -> bool {
        let instances = self.instances.changes().len();
        let rows = instances + self.messages.changes().len() + self.activities.changes().len();
        rows <= SMALL_ROWS && !self.replaces_rows()
    }

    /// Whether a deleted row may conflict with an inserted one: it may have the same unique key.
    fn replaces_rows(&self) -> bool {
        let messages = self.messages.changes();
        let emptied: HashSet<u64> = messages.deleted.iter().map(|(instance, _, _)| *instance).collect();
        messages.inserted.iter().any(|message| emptied.contains(&message.instance))
            || self.instances.changes().replaces()
            || self.activities.changes().replaces()
            || self.executions.changes().replaces()
            || self.events.changes().replaces()
    }

    /// The earliest time at which an instance or activity of this transaction is due.
    pub(super) fn earliest_due(&self) -> Option<Timestamp> {
        let instances = self.instances.rows().filter_map(InstanceRow::waits_until);
        let activities = self.activities.rows().filter_map(|activity| activity.queued.waits_until);
        instances.chain(activities).min()
    }

    /// Whether it may have changed other due rows: the end of a session, or a stopped removal.
    pub(super) fn writes_rare_due(&self) -> bool {
        self.sessions.rows().next().is_some() || self.touched_removals
    }

    /// Marks all writes as sent.
    pub(super) fn sent(&mut self) {
        self.unverified_instances.clear();
        self.unverified_activities.clear();
        self.deleted_nodes.clear();
        let revision = self.revision;
        let with_revision = |number| Some((number, revision?));
        let instances = self.instances.unsent().filter_map(|row| with_revision(row.number));
        self.instance_revisions.extend(instances);
        self.instances.unsent_keys().for_each(|number| _ = self.places.remove(number));
        let places = self.instances.unsent().filter_map(|row| Some((row.number, ready_on(row)?)));
        self.places.extend(places);
        let activities =
            self.activities.unsent().filter_map(|activity| with_revision(activity.queued.number));
        self.activity_revisions.extend(activities);
        self.instances.sent();
        self.executions.sent();
        self.events.sent();
        self.messages.sent();
        self.activities.sent();
        self.sessions.sent();
        self.key_values.sent();
        self.key_value_changes.sent();
        self.custom_status.sent();
        self.letters.sent();
    }
}
