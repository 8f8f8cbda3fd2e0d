//! The worker queue.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use duroxide_core::Timestamp;

use super::{
    MemoryTables,
    table::{Index, Table, refile},
};
use crate::{
    rules::{ActivityItem, ActivityTable, Lane, LaneId, QueuedActivity, Rows},
    store::ActivityRow,
};

pub(in crate::memory) type Activities = Table<u64, QueuedActivity, ActivityIndex>;

#[derive(Debug, Clone, Default)]
pub(in crate::memory) struct ActivityIndex {
    /// By instance, execution and activity id.
    ids: BTreeMap<(u64, u64, u64), u64>,
    by_session: BTreeSet<(String, u64)>,
    /// Ready activities without session.
    ready: BTreeSet<(LaneId, u64)>,
    ready_in_sessions: BTreeSet<(String, LaneId, u64)>,
    waits: BTreeSet<(Timestamp, u64)>,
    /// When leases end.
    leases: BTreeSet<(Timestamp, u64)>,
}

impl Index<u64, QueuedActivity> for ActivityIndex {
    fn file(&mut self, number: &u64, before: Option<&QueuedActivity>, after: Option<&QueuedActivity>) {
        let id = |row: &QueuedActivity| (row.instance, row.execution_id, row.activity_id);
        // Ids and sessions never change.
        match (before, after) {
            (None, Some(new)) => {
                self.ids.insert(id(new), *number);
                self.by_session.extend(new.session_id.clone().map(|session| (session, *number)));
            }
            (Some(gone), None) => {
                self.ids.remove(&id(gone));
                gone.session_id.clone().map(|session| self.by_session.remove(&(session, *number)));
            }
            _ => {}
        }
        let is_ready = |row: &&QueuedActivity| row.waits_until.is_none();
        let ready = |row: &QueuedActivity| row.session_id.is_none().then_some((row.lane, *number));
        let (was, is) = (before.filter(is_ready), after.filter(is_ready));
        refile(&mut self.ready, was.and_then(ready), is.and_then(ready));
        let in_session = |row: &QueuedActivity| Some((row.session_id.clone()?, row.lane, *number));
        refile(&mut self.ready_in_sessions, was.and_then(in_session), is.and_then(in_session));
        let waits = |row: &QueuedActivity| Some((row.waits_until?, *number));
        refile(&mut self.waits, before.and_then(waits), after.and_then(waits));
        let lease = |row: &QueuedActivity| Some((row.lock.as_ref()?.until, *number));
        refile(&mut self.leases, before.and_then(lease), after.and_then(lease));
    }
}

impl Activities {
    pub(in crate::memory) fn find(&self, instance: u64, execution_id: u64, activity_id: u64) -> Option<u64> {
        self.index().ids.get(&(instance, execution_id, activity_id)).copied()
    }

    /// The activities of an instance, by execution and activity id.
    pub(in crate::memory) fn of(&self, instance: u64) -> impl Iterator<Item = u64> {
        let ids = self.index().ids.range((instance, 0, 0)..=(instance, u64::MAX, u64::MAX));
        ids.map(|(_, number)| *number)
    }

    pub(in crate::memory) fn are_in_session(&self, session: &str) -> bool {
        let of_session = (session.to_owned(), 0)..=(session.to_owned(), u64::MAX);
        self.index().by_session.range(of_session).next().is_some()
    }

    pub(in crate::memory) fn are_ready(&self) -> bool {
        !self.index().ready.is_empty() || !self.index().ready_in_sessions.is_empty()
    }

    pub(in crate::memory) fn wake_due(&mut self, now: Timestamp) {
        while let Some((_, number)) = self.index().waits.first().copied().filter(|(until, _)| *until <= now) {
            self.update(&number, |activity| activity.waits_until = None);
        }
    }

    pub(in crate::memory) fn next_due(&self) -> Option<Timestamp> {
        self.index().waits.first().map(|(until, _)| *until)
    }

    pub(in crate::memory) fn ready_lanes(&self) -> impl Iterator<Item = LaneId> {
        let ready = &self.index().ready;
        let next = |after: Bound<(LaneId, u64)>| {
            ready.range((after, Bound::Unbounded)).next().map(|(lane, _)| *lane)
        };
        std::iter::successors(next(Bound::Unbounded), move |lane| next(Bound::Excluded((*lane, u64::MAX))))
    }

    pub(in crate::memory) fn ready_in(&self, lane: LaneId) -> impl Iterator<Item = u64> {
        self.index().ready.range((lane, 0)..=(lane, u64::MAX)).map(|(_, number)| *number)
    }

    pub(in crate::memory) fn ready_session_lanes(&self) -> impl Iterator<Item = (String, LaneId)> {
        let ready = &self.index().ready_in_sessions;
        let next = |after: Bound<(String, LaneId, u64)>| {
            let first = ready.range((after, Bound::Unbounded)).next();
            first.map(|(session, lane, _)| (session.clone(), *lane))
        };
        std::iter::successors(next(Bound::Unbounded), move |(session, lane)| {
            next(Bound::Excluded((session.clone(), *lane, u64::MAX)))
        })
    }

    pub(in crate::memory) fn ready_in_session(
        &self,
        session: &str,
        lane: LaneId,
    ) -> impl Iterator<Item = u64> {
        let of_lane = (session.to_owned(), lane, 0)..=(session.to_owned(), lane, u64::MAX);
        self.index().ready_in_sessions.range(of_lane).map(|(.., number)| *number)
    }

    /// Rows whose lease ends after this time, by number.
    pub(in crate::memory) fn leased(&self, after: Timestamp) -> impl Iterator<Item = &QueuedActivity> {
        let leases = self.index().leases.range((Bound::Excluded((after, u64::MAX)), Bound::Unbounded));
        let numbers: BTreeSet<u64> = leases.map(|(_, number)| *number).collect();
        numbers.into_iter().filter_map(|number| self.get(&number))
    }
}

impl ActivityTable for MemoryTables {
    fn lane_id(&mut self, lane: &Lane) -> Rows<LaneId> {
        Ok(LaneId(self.lanes.number(lane)))
    }

    fn lane(&mut self, id: LaneId) -> Rows<Option<Lane>> {
        Ok(self.lanes.value(id.0).cloned())
    }

    fn insert_activity(&mut self, activity: &QueuedActivity, prepared: &ActivityRow) -> Rows<bool> {
        let QueuedActivity { number, instance, execution_id, activity_id, .. } = *activity;
        let is_new = self.activities.find(instance, execution_id, activity_id).is_none();
        if is_new {
            self.activities.put(number, activity.clone());
            let prepared = ActivityRow { item: prepared.small_item(), ..prepared.clone() };
            self.activity_items.put(number, prepared);
        }
        Ok(is_new)
    }

    fn activity(&mut self, number: u64) -> Rows<Option<QueuedActivity>> {
        Ok(self.activities.get(&number).cloned())
    }

    fn activity_with_item(&mut self, number: u64) -> Rows<Option<(QueuedActivity, ActivityItem)>> {
        let Some(activity) = self.activities.get(&number) else { return Ok(None) };
        let Some(prepared) = self.activity_items.get(&number) else { return Ok(None) };
        let item = match &prepared.item {
            Some(item) => ActivityItem::Item(item.clone()),
            None => ActivityItem::Data(prepared.data.clone()),
        };
        Ok(Some((activity.clone(), item)))
    }

    fn find_activity(&mut self, instance: u64, execution_id: u64, activity_id: u64) -> Rows<Option<u64>> {
        Ok(self.activities.find(instance, execution_id, activity_id))
    }

    fn update_activity(&mut self, activity: &QueuedActivity) -> Rows<()> {
        self.activities.put(activity.number, activity.clone());
        Ok(())
    }

    fn delete_activity(&mut self, number: u64) -> Rows<()> {
        self.activities.remove(&number);
        self.activity_items.remove(&number);
        Ok(())
    }

    fn delete_activities(&mut self, instances: &[u64]) -> Rows<u64> {
        let numbers: Vec<u64> = instances.iter().flat_map(|instance| self.activities.of(*instance)).collect();
        self.activities.remove_all(&numbers);
        Ok(self.activity_items.remove_all(&numbers) as u64)
    }

    fn has_activities(&mut self, instance: u64) -> Rows<bool> {
        Ok(self.activities.of(instance).next().is_some())
    }

    fn wake_due_activities(&mut self, now: Timestamp) -> Rows<()> {
        self.activities.wake_due(now);
        Ok(())
    }

    fn ready_lanes(&mut self) -> Rows<Vec<LaneId>> {
        Ok(self.activities.ready_lanes().collect())
    }

    fn ready_in_lane(&mut self, lane: LaneId, limit: usize) -> Rows<Vec<u64>> {
        Ok(self.activities.ready_in(lane).take(limit).collect())
    }

    fn ready_session_lanes(&mut self) -> Rows<Vec<(String, LaneId)>> {
        Ok(self.activities.ready_session_lanes().collect())
    }

    fn ready_in_session_lane(&mut self, session: &str, lane: LaneId, limit: usize) -> Rows<Vec<u64>> {
        Ok(self.activities.ready_in_session(session, lane).take(limit).collect())
    }

    fn leased_activities(&mut self, after: Timestamp) -> Rows<Vec<QueuedActivity>> {
        Ok(self.activities.leased(after).cloned().collect())
    }
}
