//! What is read about many instances at once before they are deleted: their children, the calls that were not carried out yet, and
//! their activities.
//!
//! The instances are locked by the statement before. From then on no other transaction makes a call of theirs, or an activity. A
//! call becomes a child when the child's first turn is committed, without a lock of the parent. So calls are read before children,
//! and the mailboxes that hold the calls are locked before children are told: a child is found as one or the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use duroxide_provider::{
    rules::{Family, InstanceRow},
    store::calling_parent,
};
use tokio_postgres::Row;

use crate::tables::{
    PostgresTables,
    load::{Meaning, NamedInstances, Request, named},
};
use crate::{database_error::DatabaseError, record::Message, value::Columns};

/// Keys of calls begin with the parent. `0` is the character behind `/`. Ids may hold slashes, so the parent is read from the
/// whole key. `OFFSET 0` keeps the planner from reading the calls of all parents.
const CALLS: &str = concat!(
    "SELECT call.instance, call.key FROM {s}.instance AS parent CROSS JOIN LATERAL (
        SELECT message.instance, message.key FROM {s}.message WHERE message.key >= 'ST/' AND message.key < 'ST0'
            AND message.key >= 'ST/' || parent.id || '/' AND message.key < 'ST/' || parent.id || '0' OFFSET 0) AS call
    WHERE parent.number = ANY (ARRAY(",
    named!(),
    ")) ORDER BY call.instance, call.key"
);
const CHILDREN: &str = concat!(
    "SELECT child.number, child.parent FROM {s}.instance AS child WHERE child.parent = ANY (ARRAY(
        SELECT parent.id FROM {s}.instance AS parent WHERE parent.number = ANY (ARRAY(",
    named!(),
    "))))"
);
const ACTIVITIES: &str = concat!(
    "SELECT queued.instance, queued.number FROM unnest(ARRAY(",
    named!(),
    ")) AS wanted (instance) CROSS JOIN LATERAL (SELECT activity.instance, activity.number FROM {s}.activity
        WHERE activity.instance = ANY (ARRAY[wanted.instance]) LIMIT $4) AS queued"
);

/// How many activities of an instance are read.
const ACTIVITIES_READ_MAX: i64 = 256;

#[derive(Debug, Clone, Copy)]
pub(in crate::tables) enum FamilyPart {
    Calls,
    Children,
    Activities,
}

/// What was read in this transaction.
#[derive(Debug, Default)]
pub(in crate::tables) struct Families {
    /// The numbers of the children by the id of their parent.
    children: HashMap<String, BTreeSet<u64>>,
    /// The calls by the id of the parent: the mailbox, and the key.
    calls: HashMap<String, Vec<(u64, String)>>,
    activities: HashMap<u64, StoredActivities>,
}

/// The activities of an instance in the database.
#[derive(Debug, Default)]
struct StoredActivities {
    numbers: Vec<u64>,
    /// Whether there may be more.
    has_more: bool,
}

impl Request {
    /// The families of instances that an earlier statement has locked, in this order.
    pub(in crate::tables) fn families(named: &NamedInstances) -> [Self; 3] {
        [
            Self::new(Meaning::Family(FamilyPart::Calls, named.clone()), CALLS, named.parameters()),
            Self::new(Meaning::Family(FamilyPart::Children, named.clone()), CHILDREN, named.parameters()),
            Self::activities_of(named),
        ]
    }

    /// The numbers of the activities of instances.
    pub(in crate::tables) fn activities_of(named: &NamedInstances) -> Self {
        let mut parameters = named.parameters();
        parameters.push(Box::new(ACTIVITIES_READ_MAX));
        Self::new(Meaning::Family(FamilyPart::Activities, named.clone()), ACTIVITIES, parameters)
    }
}

impl PostgresTables {
    pub(in crate::tables) fn families(&mut self, numbers: &[u64]) -> Result<Vec<Family>, DatabaseError> {
        self.load_families(numbers)?;
        let mut here: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for row in self.set.instances.rows() {
            if let Some(parent) = &row.parent {
                here.entry(parent).or_default().insert(row.number);
            }
        }
        let families = numbers.iter().filter_map(|number| self.set.instances.get(number)).map(|row| {
            let stored = self.set.families.children.get(&row.id).into_iter().flatten();
            let stored = stored.filter(|child| !self.set.instances.is_absent(child));
            let children: BTreeSet<u64> =
                stored.chain(here.get(&*row.id).into_iter().flatten()).copied().collect();
            Family { row: row.clone(), children: children.into_iter().collect() }
        });
        Ok(families.collect())
    }

    /// A call that this transaction makes is in the working set, and the parent was written.
    pub(in crate::tables) fn calls_of(&mut self, parent: &str) -> Result<Vec<(u64, String)>, DatabaseError> {
        let number = self.set.ids.get(parent).copied().flatten();
        if !self.set.families.calls.contains_key(parent) {
            self.load_families(number.as_slice())?;
        }
        let stored = self.set.families.calls.get(parent).into_iter().flatten().cloned();
        let mut calls: BTreeSet<(u64, String)> = stored.collect();
        if number.is_none_or(|number| self.set.has_written_instance(number)) {
            let call = |message: &Message| {
                let key = message.queued.key.clone().filter(|key| calling_parent(key) == Some(parent))?;
                Some((message.instance, key))
            };
            calls.extend(self.set.messages.rows().filter_map(call));
        }
        Ok(calls.into_iter().collect())
    }

    /// Locks instances and loads them with their families, in one round trip for those that are not known. Locks the mailboxes
    /// that hold their calls, too.
    pub(in crate::tables) fn load_families(&mut self, numbers: &[u64]) -> Result<(), DatabaseError> {
        let is_known = |number: &u64| match self.set.instances.get(number) {
            Some(row) => self.set.families.children.contains_key(&row.id),
            None => self.set.instances.knows(number),
        };
        let unknown: BTreeSet<u64> = numbers.iter().copied().filter(|number| !is_known(number)).collect();
        self.load_with(unknown, |named| Vec::from(Request::families(named)))?;
        let rows = numbers.iter().filter_map(|number| self.set.instances.get(number));
        let calls = rows.filter_map(|row| self.set.families.calls.get(&row.id)).flatten();
        let called = calls.map(|(mailbox, _)| *mailbox).filter(|mailbox| !self.set.instances.knows(mailbox));
        self.load_with(called.collect(), |named| vec![Request::activities_of(named)])
    }

    /// Locks and loads instances, and what else is requested of them.
    fn load_with(
        &mut self,
        numbers: BTreeSet<u64>,
        more: fn(&NamedInstances) -> Vec<Request>,
    ) -> Result<(), DatabaseError> {
        if numbers.is_empty() {
            return Ok(());
        }
        let named = NamedInstances { numbers, ..NamedInstances::default() };
        let mut requests = Vec::from(Request::instances(&named, self.mailbox_loaded_max));
        requests.extend(more(&named));
        requests.push(Request::numbers(1));
        self.load(requests)
    }

    /// A request for the activities of the mailboxes in the working set, and of those `asked` for.
    pub(in crate::tables) fn activities_of_mailboxes(&self, asked: Option<u64>) -> Request {
        let mailboxes = self.set.instances.rows().filter(|row| !row.known).map(|row| row.number);
        let numbers = mailboxes.chain(asked).collect();
        Request::activities_of(&NamedInstances { numbers, ..NamedInstances::default() })
    }

    /// Whether an instance has activities, if that was read.
    pub(in crate::tables) fn known_activities(&self, instance: u64) -> Option<bool> {
        let stored = self.set.families.activities.get(&instance)?;
        let is_left = stored.numbers.iter().any(|number| !self.set.activities.is_absent(number));
        (is_left || !stored.has_more).then_some(is_left)
    }

    /// A statement has deleted all activities of these instances.
    pub(in crate::tables) fn forget_stored_activities(&mut self, instances: &BTreeSet<u64>) {
        let none = |instance: &u64| (*instance, StoredActivities::default());
        self.set.families.activities.extend(instances.iter().map(none));
    }

    pub(in crate::tables) fn take_family(
        &mut self,
        part: FamilyPart,
        named: &NamedInstances,
        rows: &[Row],
    ) -> Result<(), DatabaseError> {
        match part {
            FamilyPart::Calls => self.take_calls(named, rows),
            FamilyPart::Children => self.take_children(named, rows),
            FamilyPart::Activities => self.take_activities_of(named, rows),
        }
    }

    fn take_calls(&mut self, named: &NamedInstances, rows: &[Row]) -> Result<(), DatabaseError> {
        for id in self.ids_of(named) {
            self.set.families.calls.entry(id).or_default();
        }
        for row in rows {
            let (mailbox, key) = (row.number("instance")?, row.column::<String>("key")?);
            if let Some(calls) =
                calling_parent(&key).and_then(|parent| self.set.families.calls.get_mut(parent))
            {
                calls.push((mailbox, key));
            }
        }
        Ok(())
    }

    fn take_children(&mut self, named: &NamedInstances, rows: &[Row]) -> Result<(), DatabaseError> {
        for id in self.ids_of(named) {
            self.set.families.children.entry(id).or_default();
        }
        for row in rows {
            let (number, parent) = (row.number("number")?, row.column::<String>("parent")?);
            self.set.families.children.entry(parent).or_default().insert(number);
        }
        Ok(())
    }

    fn take_activities_of(&mut self, named: &NamedInstances, rows: &[Row]) -> Result<(), DatabaseError> {
        let by_id = named.ids.iter().filter_map(|id| self.set.ids.get(id).copied().flatten());
        for instance in named.numbers.iter().copied().chain(by_id).collect::<Vec<_>>() {
            self.set.families.activities.insert(instance, StoredActivities::default());
        }
        for row in rows {
            let stored = self.set.families.activities.entry(row.number("instance")?).or_default();
            stored.numbers.push(row.number("number")?);
            stored.has_more = stored.numbers.len() as i64 >= ACTIVITIES_READ_MAX;
        }
        Ok(())
    }

    /// The ids of named instances.
    fn ids_of(&self, named: &NamedInstances) -> Vec<String> {
        let by_number = named.numbers.iter().filter_map(|number| self.set.instances.get(number));
        by_number.map(|row: &InstanceRow| row.id.clone()).chain(named.ids.iter().cloned()).collect()
    }
}
