//! What a transaction has read and written.

mod import;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Range,
};

use duroxide_core::Timestamp;
use duroxide_provider::rules::{InstanceRow, LaneId, RouteId};

use super::ready::waits_until;
use crate::{
    cache::{Cache, Changes},
    connection::Query,
    record::{
        Activity, CustomStatus, Event, Execution, Letter, Message, Record, Session, Setting, SettingChange,
        delete, insert, update, upsert,
    },
    value::Value,
};

/// What is known of a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mailbox {
    /// All its messages are in the working set.
    Whole,
    /// It is too long for that.
    Large,
}

/// How far a list of ready rows was read: those up to a number are in the working set, and locked.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadUpTo {
    pub(super) number: u64,
    /// Whether there are none behind it.
    pub(super) is_end: bool,
}

/// A list of ready rows, by what claims accept: routes, or lanes.
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
        let nothing = counted_none.then_some(ReadUpTo { number: 0, is_end: true });
        self.read.get(&key).copied().or(nothing)
    }
}

#[derive(Debug, Default)]
pub(super) struct WorkingSet {
    pub(super) instances: Cache<u64, InstanceRow>,
    /// The numbers of ids that were looked up; `None` if there is no such instance.
    pub(super) ids: HashMap<String, Option<u64>>,
    pub(super) executions: Cache<(u64, u64), Execution>,
    /// Only what was appended.
    pub(super) events: Cache<(u64, u64, u64), Event>,
    /// The first events of executions that were looked up.
    pub(super) first_events: HashMap<(u64, u64), Option<String>>,
    pub(super) mailboxes: HashMap<u64, Mailbox>,
    pub(super) messages: Cache<(u64, Timestamp, u64), Message>,
    pub(super) activities: Cache<u64, Activity>,
    pub(super) activity_keys: HashMap<(u64, u64, u64), Option<u64>>,
    pub(super) sessions: Cache<String, Session>,
    pub(super) settings: Cache<(u64, String), Setting>,
    /// Instances of which all keys are in `settings`.
    pub(super) whole_settings: HashSet<u64>,
    pub(super) setting_changes: Cache<(u64, String), SettingChange>,
    /// Instances of which all changes are in `setting_changes`.
    pub(super) whole_setting_changes: HashSet<u64>,
    pub(super) custom_status: Cache<u64, CustomStatus>,
    pub(super) letters: Cache<u64, Letter>,
    pub(super) ready_routes: ReadyLists<RouteId>,
    pub(super) ready_lanes: ReadyLists<LaneId>,
    pub(super) session_lanes: Option<BTreeSet<(String, LaneId)>>,
    pub(super) ready_session_lanes: BTreeMap<(String, LaneId), ReadUpTo>,
    pub(super) strays_are_read: bool,
    /// Until when what became due was read.
    pub(super) due_read_at: Option<Timestamp>,
    pub(super) due_activities_read_at: Option<Timestamp>,
    pub(super) due_removal_task: Option<Option<u64>>,
    /// Whether tasks to remove rows were written.
    pub(super) touched_removals: bool,
    pub(super) numbers: Numbers,
}

/// Numbers drawn from the database.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    blocks: Vec<Range<u64>>,
}

/// A transaction that changes no more rows of instances, messages and activities writes them by one statement.
const SMALL_ROWS: usize = 8;

/// How many numbers one draw gives.
pub(super) const NUMBERS_IN_BLOCK: u64 = 1_024;

impl Numbers {
    pub(super) fn next(&mut self) -> Option<u64> {
        let block = self.blocks.iter_mut().find(|block| !block.is_empty())?;
        block.next()
    }

    /// Takes new blocks. What is left of older ones is never used: it was drawn before the rows were locked that were locked
    /// since, and a message must not get a lower number than those that are in its mailbox.
    pub(super) fn replace(&mut self, firsts: Vec<u64>) {
        self.blocks = firsts.into_iter().map(|first| first..first.saturating_add(NUMBERS_IN_BLOCK)).collect();
    }
}

impl WorkingSet {
    /// Statements that bring the database up to date: one that deletes, so that nothing is in the way of what is inserted,
    /// and one that writes. Tables that few transactions change have statements of their own, because each combination of
    /// tables is a statement that the server has to keep.
    pub(super) fn unsent(&self) -> Vec<Query> {
        let mut usual = Writes::default();
        usual.changes(&self.instances.changes(), |key| vec![Value::from(*key)]);
        usual.upserts(&self.executions.changes(), |key| vec![key.0.into(), key.1.into()]);
        usual.changes(&self.events.changes(), |key| vec![key.0.into(), key.1.into(), key.2.into()]);
        usual.changes(&self.messages.changes(), |key| vec![key.0.into(), key.1.into(), key.2.into()]);
        usual.changes(&self.activities.changes(), |key| vec![Value::from(*key)]);
        let mut rare = Writes::default();
        rare.changes(&self.sessions.changes(), |key| vec![Value::from(key)]);
        rare.upserts(&self.settings.changes(), |key| vec![key.0.into(), (&key.1).into()]);
        rare.upserts(&self.setting_changes.changes(), |key| vec![key.0.into(), (&key.1).into()]);
        rare.upserts(&self.custom_status.changes(), |key| vec![Value::from(*key)]);
        rare.changes(&self.letters.changes(), |key| vec![Value::from(*key)]);
        let usual = if self.is_small() && !self.replaces_rows() {
            usual.deletes.extend(usual.writes);
            [Query::together(usual.deletes), None]
        } else {
            [Query::together(usual.deletes), Query::together(usual.writes)]
        };
        usual.into_iter().flatten().chain(rare.deletes).chain(rare.writes).collect()
    }

    /// Whether a statement less is worth one more combination of tables: for a caller who is alone, each statement counts.
    fn is_small(&self) -> bool {
        let instances = self.instances.changes().len();
        instances + self.messages.changes().len() + self.activities.changes().len() <= SMALL_ROWS
    }

    /// Whether a row that is deleted may be in the way of one that is inserted: it may have the same unique key.
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
        let instances = self.instances.rows().filter_map(waits_until);
        let activities = self.activities.rows().filter_map(|activity| activity.queued.waits_until);
        instances.chain(activities).min()
    }

    /// Whether it may have changed what else can be due: the end of a session, or a removal that somebody has left.
    pub(super) fn writes_rare_due(&self) -> bool {
        self.sessions.rows().next().is_some() || self.touched_removals
    }

    /// Everything was sent.
    pub(super) fn sent(&mut self) {
        self.instances.sent();
        self.executions.sent();
        self.events.sent();
        self.messages.sent();
        self.activities.sent();
        self.sessions.sent();
        self.settings.sent();
        self.setting_changes.sent();
        self.custom_status.sent();
        self.letters.sent();
    }
}

/// Statements, by what stands in whose way.
#[derive(Debug, Default)]
struct Writes {
    deletes: Vec<Query>,
    writes: Vec<Query>,
}

impl Writes {
    /// For tables of which it is known whether a row is there.
    fn changes<K, R: Record>(&mut self, changes: &Changes<'_, K, R>, key: fn(&K) -> Vec<Value>) {
        self.deletes(changes, key);
        if !changes.updated.is_empty() {
            self.writes.push(update(changes.updated.iter().copied()));
        }
        if !changes.inserted.is_empty() {
            self.writes.push(insert(changes.inserted.iter().copied()));
        }
    }

    /// For tables that are written without looking whether the row is there.
    fn upserts<K, R: Record>(&mut self, changes: &Changes<'_, K, R>, key: fn(&K) -> Vec<Value>) {
        self.deletes(changes, key);
        if !changes.updated.is_empty() || !changes.inserted.is_empty() {
            self.writes.push(upsert(changes.updated.iter().chain(&changes.inserted).copied()));
        }
    }

    fn deletes<K, R: Record>(&mut self, changes: &Changes<'_, K, R>, key: fn(&K) -> Vec<Value>) {
        if !changes.deleted.is_empty() {
            self.deletes.push(delete::<R>(changes.deleted.iter().map(|deleted| key(deleted))));
        }
    }
}
