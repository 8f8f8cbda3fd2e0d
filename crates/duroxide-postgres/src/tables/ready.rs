//! Items that can be claimed: ready instances by route, ready activities by lane and session, stray mailboxes, due
//! rows.
//!
//! A claim gets only rows that this transaction has locked. Rows that other transactions have locked are skipped, so claims
//! never wait. The working set keeps how far a list was read: up to there it answers, with all changes of this transaction.

#[macro_use]
mod scan_starts;
mod requests;

use std::collections::{BTreeMap, BTreeSet};

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{DueInstance, InstanceRow, LaneId, QueuedActivity, Readiness, RouteId},
    store::Readies,
};
use tokio_postgres::Row;

use self::requests::{MAY_BE_READY, READY_IN_SESSION};
pub(crate) use self::scan_starts::ScanStarts;
use super::{
    PostgresTables,
    load::{Request, read_up_to},
    working_set::{FirstReady, ReadUpTo},
};
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    value::{Columns, limit, number, unsigned},
};

/// The first rows that can be claimed, and whether more exist than these lists have.
const FIRST_READY: &str = concat!(
    "SELECT first.instances, first.activities, EXISTS (SELECT 1 FROM {s}.instance WHERE is_stray)
        OR EXISTS (SELECT 1 FROM {s}.activity WHERE wait_until IS NULL AND session_id IS NOT NULL) AS has_others
    FROM (",
    first_ready!(),
    ") AS first"
);

pub(super) fn first_ready_query(scan_starts: &mut ScanStarts) -> Query {
    let (instances, activities) = scan_starts.begin_read();
    Query::new(FIRST_READY, parameters![instances, activities])
}

pub(super) fn read_first_ready(row: &Row) -> Result<FirstReady, DatabaseError> {
    let place = |name| row.column::<Option<i64>>(name).map(|place| place.map(unsigned));
    Ok(FirstReady {
        instance: place("instances")?,
        activity: place("activities")?,
        has_others: row.column("has_others")?,
    })
}

impl PostgresTables {
    /// Sends the writes and the requests in one round trip, then takes the answers.
    pub(super) fn ask_requests(
        &mut self,
        requests: impl IntoIterator<Item = Request>,
    ) -> Result<(), DatabaseError> {
        let (queries, meanings): (Vec<_>, Vec<_>) =
            requests.into_iter().map(|request| (request.query, request.meaning)).unzip();
        let answers = self.ask_all(queries)?;
        self.take_answers(meanings, answers)
    }

    // ---- instances ---------------------------------------------------------------------------------------------

    pub(super) fn ready_routes(&mut self) -> Result<Vec<RouteId>, DatabaseError> {
        if self.set.ready_routes.counts.is_none() {
            self.ask_requests([Request::route_counts(1, self.scan_starts.instances())])?;
            // This request counts up to 1 for each route, so its counts are not kept.
            let stored = self.set.ready_routes.counts.take().unwrap_or_default();
            return Ok(stored.into_keys().collect());
        }
        let counted = self.set.ready_routes.counts.iter().flat_map(|counts| counts.keys().copied());
        let here = self.set.instances.rows().filter_map(ready_on).map(|(route, _)| route);
        Ok(counted.chain(here).collect::<BTreeSet<_>>().into_iter().collect())
    }

    pub(super) fn ready_on_route(
        &mut self,
        route: RouteId,
        at_most: usize,
    ) -> Result<Vec<(u64, u64)>, DatabaseError> {
        if let Some(found) = self.known_ready(route, at_most) {
            return Ok(found);
        }
        let from = self.scan_starts.instances();
        let requests = Request::ready_instances(&[route], at_most, from, self.mailbox_loaded_max);
        self.ask_requests(requests.into_iter().chain([Request::numbers(1)]))?;
        Ok(self.known_ready(route, at_most).unwrap_or_default())
    }

    /// The answer of the working set, if the list was read far enough.
    fn known_ready(&self, route: RouteId, at_most: usize) -> Option<Vec<(u64, u64)>> {
        let read = self.set.ready_routes.read_up_to(route)?;
        let ready = self.set.instances.rows().filter_map(|row| Some((ready_on(row)?, row.number)));
        let here = ready.filter(|((on, _), _)| *on == route).map(|((_, ready), number)| (ready, number));
        first_of(here.collect(), read, at_most, |(ready, _)| *ready)
    }

    /// How many instances are ready on a route that a claim does not take. They are not locked, so that other nodes can
    /// take them.
    pub(super) fn count_ready_on_route(
        &mut self,
        route: RouteId,
        at_most: usize,
    ) -> Result<usize, DatabaseError> {
        if self.set.ready_routes.counts.is_none() {
            self.ask_requests([Request::route_counts(at_most, self.scan_starts.instances())])?;
            let counts = self.set.ready_routes.counts.take().unwrap_or_default();
            return Ok(counts.get(&route).copied().unwrap_or_default().min(at_most));
        }
        let counts = self.set.ready_routes.counts.as_ref();
        let stored = counts.and_then(|counts| counts.get(&route)).copied().unwrap_or_default();
        let new = self.set.instances.unsent().filter_map(ready_on).filter(|(on, _)| *on == route).count();
        Ok(stored.saturating_add(new).min(at_most))
    }

    pub(super) fn take_ready_instances(
        &mut self,
        routes: &[RouteId],
        at_most: usize,
        rows: &[Row],
    ) -> Result<(), DatabaseError> {
        self.take_instances(rows)?;
        for route in routes {
            let mut found = Vec::new();
            for row in rows.iter().filter(|row| row.number("route").ok() == Some(route.0)) {
                found.push(row.number("ready_number")?);
            }
            self.set.ready_routes.read.insert(*route, read_up_to(&found, at_most));
        }
        Ok(())
    }

    pub(super) fn stray_instances(&mut self) -> Result<Vec<u64>, DatabaseError> {
        if !self.set.strays_are_read {
            self.ask_requests([Request::strays(), Request::numbers(1)])?;
        }
        let strays = self.set.instances.rows().filter(|row| matches!(row.readiness, Readiness::Stray { .. }));
        Ok(strays.map(|row| row.number).collect())
    }

    pub(super) fn due_instances(&mut self, now: Timestamp) -> Result<Vec<DueInstance>, DatabaseError> {
        if !self.set.due_instances.covers(now) {
            let requests = Request::due_instances(Some(now), self.scan_starts.due(), self.mailbox_loaded_max);
            self.ask_requests(requests.into_iter().chain([Request::numbers(1)]))?;
        }
        let due = self.set.instances.rows().filter_map(|row| Some((row.waits_until()?, row.number)));
        let mut due: Vec<(Timestamp, u64)> = due.filter(|(until, _)| *until <= now).collect();
        due.sort_unstable();
        // The mailbox is in the working set, so a shortcut would save nothing.
        Ok(due.into_iter().map(|(_, number)| DueInstance { number, is_plainly_ready: false }).collect())
    }

    pub(super) fn may_be_ready(&mut self) -> Result<Readies, DatabaseError> {
        let rows = self.ask(Query::new(MAY_BE_READY, Vec::new()))?;
        match rows.first() {
            Some(row) => {
                let readies =
                    Readies { instances: row.column("instances")?, activities: row.column("activities")? };
                self.optional_reads.ready_instances |= readies.instances;
                self.optional_reads.ready_activities |= readies.activities;
                Ok(readies)
            }
            None => Ok(Readies { instances: true, activities: true }),
        }
    }

    // ---- activities --------------------------------------------------------------------------------------------

    pub(super) fn ready_lanes(&mut self) -> Result<Vec<LaneId>, DatabaseError> {
        if self.set.ready_lanes.counts.is_none() {
            self.ask_requests([Request::lane_counts(1, self.scan_starts.activities())])?;
            let stored = self.set.ready_lanes.counts.take().unwrap_or_default();
            return Ok(stored.into_keys().collect());
        }
        let counted = self.set.ready_lanes.counts.iter().flat_map(|counts| counts.keys().copied());
        let ready = self.set.activities.rows().map(|activity| &activity.queued);
        let here = ready.filter(|queued| is_ready(queued, None)).map(|queued| queued.lane);
        Ok(counted.chain(here).collect::<BTreeSet<_>>().into_iter().collect())
    }

    pub(super) fn ready_in_lane(&mut self, lane: LaneId, at_most: usize) -> Result<Vec<u64>, DatabaseError> {
        if let Some(found) = self.known_in_lane(lane, at_most) {
            return Ok(found);
        }
        self.ask_requests([Request::ready_activities(&[lane], at_most, self.scan_starts.activities())])?;
        Ok(self.known_in_lane(lane, at_most).unwrap_or_default())
    }

    fn known_in_lane(&self, lane: LaneId, at_most: usize) -> Option<Vec<u64>> {
        let read = self.set.ready_lanes.read_up_to(lane)?;
        first_of(self.ready_here(lane, None), read, at_most, |number| *number)
    }

    fn ready_here(&self, lane: LaneId, session: Option<&str>) -> Vec<u64> {
        let activities = self.set.activities.rows().map(|activity| &activity.queued);
        let ready = activities.filter(|queued| queued.lane == lane && is_ready(queued, session));
        ready.map(|queued| queued.number).collect()
    }

    /// How many activities are ready in a lane that a claim does not take; they are not locked.
    pub(super) fn count_ready_in_lane(
        &mut self,
        lane: LaneId,
        at_most: usize,
    ) -> Result<usize, DatabaseError> {
        if self.set.ready_lanes.counts.is_none() {
            self.ask_requests([Request::lane_counts(at_most, self.scan_starts.activities())])?;
            let counts = self.set.ready_lanes.counts.take().unwrap_or_default();
            return Ok(counts.get(&lane).copied().unwrap_or_default().min(at_most));
        }
        let counts = self.set.ready_lanes.counts.as_ref();
        let stored = counts.and_then(|counts| counts.get(&lane)).copied().unwrap_or_default();
        let new = self.set.activities.unsent().map(|activity| &activity.queued);
        let new = new.filter(|queued| queued.lane == lane && is_ready(queued, None)).count();
        Ok(stored.saturating_add(new).min(at_most))
    }

    pub(super) fn take_ready_activities(
        &mut self,
        lanes: &[LaneId],
        at_most: usize,
        rows: &[Row],
    ) -> Result<(), DatabaseError> {
        self.take_activities(rows)?;
        for lane in lanes {
            let mut found = Vec::new();
            for row in rows.iter().filter(|row| row.number("lane").ok() == Some(lane.0)) {
                found.push(row.number("number")?);
            }
            self.set.ready_lanes.read.insert(*lane, read_up_to(&found, at_most));
        }
        Ok(())
    }

    pub(super) fn ready_session_lanes(&mut self) -> Result<Vec<(String, LaneId)>, DatabaseError> {
        if self.set.session_lanes.is_none() {
            self.ask_requests([Request::session_lanes()])?;
            return Ok(self.set.session_lanes.take().unwrap_or_default().into_iter().collect());
        }
        let stored = self.set.session_lanes.iter().flatten().cloned();
        let here = self.set.activities.rows().map(|activity| &activity.queued);
        let here = here.filter(|queued| queued.is_ready());
        let here = here.filter_map(|queued| Some((queued.session_id.clone()?, queued.lane)));
        Ok(stored.chain(here).collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// A row that was not returned may still exist: SKIP LOCKED leaves out locked rows, and so does a session of
    /// another owner.
    pub(super) fn take_ready_in_sessions(
        &mut self,
        at_most: usize,
        rows: &[Row],
    ) -> Result<(), DatabaseError> {
        let mut found: BTreeMap<(String, LaneId), Vec<u64>> = BTreeMap::new();
        for number in self.take_activities(rows)? {
            let activity = self.set.activities.get(&number).map(|activity| &activity.queued);
            if let Some(key) = activity.and_then(|queued| Some((queued.session_id.clone()?, queued.lane))) {
                found.entry(key).or_default().push(number);
            }
        }
        let read = found.into_iter().map(|(key, numbers)| (key, read_up_to(&numbers, at_most)));
        self.set.ready_session_lanes.extend(read);
        Ok(())
    }

    pub(super) fn ready_in_session_lane(
        &mut self,
        session: &str,
        lane: LaneId,
        at_most: usize,
    ) -> Result<Vec<u64>, DatabaseError> {
        let key = (session.to_owned(), lane);
        if let Some(read) = self.set.ready_session_lanes.get(&key)
            && let Some(found) =
                first_of(self.ready_here(lane, Some(session)), *read, at_most, |number| *number)
        {
            return Ok(found);
        }
        let parameters = parameters![session.to_owned(), number(lane.0), limit(at_most)];
        let rows = self.ask(Query::new(READY_IN_SESSION, parameters))?;
        let found = self.take_activities(&rows)?;
        self.set.ready_session_lanes.insert(key, read_up_to(&found, at_most));
        Ok(found)
    }
}

/// The first rows of a list, if it was read far enough. Of the rows that this transaction made ready only those count that
/// come before the end of the read part.
fn first_of<T: Ord>(
    mut here: Vec<T>,
    read: ReadUpTo,
    at_most: usize,
    place: impl Fn(&T) -> u64,
) -> Option<Vec<T>> {
    here.sort_unstable();
    if let ReadUpTo::Number(last) = read {
        here.retain(|row| Some(place(row)) <= last);
        if here.len() < at_most {
            return None;
        }
    }
    here.truncate(at_most);
    Some(here)
}

/// Route and place of an instance that can be claimed.
pub(super) fn ready_on(row: &InstanceRow) -> Option<(RouteId, u64)> {
    match row.readiness {
        Readiness::Ready { number } => row.route.map(|route| (route, number)),
        Readiness::Waiting { .. } | Readiness::Stray { .. } => None,
    }
}

/// Whether an activity of this session, or of none, can be claimed.
fn is_ready(queued: &QueuedActivity, session: Option<&str>) -> bool {
    queued.is_ready() && queued.session_id.as_deref() == session
}
