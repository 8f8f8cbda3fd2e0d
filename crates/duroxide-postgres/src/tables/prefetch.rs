//! The first round trip of a batch.

mod intake;
mod management;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{LaneId, RouteId},
    store::StoreFailure,
};

pub(crate) use self::intake::WaitingRows;
use super::{
    PostgresTables,
    dictionary::{ADD_LANES, ADD_ROUTES, FIND_LANES, FIND_ROUTES, add, definition},
    load::{Meaning, NamedInstances, Request, time_in},
    working_set::{Accepted, NUMBERS_IN_BLOCK, WorkingSet},
};
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    needs::Needs,
};

/// The first event of each of these instances. Pruned executions have none.
const FIRST_EVENTS: &str = "SELECT instance.number AS instance, first.execution_id, first.data
    FROM {s}.instance CROSS JOIN LATERAL (
        SELECT history.execution_id, history.data FROM {s}.history
        WHERE history.instance = instance.number AND history.execution_id = 1
            AND NOT EXISTS (SELECT 1 FROM {s}.removal
                WHERE removal.instance = instance.number AND removal.execution_id = 1)
        ORDER BY history.event_id LIMIT 1) AS first
    WHERE instance.id = ANY ($1::text[])";
const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now";

/// How many rows of one route or lane a batch locks for its claims.
const CANDIDATES_MAX: usize = 1_000;

/// The answer of the first round trip besides rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prefetched {
    /// The time of the transaction.
    pub(crate) now: Timestamp,
}

impl PostgresTables {
    /// Locks and loads everything that a batch needs, in an order that avoids deadlocks (24.2): instances by number, activities by
    /// number, then candidates, with SKIP LOCKED. Of instances that are in the row cache only the revision is loaded.
    pub(super) fn load_needs(&mut self, needs: &Needs<'_>) -> Result<Prefetched, DatabaseError> {
        let mut requests = self.requests_for_dictionaries(needs);
        let ahead = requests.len();
        let (cached, others) = self.cached_among(&needs.instances);
        if !cached.is_empty() {
            requests.push(Request::cached_instances(cached, &others));
        }
        if !others.is_empty() {
            requests.extend(Request::instances(&others, self.mailbox_loaded_max));
        }
        requests.extend(self.requests_for_operations(needs));
        if needs.promotes {
            requests.push(Request::due_removal_task(needs.now));
            let from = self.scan_starts.due();
            requests.extend(Request::due_instances(needs.now, from, self.mailbox_loaded_max));
            requests.push(Request::due_activities(needs.now, from));
        }
        self.add_instance_candidates(needs, &mut requests);
        self.add_activity_candidates(needs, &mut requests);
        requests.extend(self.scan_starts.read_first());
        let blocks = (needs.numbers as u64).div_ceil(NUMBERS_IN_BLOCK).max(1);
        requests.push(Request::numbers(i64::try_from(blocks).unwrap_or(i64::MAX)));
        let prefetched = self.send_first(requests, ahead)?;
        self.load_for_management(needs)?;
        Ok(Prefetched { now: needs.now.unwrap_or(prefetched.now) })
    }

    /// The time of the database's clock.
    pub(crate) fn database_time(&mut self) -> Result<Timestamp, StoreFailure> {
        let asked_at = Instant::now();
        let read = |tables: &mut Self| {
            let rows = tables.ask(Query::new(CLOCK, Vec::new()))?;
            time_in(rows.first().ok_or_else(no_time)?, "now")
        };
        let time = read(self).map_err(DatabaseError::into_failure);
        if let Ok(time) = time {
            self.learn_time(asked_at, time);
        }
        self.rollback();
        time
    }

    fn send_first(&mut self, requests: Vec<Request>, ahead: usize) -> Result<Prefetched, DatabaseError> {
        let (queries, meanings): (Vec<_>, Vec<_>) =
            requests.into_iter().map(|request| (request.query, request.meaning)).unzip();
        let asked_at = Instant::now();
        let answers = self.send_with_ahead(&queries, ahead)?;
        // The last statement draws numbers and returns the time.
        let now = time_in(answers.last().and_then(|rows| rows.last()).ok_or_else(no_time)?, "now")?;
        self.take_answers(meanings, answers)?;
        if !self.set.changed_elsewhere.is_empty() {
            let numbers = std::mem::take(&mut self.set.changed_elsewhere);
            self.load_instances(&NamedInstances { numbers, ..NamedInstances::default() })?;
        }
        self.learn_time(asked_at, now);
        self.set.is_loaded = true;
        Ok(Prefetched { now })
    }

    fn cached_among(&self, named: &NamedInstances) -> (BTreeMap<u64, u64>, NamedInstances) {
        if self.relied_on_cache {
            self.row_cache.cached_among(named)
        } else {
            (BTreeMap::new(), named.clone())
        }
    }

    /// Routes and lanes that were never met are stored ahead of the transaction, so that no other node, which may store the
    /// same ones, has to wait for its end.
    fn requests_for_dictionaries(&self, needs: &Needs<'_>) -> Vec<Request> {
        let routes = needs.routes.iter().filter(|route| self.routes.id(route).is_none());
        let lanes = needs.lanes.iter().filter(|lane| self.lanes.id(lane).is_none());
        let mut requests = Vec::new();
        let mut store = |definitions: Vec<String>, insert, find, meaning| {
            if !definitions.is_empty() {
                let [insert, find] = add(insert, find, definitions);
                requests.push(Request { query: insert, meaning: Meaning::Nothing });
                requests.push(Request { query: find, meaning });
            }
        };
        store(routes.map(definition).collect(), ADD_ROUTES, FIND_ROUTES, Meaning::Routes);
        store(lanes.map(definition).collect(), ADD_LANES, FIND_LANES, Meaning::Lanes);
        requests
    }

    /// Makes the working set from the row cache, if it has all rows that a batch needs. Returns the time.
    pub(super) fn recall(&mut self, needs: &Needs<'_>, is_alone: bool) -> Option<Timestamp> {
        let now = needs.now.or_else(|| self.clock.now())?;
        let is_possible = self.relied_on_cache
            && !needs.promotes
            && self.reserve.len() >= needs.numbers
            && self.requests_for_dictionaries(needs).is_empty()
            && needs.instance_fetches.iter().all(|fetch| fetch.only.is_none())
            && needs.activity_fetches.iter().all(|fetch| fetch.only.is_none());
        if !is_possible {
            return None;
        }
        let mut set = WorkingSet::default();
        self.row_cache.recall_operations(needs, &mut set)?;
        if !needs.instance_fetches.is_empty() {
            self.row_cache.recall_ready_instances(&self.accepted_routes(needs), is_alone, &mut set)?;
        }
        if !needs.activity_fetches.is_empty() {
            self.row_cache.recall_ready_activities(&self.accepted_lanes(needs), is_alone, &mut set)?;
        }
        set.numbers = std::mem::take(&mut self.reserve);
        self.set = set;
        Some(now)
    }

    /// The routes that instance fetches of a batch accept.
    fn accepted_routes(&self, needs: &Needs<'_>) -> Accepted<RouteId> {
        let fetches = &needs.instance_fetches;
        let accepted = self.routes.all().filter(|(_, route)| {
            let (name, version) = (route.name.as_deref(), route.version.as_deref());
            fetches.iter().any(|fetch| fetch.only.is_none() && fetch.accepts(name, version, route.pinned))
        });
        let keys = accepted.map(|(id, _)| RouteId(id)).collect();
        Accepted { keys, at_most: wanted(fetches.iter().map(|fetch| fetch.max)) }
    }

    /// The lanes that activity fetches of a batch accept.
    fn accepted_lanes(&self, needs: &Needs<'_>) -> Accepted<LaneId> {
        let fetches = &needs.activity_fetches;
        let accepted = self.lanes.all().filter(|(_, lane)| {
            fetches.iter().any(|fetch| fetch.only.is_none() && fetch.accepts(&lane.name, lane.tag.as_deref()))
        });
        let keys = accepted.map(|(id, _)| LaneId(id)).collect();
        Accepted { keys, at_most: wanted(fetches.iter().map(|fetch| fetch.max)) }
    }

    fn add_instance_candidates(&self, needs: &Needs<'_>, requests: &mut Vec<Request>) {
        if needs.instance_fetches.is_empty() {
            return;
        }
        let (accepted, from) = (self.accepted_routes(needs), self.scan_starts.instances());
        requests.push(Request::route_counts(accepted.at_most, from));
        if !accepted.keys.is_empty() && self.optional_reads.ready_instances {
            let routes: Vec<RouteId> = accepted.keys.into_iter().collect();
            let mailbox_max = self.mailbox_loaded_max;
            requests.extend(Request::ready_instances(&routes, accepted.at_most, from, mailbox_max));
        }
    }

    fn add_activity_candidates(&self, needs: &Needs<'_>, requests: &mut Vec<Request>) {
        if needs.activity_fetches.is_empty() {
            return;
        }
        let (accepted, from) = (self.accepted_lanes(needs), self.scan_starts.activities());
        requests.push(Request::lane_counts(accepted.at_most, from));
        if !accepted.keys.is_empty() && self.optional_reads.ready_activities {
            let lanes: Vec<LaneId> = accepted.keys.iter().copied().collect();
            requests.push(Request::ready_activities(&lanes, accepted.at_most, from));
        }
        let owners =
            needs.activity_fetches.iter().filter_map(|fetch| Some(&fetch.session.as_ref()?.owner_id));
        let owners: BTreeSet<&String> = owners.collect();
        if !owners.is_empty() {
            requests.push(Request::session_lanes());
            if self.optional_reads.sessions {
                let lanes: Vec<LaneId> = accepted.keys.iter().copied().collect();
                let owners = owners.into_iter().cloned().collect();
                requests.extend(Request::ready_in_sessions(owners, &lanes, accepted.at_most, needs.now));
            }
        }
    }
}

fn no_time() -> DatabaseError {
    DatabaseError::refused("the database told no time")
}

impl PostgresTables {
    fn requests_for_operations(&mut self, needs: &Needs<'_>) -> Vec<Request> {
        let mut requests = Vec::new();
        if !needs.activities.is_empty() {
            requests.push(Request::activities(&needs.activities));
            if self.optional_reads.sessions {
                requests.push(Request::sessions_of(&needs.activities));
            }
        }
        let mut keys = needs.activity_keys.clone();
        let is_looked_for = |key: &&_| !self.relied_on_cache || self.row_cache.has_activity(key);
        keys.extend(needs.new_activity_keys.iter().filter(is_looked_for));
        if !keys.is_empty() {
            requests.push(Request::activities_by_key(&keys));
        }
        if self.optional_reads.key_value_changes && !needs.key_value_changes.is_empty() {
            requests.push(Request::key_value_changes(&needs.key_value_changes));
        }
        if !needs.key_value_keys.is_empty() {
            requests.push(Request::key_value_keys(&needs.key_value_keys));
        }
        if self.optional_reads.custom_status && !needs.custom_status.is_empty() {
            requests.push(Request::custom_status(&needs.custom_status));
        }
        if self.optional_reads.first_events && !needs.first_events.is_empty() {
            let ids: Vec<String> = needs.first_events.iter().cloned().collect();
            let meaning = Meaning::FirstEvents(needs.first_events.clone());
            requests.push(Request::new(meaning, FIRST_EVENTS, parameters![ids]));
        }
        if !needs.deleted.is_empty() {
            let named = NamedInstances { ids: needs.deleted.clone(), ..NamedInstances::default() };
            requests.extend(Request::families(&named));
        }
        if !needs.letters.is_empty() {
            requests.push(Request::letters(&needs.letters));
        }
        requests.extend(needs.ending_nodes.iter().map(|name| Request::ending_node(name, needs.now)));
        requests
    }
}

/// All fetches together read one row more than they take: whether a row is left is part of the answer.
fn wanted(each: impl Iterator<Item = usize>) -> usize {
    each.fold(1_usize, usize::saturating_add).min(CANDIDATES_MAX)
}
