//! Stores the answers of loading statements in the working set.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use duroxide_provider::rules::{InstanceRow, LaneId, RouteId};
use tokio_postgres::Row;

use super::{Meaning, NamedInstances, Request};
use crate::{
    database_error::DatabaseError,
    record::{
        Activity, CustomStatus, Execution, KeyValue, KeyValueChange, Message, Record, Session, read_all,
    },
    tables::{
        PostgresTables,
        working_set::{DueRead, Mailbox, WorkingSet},
    },
    value::Columns,
};

impl PostgresTables {
    /// Sends requests in one round trip and takes the answers into the working set. Nothing that was written is sent: rows
    /// that are not in the working set were not written.
    pub(in crate::tables) fn load(&mut self, requests: Vec<Request>) -> Result<(), DatabaseError> {
        let (queries, meanings): (Vec<_>, Vec<_>) =
            requests.into_iter().map(|request| (request.query, request.meaning)).unzip();
        let answers = self.send(&queries)?;
        self.take_answers(meanings, answers)
    }

    pub(in crate::tables) fn take_answers(
        &mut self,
        meanings: Vec<Meaning>,
        answers: Vec<Vec<Row>>,
    ) -> Result<(), DatabaseError> {
        meanings.into_iter().zip(answers).try_for_each(|(meaning, rows)| self.take_answer(meaning, &rows))
    }

    /// Locks and loads instances that were not foreseen. Numbers are drawn anew, behind the lock.
    pub(in crate::tables) fn load_instances(&mut self, named: &NamedInstances) -> Result<(), DatabaseError> {
        let mut requests: Vec<Request> =
            Request::instances(named, self.mailbox_loaded_max).into_iter().collect();
        if !named.numbers.is_empty() && self.optional_reads.custom_status {
            // A commit may end the instance, and the notification of an end carries the custom status.
            requests.push(Request::custom_status(&named.numbers));
        }
        requests.push(Request::numbers(1));
        self.load(requests)
    }

    fn take_answer(&mut self, meaning: Meaning, rows: &[Row]) -> Result<(), DatabaseError> {
        match meaning {
            Meaning::Instances(named) => self.take_named(&named, rows)?,
            Meaning::CachedInstances(cached) => self.take_cached(cached, rows)?,
            Meaning::ReadyInstances(routes, limit) => self.take_ready_instances(&routes, limit, rows)?,
            Meaning::Strays => {
                self.take_instances(rows)?;
                self.set.strays_are_read = true;
            }
            Meaning::DueInstances(at) => {
                self.take_instances(rows)?;
                self.set.due_instances = DueRead::at(at);
            }
            Meaning::InstanceRows => self.take_instance_rows(rows)?,
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
                self.set.due_activities = DueRead::at(at);
            }
            Meaning::SessionsOfActivities(asked) => self.take_sessions_of(&asked, rows)?,
            Meaning::SessionsOfOwners(owners) => {
                self.take_sessions(rows)?;
                self.set.session_owners.extend(owners);
            }
            Meaning::SessionsOfReady => self.take_sessions_of_ready(rows)?,
            Meaning::ReadyInSessions(at_most) => self.take_ready_in_sessions(at_most, rows)?,
            Meaning::EndingNode(name) => self.take_ending_node(name, rows)?,
            Meaning::KeyValueChanges(instances) => self.take_key_value_changes(instances, rows)?,
            Meaning::KeyValueKeys(instances) => self.take_key_value_keys(instances, rows)?,
            Meaning::CustomStatus(instances) => self.take_custom_statuses(instances, rows)?,
            Meaning::FirstEvents(ids) => self.take_first_events(&ids, rows)?,
            Meaning::Family(part, named) => self.take_family(part, &named, rows)?,
            Meaning::Letters(asked) => self.take_letters(asked, rows)?,
            Meaning::LetterNumbers => self.add_letter_numbers(rows)?,
            Meaning::RouteCounts => self.take_route_counts(rows)?,
            Meaning::LaneCounts => self.take_lane_counts(rows)?,
            Meaning::SessionLanes => {
                let read = |row: &Row| Ok((row.column("session_id")?, LaneId(row.number("lane")?)));
                self.set.session_lanes = Some(rows.iter().map(read).collect::<Result<_, DatabaseError>>()?);
            }
            Meaning::DueRemovalTask => {
                let task = rows.first().map(|row| row.number("number")).transpose()?;
                self.set.due_removal_task = Some(task);
            }
            Meaning::Routes => self.routes.learn(rows)?,
            Meaning::Lanes => self.lanes.learn(rows)?,
            Meaning::Numbers => {
                let firsts: Vec<u64> =
                    rows.iter().map(|row| row.number("first")).collect::<Result<_, _>>()?;
                self.scan_starts.take_drawn(firsts.iter().min().copied());
                self.set.numbers.replace(firsts);
            }
            Meaning::ScanStarts => self.scan_starts.take(rows)?,
            Meaning::Nothing => {}
        }
        Ok(())
    }

    /// Takes instances that the statement has locked.
    pub(in crate::tables) fn take_instances(&mut self, rows: &[Row]) -> Result<Vec<u64>, DatabaseError> {
        let instances = read_all::<InstanceRow>(rows)?;
        self.learn_revisions(rows, |set| &mut set.instance_revisions)?;
        Ok(instances
            .into_iter()
            .map(|row| {
                let number = row.number;
                self.set.ids.entry(row.id.clone()).or_insert(Some(number));
                self.set.learn_instance(row);
                number
            })
            .collect())
    }

    /// Rows that are locked or were written by this transaction keep their revision.
    fn learn_revisions(
        &mut self,
        rows: &[Row],
        of: fn(&mut WorkingSet) -> &mut HashMap<u64, u64>,
    ) -> Result<(), DatabaseError> {
        for row in rows {
            of(&mut self.set).entry(row.number("number")?).or_insert(row.number("revision")?);
        }
        Ok(())
    }

    /// Takes unchanged instances out of the row cache. Now they are locked.
    fn take_cached(&mut self, cached: BTreeMap<u64, u64>, rows: &[Row]) -> Result<(), DatabaseError> {
        let read = |row: &Row| Ok((row.number("number")?, row.number("revision")?));
        let stored: HashMap<u64, u64> = rows.iter().map(read).collect::<Result<_, DatabaseError>>()?;
        for (number, revision) in cached {
            if stored.get(&number) == Some(&revision) {
                self.row_cache.recall_instance(number, &mut self.set);
            } else {
                self.set.changed_elsewhere.insert(number);
            }
        }
        Ok(())
    }

    fn take_named(&mut self, named: &NamedInstances, rows: &[Row]) -> Result<(), DatabaseError> {
        self.take_instances(rows)?;
        named.numbers.iter().for_each(|number| self.set.instances.learn(*number, None));
        for id in &named.ids {
            self.set.ids.entry(id.clone()).or_insert(None);
        }
        Ok(())
    }

    /// Takes the counts of ready instances by route. Without stray mailboxes none have to be read.
    fn take_route_counts(&mut self, rows: &[Row]) -> Result<(), DatabaseError> {
        let has_strays = rows.iter().any(|row| row.column("has_strays").unwrap_or(true));
        self.set.strays_are_read |= !has_strays;
        let routes = rows.iter().filter(|row| !matches!(row.column::<Option<i64>>("id"), Ok(None)));
        self.routes.learn(routes.clone())?;
        let counts = counts(routes, RouteId)?;
        self.optional_reads.ready_instances = !counts.is_empty();
        self.set.ready_routes.counts = Some(counts);
        Ok(())
    }

    fn take_lane_counts(&mut self, rows: &[Row]) -> Result<(), DatabaseError> {
        self.lanes.learn(rows)?;
        let counts = counts(rows, LaneId)?;
        self.optional_reads.ready_activities = !counts.is_empty();
        self.set.ready_lanes.counts = Some(counts);
        Ok(())
    }

    /// Takes the rows of locked instances.
    fn take_instance_rows(&mut self, rows: &[Row]) -> Result<(), DatabaseError> {
        let mut mailboxes: BTreeMap<u64, Vec<Message>> = BTreeMap::new();
        for row in rows {
            let instance = row.number("instance")?;
            if self.set.instances.get(&instance).is_none() {
                continue;
            }
            let messages = mailboxes.entry(instance).or_default();
            if messages.is_empty() {
                self.take_details(instance, row)?;
            }
            if row.column("has_message")? {
                messages.push(Message::read(row)?);
            }
        }
        mailboxes.into_iter().for_each(|(instance, messages)| self.take_mailbox(instance, messages));
        Ok(())
    }

    /// Takes the current execution, and notes the tables without rows of the instance.
    fn take_details(&mut self, instance: u64, row: &Row) -> Result<(), DatabaseError> {
        let execution = row.column::<bool>("has_execution")?.then(|| Execution::read(row)).transpose()?;
        self.set.executions.learn((instance, row.number("execution_id")?), execution);
        if row.column("has_custom_status")? {
            self.optional_reads.custom_status = true;
        } else {
            self.set.custom_status.learn(instance, None);
        }
        if row.column("has_key_value_changes")? {
            self.optional_reads.key_value_changes = true;
        } else {
            self.set.whole_key_value_changes.insert(instance);
        }
        Ok(())
    }

    /// Takes a mailbox that is not known.
    fn take_mailbox(&mut self, instance: u64, messages: Vec<Message>) {
        if self.set.mailboxes.contains_key(&instance) {
            return;
        }
        if messages.len() > self.mailbox_loaded_max {
            self.set.mailboxes.insert(instance, Mailbox::Large);
            return;
        }
        self.set.mailboxes.insert(instance, Mailbox::Whole);
        for message in messages {
            self.set.messages.learn(message.key(), Some(message));
        }
    }

    pub(in crate::tables) fn take_activities(&mut self, rows: &[Row]) -> Result<Vec<u64>, DatabaseError> {
        let activities = read_all::<Activity>(rows)?;
        self.learn_revisions(rows, |set| &mut set.activity_revisions)?;
        Ok(activities
            .into_iter()
            .map(|activity| {
                let number = activity.queued.number;
                self.optional_reads.sessions |= activity.queued.session_id.is_some();
                self.set.activity_keys.entry(activity.key()).or_insert(Some(number));
                if let (Some(known), Some(data)) = (self.set.activities.get_mut(&number), &activity.data) {
                    known.data.get_or_insert_with(|| data.clone());
                }
                self.set.activities.learn(number, Some(activity));
                number
            })
            .collect())
    }

    fn take_sessions(&mut self, rows: &[Row]) -> Result<(), DatabaseError> {
        for session in read_all::<Session>(rows)? {
            self.set.sessions.learn(session.0.id.clone(), Some(session));
        }
        Ok(())
    }

    fn take_sessions_of_ready(&mut self, rows: &[Row]) -> Result<(), DatabaseError> {
        self.take_sessions(rows)?;
        let asked = self.set.session_lanes.iter().flatten();
        asked.for_each(|(session, _)| self.set.sessions.learn(session.clone(), None));
        Ok(())
    }

    fn take_sessions_of(&mut self, activities: &BTreeSet<u64>, rows: &[Row]) -> Result<(), DatabaseError> {
        self.take_sessions(rows)?;
        let asked = activities.iter().filter_map(|number| self.set.activities.get(number));
        let ids: Vec<String> = asked.filter_map(|activity| activity.queued.session_id.clone()).collect();
        ids.into_iter().for_each(|id| self.set.sessions.learn(id, None));
        Ok(())
    }

    fn take_first_events(&mut self, ids: &BTreeSet<String>, rows: &[Row]) -> Result<(), DatabaseError> {
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

    fn take_key_value_changes(
        &mut self,
        instances: BTreeSet<u64>,
        rows: &[Row],
    ) -> Result<(), DatabaseError> {
        for change in read_all::<KeyValueChange>(rows)? {
            self.set.key_value_changes.learn((change.instance, change.key.clone()), Some(change));
        }
        self.set.whole_key_value_changes.extend(instances);
        Ok(())
    }

    fn take_key_value_keys(&mut self, instances: BTreeSet<u64>, rows: &[Row]) -> Result<(), DatabaseError> {
        for row in rows {
            let (instance, key) = (row.number("instance")?, row.column::<String>("key")?);
            let key_value = KeyValue { instance, key: key.clone(), entry: None };
            self.set.key_values.learn((instance, key), Some(key_value));
        }
        self.set.whole_key_values.extend(instances);
        Ok(())
    }

    fn take_custom_statuses(&mut self, instances: BTreeSet<u64>, rows: &[Row]) -> Result<(), DatabaseError> {
        for status in read_all::<CustomStatus>(rows)? {
            self.set.custom_status.learn(status.instance, Some(status));
        }
        instances.into_iter().for_each(|instance| self.set.custom_status.learn(instance, None));
        Ok(())
    }
}

fn counts<'a, K: Ord>(
    rows: impl IntoIterator<Item = &'a Row>,
    key: fn(u64) -> K,
) -> Result<BTreeMap<K, usize>, DatabaseError> {
    let read = |row: &Row| {
        let ready: i64 = row.column("ready")?;
        Ok((key(row.number("id")?), usize::try_from(ready).unwrap_or_default()))
    };
    let all: BTreeMap<K, usize> = rows.into_iter().map(read).collect::<Result<_, DatabaseError>>()?;
    Ok(all.into_iter().filter(|(_, ready)| *ready > 0).collect())
}
