//! The worker queue.

use std::collections::BTreeSet;

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{ActivityItem, QueuedActivity},
    store::ActivityRow,
};

use super::{
    PostgresTables,
    load::{Meaning, Request, given_time},
    numbers,
};
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    record::Activity,
    value::{Columns, micros, number},
};

const DATA: &str = "SELECT data FROM {s}.activity WHERE number = $1";
const DELETE_ALL: &str = "DELETE FROM {s}.activity WHERE instance = ANY ($1::bigint[]) RETURNING number";
const LEASED: &str = "SELECT {head activity} FROM {s}.activity
    WHERE activity.lock_until > $1 ORDER BY activity.number FOR UPDATE";
/// A row that another transaction has locked is being changed; the next promotion finds it. The order is that of the
/// index of waiting rows.
const DUE: &str = concat!(
    "SELECT {columns activity} FROM {s}.activity WHERE activity.wait_until <= ",
    given_time!("$1"),
    " AND activity.wait_until >= $2::bigint
    ORDER BY activity.wait_until, activity.number FOR UPDATE SKIP LOCKED"
);

impl Request {
    /// Activities that are due at this time, or when the transaction began.
    pub(super) fn due_activities(at: Option<Timestamp>, from: i64) -> Self {
        Self::new(Meaning::DueActivities(at), DUE, parameters![at.map(micros), from])
    }
}

impl PostgresTables {
    pub(super) fn activity(&mut self, activity: u64) -> Result<Option<QueuedActivity>, DatabaseError> {
        if !self.set.activities.knows(&activity) {
            self.load(vec![Request::activities(&[activity].into())])?;
        }
        Ok(self.set.activities.get(&activity).map(|activity| activity.queued.clone()))
    }

    pub(super) fn activity_with_item(
        &mut self,
        activity: u64,
    ) -> Result<Option<(QueuedActivity, ActivityItem)>, DatabaseError> {
        let Some(queued) = self.activity(activity)? else { return Ok(None) };
        let known = self.set.activities.get(&activity);
        if known.is_some_and(|known| known.data.is_none()) {
            let answers = self.send(&[Query::new(DATA, parameters![number(activity)])])?;
            let data = answers.iter().flatten().next().map(|row| row.column("data")).transpose()?;
            if let Some(known) = self.set.activities.get_mut(&activity) {
                known.data = data;
            }
        }
        let known = self.set.activities.get(&activity);
        let item = known.and_then(|known| match &known.item {
            Some(item) => Some(ActivityItem::Item(item.clone())),
            None => known.data.clone().map(ActivityItem::Data),
        });
        Ok(item.map(|item| (queued, item)))
    }

    pub(super) fn find_activity(
        &mut self,
        instance: u64,
        execution_id: u64,
        activity_id: u64,
    ) -> Result<Option<u64>, DatabaseError> {
        let key = (instance, execution_id, activity_id);
        if !self.set.activity_keys.contains_key(&key) && !self.set.instances.is_new(&instance) {
            self.load(vec![Request::activities_by_key(&[key].into())])?;
        }
        Ok(self.set.activity_keys.get(&key).copied().flatten())
    }

    pub(super) fn insert_activity(
        &mut self,
        queued: &QueuedActivity,
        prepared: &ActivityRow,
    ) -> Result<bool, DatabaseError> {
        let key = (queued.instance, queued.execution_id, queued.activity_id);
        // If it exists although this node does not know it, its insert fails.
        let is_new = self.relied_on_cache
            && !self.set.activity_keys.contains_key(&key)
            && !self.row_cache.has_activity(&key);
        if !is_new && self.find_activity(key.0, key.1, key.2)?.is_some() {
            return Ok(false);
        }
        let activity = Activity {
            queued: queued.clone(),
            data: Some(prepared.data.clone()),
            item: prepared.item.clone(),
        };
        self.set.activity_keys.insert(activity.key(), Some(queued.number));
        self.set.activities.put(queued.number, activity);
        Ok(true)
    }

    pub(super) fn update_activity(&mut self, queued: &QueuedActivity) -> Result<(), DatabaseError> {
        if let Some(known) = self.set.activities.get(&queued.number) {
            let activity = Activity { queued: queued.clone(), ..known.clone() };
            self.set.activities.put(queued.number, activity);
        }
        Ok(())
    }

    pub(super) fn delete_activity(&mut self, activity: u64) -> Result<(), DatabaseError> {
        if self.activity(activity)?.is_none() {
            return Ok(());
        }
        if let Some(known) = self.set.activities.get(&activity) {
            self.set.activity_keys.insert(known.key(), None);
        }
        self.set.activities.delete(&activity);
        Ok(())
    }

    /// Sends nothing if the instances are known to have no activities, as most that have ended.
    pub(super) fn delete_activities(&mut self, instances: &[u64]) -> Result<u64, DatabaseError> {
        let instances: BTreeSet<u64> = instances.iter().copied().collect();
        let is_here = |activity: &Activity| instances.contains(&activity.queued.instance);
        let has_none = |instance: &u64| self.known_activities(*instance) == Some(false);
        if !self.set.activities.rows().any(is_here) && instances.iter().all(has_none) {
            return Ok(0);
        }
        let rows = self.ask(Query::new(DELETE_ALL, parameters![numbers(&instances)]))?;
        let deleted: Vec<u64> = rows.iter().map(|row| row.number("number")).collect::<Result<_, _>>()?;
        self.row_cache.forget_activities(&deleted);
        self.set.activities.forget(is_here);
        self.set.activity_keys.retain(|(of, _, _), _| !instances.contains(of));
        self.forget_stored_activities(&instances);
        Ok(rows.len() as u64)
    }

    pub(super) fn has_activities(&mut self, instance: u64) -> Result<bool, DatabaseError> {
        if self.set.activities.rows().any(|activity| activity.queued.instance == instance) {
            return Ok(true);
        }
        if let Some(known) = self.known_activities(instance) {
            return Ok(known);
        }
        // The rules ask this about mailboxes, so it is read for all of them.
        self.ask_requests([self.activities_of_mailboxes(Some(instance))])?;
        Ok(self.known_activities(instance).unwrap_or(true))
    }

    pub(super) fn wake_due_activities(&mut self, now: Timestamp) -> Result<(), DatabaseError> {
        if !self.set.due_activities.covers(now) {
            let request = Request::due_activities(Some(now), self.scan_starts.due());
            let rows = self.ask(request.query)?;
            self.take_answers(vec![request.meaning], vec![rows])?;
        }
        let due = self
            .set
            .activities
            .rows()
            .filter(|activity| activity.queued.waits_until.is_some_and(|until| until <= now));
        for mut queued in due.map(|activity| activity.queued.clone()).collect::<Vec<_>>() {
            queued.waits_until = None;
            self.update_activity(&queued)?;
        }
        Ok(())
    }

    pub(super) fn leased_activities(
        &mut self,
        after: Timestamp,
    ) -> Result<Vec<QueuedActivity>, DatabaseError> {
        let rows = self.ask(Query::new(LEASED, parameters![micros(after)]))?;
        let numbers = self.take_activities(&rows)?;
        let known = numbers.iter().filter_map(|activity| self.set.activities.get(activity));
        Ok(known.map(|activity| activity.queued.clone()).collect())
    }
}
