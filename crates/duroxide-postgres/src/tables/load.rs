//! Statements that lock and load rows, and what their answers mean for the working set.
//!
//! Statements of one round trip run one after the other, and under READ COMMITTED each sees what was committed when it
//! began. So a statement that locks instances stands in front of those that read what belongs to them: once an instance is
//! locked, nobody else changes its mailbox or its execution. Of rows whose instance was not locked by an earlier statement
//! nothing is taken.

use std::collections::{BTreeMap, BTreeSet};

use duroxide_core::Timestamp;
use duroxide_provider::rules::{InstanceRow, LaneId, RouteId};
use tokio_postgres::Row;

use super::{
    PostgresTables, numbers,
    working_set::{Mailbox, ReadUpTo},
};
use crate::{
    connection::{Query, parameters},
    fault::Trouble,
    record::{Activity, CustomStatus, Execution, Message, Session, Setting, SettingChange, read_all},
    value::{Columns, limit, time},
};

/// The instances that a batch names: by number, by id, or as the owner of an activity.
macro_rules! named {
    () => {
        "SELECT unnest($1::bigint[])
        UNION SELECT known.number FROM {s}.instance AS known WHERE known.id = ANY ($2::text[])
        UNION SELECT activity.instance FROM {s}.activity WHERE activity.number = ANY ($3::bigint[])"
    };
}

/// In the order of their numbers, so that two nodes never wait for each other in a circle.
const LOCK_INSTANCES: &str = concat!(
    "SELECT {columns instance} FROM {s}.instance WHERE instance.number IN (",
    named!(),
    ") ORDER BY instance.number FOR UPDATE OF instance"
);
const EXECUTIONS: &str = concat!(
    "SELECT {columns execution} FROM {s}.instance JOIN {s}.execution
        ON execution.instance = instance.number AND execution.execution_id = instance.execution_id
    WHERE instance.number IN (",
    named!(),
    ")"
);
/// One message more than are kept shows that a mailbox is too long. Small texts are brought along if they are wanted.
const MESSAGES: &str = concat!(
    "SELECT {head message}, octet_length(message.data)::bigint AS bytes,
        CASE WHEN octet_length(message.data) <= $5::bigint THEN message.data END AS data
    FROM (",
    named!(),
    ") AS named (number) CROSS JOIN LATERAL (
        SELECT * FROM {s}.message WHERE message.instance = named.number
        ORDER BY message.due_at, message.number LIMIT $4) AS message"
);
const LOCK_ACTIVITIES: &str =
    "SELECT {head activity} FROM {s}.activity WHERE activity.number = ANY ($1::bigint[])
    ORDER BY activity.number FOR UPDATE";
const LOCK_ACTIVITIES_BY_KEY: &str = "SELECT {head activity}
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS wanted (instance, execution_id, activity_id)
    JOIN {s}.activity ON activity.instance = wanted.instance AND activity.execution_id = wanted.execution_id
        AND activity.activity_id = wanted.activity_id
    ORDER BY activity.number FOR UPDATE OF activity";
const LOCK_SESSIONS_OF_ACTIVITIES: &str = "SELECT {columns session} FROM {s}.session
    WHERE session.id IN (SELECT activity.session_id FROM {s}.activity WHERE activity.number = ANY ($1::bigint[]))
    ORDER BY session.id FOR UPDATE OF session";
const SETTING_CHANGES: &str =
    "SELECT {columns kv_change} FROM {s}.kv_change WHERE kv_change.instance = ANY ($1::bigint[])";
const SETTING_KEYS: &str = "SELECT instance, key FROM {s}.kv WHERE instance = ANY ($1::bigint[])";
const CUSTOM_STATUS: &str = "SELECT {columns custom_status} FROM {s}.custom_status
    WHERE custom_status.instance = ANY ($1::bigint[])";
/// None is drawn before the rows are locked that the numbers order.
const DRAW_NUMBERS: &str = "SELECT nextval('{s}.number_block') AS first FROM generate_series(1, $1::bigint)";

/// Texts up to this length are loaded with their message.
pub(super) const DATA_BYTES_MAX: i64 = 64 << 10;

/// Instances to lock and load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named {
    pub(crate) numbers: BTreeSet<u64>,
    pub(crate) ids: BTreeSet<String>,
    /// Activities whose instances are meant.
    pub(crate) activities: BTreeSet<u64>,
}

impl Named {
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.ids.is_empty() && self.activities.is_empty()
    }

    fn parameters(&self) -> Vec<crate::connection::Parameter> {
        let ids: Vec<String> = self.ids.iter().cloned().collect();
        parameters![numbers(&self.numbers), ids, numbers(&self.activities)]
    }
}

/// A statement and what its answer means.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) query: Query,
    pub(super) meaning: Meaning,
}

#[derive(Debug)]
pub(super) enum Meaning {
    /// Instances by name: what is not there does not exist.
    Instances(Named),
    /// Instances that somebody may claim, on these routes, at most so many on each.
    ReadyInstances(Vec<RouteId>, usize),
    /// All stray mailboxes.
    Strays,
    /// All instances that were due at this time, or when the transaction began.
    DueInstances(Option<Timestamp>),
    Executions,
    Messages,
    /// Activities by number: what is not there does not exist.
    Activities(BTreeSet<u64>),
    /// Activities by key.
    ActivitiesByKey(BTreeSet<(u64, u64, u64)>),
    ReadyActivities(Vec<LaneId>, usize),
    DueActivities(Option<Timestamp>),
    SessionsOfActivities(BTreeSet<u64>),
    /// All changed keys of these instances.
    SettingChanges(BTreeSet<u64>),
    /// All keys under which these instances have a value.
    SettingKeys(BTreeSet<u64>),
    CustomStatus(BTreeSet<u64>),
    FirstEvents(BTreeSet<String>),
    /// Where instances are ready, and how many.
    RouteCounts,
    LaneCounts,
    SessionLanes,
    DueRemovalTask,
    Routes,
    Lanes,
    Numbers,
    /// The statement has no answer that matters here.
    Nothing,
}

impl Request {
    pub(super) fn new(
        meaning: Meaning,
        sql: &'static str,
        parameters: Vec<crate::connection::Parameter>,
    ) -> Self {
        Self { query: Query::new(sql, parameters), meaning }
    }

    /// Locks instances, and loads their current executions and the heads of their messages.
    pub(super) fn instances(named: &Named, mailbox_max: usize, with_data: bool) -> [Self; 3] {
        let mut of_messages = named.parameters();
        let data_bytes_max = if with_data { DATA_BYTES_MAX } else { -1 };
        of_messages.extend(parameters![limit(mailbox_max.saturating_add(1)), data_bytes_max]);
        [
            Self::new(Meaning::Instances(named.clone()), LOCK_INSTANCES, named.parameters()),
            Self::new(Meaning::Executions, EXECUTIONS, named.parameters()),
            Self::new(Meaning::Messages, MESSAGES, of_messages),
        ]
    }

    pub(super) fn activities(activities: &BTreeSet<u64>) -> Self {
        let parameters = parameters![numbers(activities)];
        Self::new(Meaning::Activities(activities.clone()), LOCK_ACTIVITIES, parameters)
    }

    pub(super) fn activities_by_key(keys: &BTreeSet<(u64, u64, u64)>) -> Self {
        let parameters = parameters![
            numbers(keys.iter().map(|(instance, _, _)| instance)),
            numbers(keys.iter().map(|(_, execution, _)| execution)),
            numbers(keys.iter().map(|(_, _, activity)| activity)),
        ];
        Self::new(Meaning::ActivitiesByKey(keys.clone()), LOCK_ACTIVITIES_BY_KEY, parameters)
    }

    pub(super) fn sessions_of(activities: &BTreeSet<u64>) -> Self {
        let parameters = parameters![numbers(activities)];
        Self::new(Meaning::SessionsOfActivities(activities.clone()), LOCK_SESSIONS_OF_ACTIVITIES, parameters)
    }

    pub(super) fn setting_changes(instances: &BTreeSet<u64>) -> Self {
        let parameters = parameters![numbers(instances)];
        Self::new(Meaning::SettingChanges(instances.clone()), SETTING_CHANGES, parameters)
    }

    pub(super) fn setting_keys(instances: &BTreeSet<u64>) -> Self {
        Self::new(Meaning::SettingKeys(instances.clone()), SETTING_KEYS, parameters![numbers(instances)])
    }

    pub(super) fn custom_status(instances: &BTreeSet<u64>) -> Self {
        Self::new(Meaning::CustomStatus(instances.clone()), CUSTOM_STATUS, parameters![numbers(instances)])
    }

    /// Draws blocks of numbers.
    pub(super) fn numbers(blocks: i64) -> Self {
        Self::new(Meaning::Numbers, DRAW_NUMBERS, parameters![blocks])
    }
}

impl PostgresTables {
    /// Sends requests in one round trip and takes the answers into the working set. Nothing that was written is sent: rows
    /// that are not in the working set were not written.
    pub(super) fn load(&mut self, requests: Vec<Request>) -> Result<(), Trouble> {
        let (queries, meanings): (Vec<_>, Vec<_>) =
            requests.into_iter().map(|request| (request.query, request.meaning)).unzip();
        let answers = self.send(&queries)?;
        self.take_answers(meanings, answers)
    }

    pub(super) fn take_answers(
        &mut self,
        meanings: Vec<Meaning>,
        answers: Vec<Vec<Row>>,
    ) -> Result<(), Trouble> {
        let mut found_by_name = BTreeSet::new();
        for (meaning, rows) in meanings.into_iter().zip(answers) {
            self.take_answer(meaning, &rows, &mut found_by_name)?;
        }
        // The statements behind the lock have told everything of these.
        for number in found_by_name {
            self.complete_details(number);
        }
        Ok(())
    }

    /// Locks and loads instances that were not foreseen. Numbers are drawn anew, behind the lock.
    pub(super) fn load_instances(&mut self, named: &Named, with_data: bool) -> Result<(), Trouble> {
        let mut requests: Vec<Request> =
            Request::instances(named, self.mailbox_loaded_max, with_data).into_iter().collect();
        if !named.numbers.is_empty() {
            // Whether a commit ends the instance is not known here, and its end is told with the custom status.
            requests.push(Request::custom_status(&named.numbers));
        }
        requests.push(Request::numbers(1));
        self.load(requests)
    }

    fn take_answer(
        &mut self,
        meaning: Meaning,
        rows: &[Row],
        found_by_name: &mut BTreeSet<u64>,
    ) -> Result<(), Trouble> {
        match meaning {
            Meaning::Instances(named) => self.take_named(&named, rows, found_by_name)?,
            Meaning::ReadyInstances(routes, limit) => self.take_ready_instances(&routes, limit, rows)?,
            Meaning::Strays => {
                self.take_instances(rows)?;
                self.set.strays_are_read = true;
            }
            Meaning::DueInstances(at) => {
                self.take_instances(rows)?;
                self.set.due_read_at = Some(at.unwrap_or(Timestamp::MAX));
            }
            Meaning::Executions => self.take_executions(rows)?,
            Meaning::Messages => self.take_messages(rows)?,
            Meaning::Activities(asked) => {
                self.take_activities(rows)?;
                asked.into_iter().for_each(|number| self.set.activities.learn(number, None));
            }
            Meaning::ActivitiesByKey(asked) => {
                self.take_activities(rows)?;
                asked.into_iter().for_each(|key| {
                    self.set.activity_keys.entry(key).or_insert(None);
                });
            }
            Meaning::ReadyActivities(lanes, limit) => self.take_ready_activities(&lanes, limit, rows)?,
            Meaning::DueActivities(at) => {
                self.take_activities(rows)?;
                self.set.due_activities_read_at = Some(at.unwrap_or(Timestamp::MAX));
            }
            Meaning::SessionsOfActivities(asked) => self.take_sessions_of(&asked, rows)?,
            Meaning::SettingChanges(instances) => {
                for change in read_all::<SettingChange>(rows)? {
                    self.set.setting_changes.learn((change.instance, change.key.clone()), Some(change));
                }
                self.set.whole_setting_changes.extend(instances);
            }
            Meaning::SettingKeys(instances) => {
                for row in rows {
                    let (instance, key) = (row.number("instance")?, row.column::<String>("key")?);
                    let setting = Setting { instance, key: key.clone(), entry: None };
                    self.set.settings.learn((instance, key), Some(setting));
                }
                self.set.whole_settings.extend(instances);
            }
            Meaning::CustomStatus(instances) => {
                for status in read_all::<CustomStatus>(rows)? {
                    self.set.custom_status.learn(status.instance, Some(status));
                }
                instances.into_iter().for_each(|instance| self.set.custom_status.learn(instance, None));
            }
            Meaning::FirstEvents(ids) => self.take_first_events(&ids, rows)?,
            Meaning::RouteCounts => {
                self.routes.learn(rows)?;
                self.set.ready_routes.counts = Some(counts(rows, RouteId)?);
            }
            Meaning::LaneCounts => {
                self.lanes.learn(rows)?;
                self.set.ready_lanes.counts = Some(counts(rows, LaneId)?);
            }
            Meaning::SessionLanes => {
                let read = |row: &Row| Ok((row.column("session_id")?, LaneId(row.number("lane")?)));
                self.set.session_lanes = Some(rows.iter().map(read).collect::<Result<_, Trouble>>()?);
            }
            Meaning::DueRemovalTask => {
                let task = rows.first().map(|row| row.number("number")).transpose()?;
                self.set.due_removal_task = Some(task);
            }
            Meaning::Routes => self.routes.learn(rows)?,
            Meaning::Lanes => self.lanes.learn(rows)?,
            Meaning::Numbers => {
                let firsts = rows.iter().map(|row| row.number("first")).collect::<Result<_, _>>()?;
                self.set.numbers.replace(firsts);
            }
            Meaning::Nothing => {}
        }
        Ok(())
    }

    /// Takes instances that the statement has locked.
    pub(super) fn take_instances(&mut self, rows: &[Row]) -> Result<Vec<u64>, Trouble> {
        let instances = read_all::<InstanceRow>(rows)?;
        Ok(instances
            .into_iter()
            .map(|row| {
                let number = row.number;
                self.set.ids.entry(row.id.clone()).or_insert(Some(number));
                self.set.instances.learn(number, Some(row));
                number
            })
            .collect())
    }

    fn take_named(
        &mut self,
        named: &Named,
        rows: &[Row],
        found_by_name: &mut BTreeSet<u64>,
    ) -> Result<(), Trouble> {
        found_by_name.extend(self.take_instances(rows)?);
        named.numbers.iter().for_each(|number| self.set.instances.learn(*number, None));
        for id in &named.ids {
            self.set.ids.entry(id.clone()).or_insert(None);
        }
        Ok(())
    }

    /// Takes executions of instances that are locked.
    fn take_executions(&mut self, rows: &[Row]) -> Result<(), Trouble> {
        for execution in read_all::<Execution>(rows)? {
            if self.set.instances.get(&execution.instance).is_some() {
                let key = (execution.instance, execution.execution_id);
                self.set.executions.learn(key, Some(execution));
            }
        }
        Ok(())
    }

    /// Takes messages of instances that are locked and whose mailboxes are not known.
    fn take_messages(&mut self, rows: &[Row]) -> Result<(), Trouble> {
        let mut mailboxes: BTreeMap<u64, Vec<Message>> = BTreeMap::new();
        for message in read_all::<Message>(rows)? {
            mailboxes.entry(message.instance).or_default().push(message);
        }
        for (instance, messages) in mailboxes {
            if self.set.instances.get(&instance).is_none() || self.set.mailboxes.contains_key(&instance) {
                continue;
            }
            if messages.len() > self.mailbox_loaded_max {
                self.set.mailboxes.insert(instance, Mailbox::Large);
                continue;
            }
            self.set.mailboxes.insert(instance, Mailbox::Whole);
            for message in messages {
                self.set.messages.learn(message.key(), Some(message));
            }
        }
        Ok(())
    }

    /// Whatever was not found of an instance that was loaded whole is not there.
    fn complete_details(&mut self, instance: u64) {
        self.set.mailboxes.entry(instance).or_insert(Mailbox::Whole);
        if let Some(row) = self.set.instances.get(&instance) {
            self.set.executions.learn((instance, row.execution_id), None);
        }
    }

    pub(super) fn take_activities(&mut self, rows: &[Row]) -> Result<Vec<u64>, Trouble> {
        let activities = read_all::<Activity>(rows)?;
        Ok(activities
            .into_iter()
            .map(|activity| {
                let number = activity.queued.number;
                self.set.activity_keys.entry(activity.key()).or_insert(Some(number));
                if let (Some(known), Some(data)) = (self.set.activities.get_mut(&number), &activity.data) {
                    known.data.get_or_insert_with(|| data.clone());
                }
                self.set.activities.learn(number, Some(activity));
                number
            })
            .collect())
    }

    fn take_sessions_of(&mut self, activities: &BTreeSet<u64>, rows: &[Row]) -> Result<(), Trouble> {
        for session in read_all::<Session>(rows)? {
            self.set.sessions.learn(session.0.id.clone(), Some(session));
        }
        let asked = activities.iter().filter_map(|number| self.set.activities.get(number));
        let ids: Vec<String> = asked.filter_map(|activity| activity.queued.session_id.clone()).collect();
        ids.into_iter().for_each(|id| self.set.sessions.learn(id, None));
        Ok(())
    }

    fn take_first_events(&mut self, ids: &BTreeSet<String>, rows: &[Row]) -> Result<(), Trouble> {
        for row in rows {
            let key = (row.number("instance")?, row.number("execution_id")?);
            self.set.first_events.entry(key).or_insert(Some(row.column("data")?));
        }
        // An instance that was locked before and has no row in the answer has no such event.
        for number in ids.iter().filter_map(|id| self.set.ids.get(id).copied().flatten()) {
            self.set.first_events.entry((number, duroxide_core::INITIAL_EXECUTION_ID)).or_insert(None);
        }
        Ok(())
    }
}

fn counts<K: Ord>(rows: &[Row], key: fn(u64) -> K) -> Result<BTreeMap<K, usize>, Trouble> {
    let read = |row: &Row| {
        let ready: i64 = row.column("ready")?;
        Ok((key(row.number("id")?), usize::try_from(ready).unwrap_or_default()))
    };
    let all: BTreeMap<K, usize> = rows.iter().map(read).collect::<Result<_, Trouble>>()?;
    Ok(all.into_iter().filter(|(_, ready)| *ready > 0).collect())
}

/// How far a list was read that begins with these numbers and was cut off at a limit.
pub(super) fn read_up_to(found: &[u64], limit: usize) -> ReadUpTo {
    ReadUpTo { number: found.iter().max().copied().unwrap_or_default(), is_end: found.len() < limit }
}

/// A time in a row of the answer.
pub(super) fn time_in(row: &Row, name: &str) -> Result<Timestamp, Trouble> {
    row.column::<i64>(name).map(time)
}
