//! Summaries: instances by name, version and status, and the queues by needs.

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::{
    InstanceSummary, LaneSummary, QueueSummary, RouteSummary, SummaryRequest,
    store::{InstanceTally, StoreFailure, recorded_at_ms},
};
use rusqlite::Row;

use super::listing::stored_time;
use crate::{
    columns::columns,
    db::{Db, ONLY, TRIPLE, lossy_text, micros, time, triple, unsigned},
    tables::{
        instances::{is_end_of_instance, stray_route},
        mailboxes::waits_since,
        payloads::whole_data,
    },
};

// By position, because every instance is read. The end of an instance is read only if it may be in the period: a round
// that ends an instance changes it.
columns!(instance as tallied_columns: instance_id, name, version, status, created_at,
    ended_at = concat!("CASE WHEN updated_at >= ?1 AND ", is_end_of_instance!("status"), " THEN
            (SELECT completed_at FROM execution WHERE execution.instance = instance.id
                AND execution.execution_id = instance.execution_id) END"));
/// One pass over the table, in its order: with an index SQLite would seek each row, and sort to group.
const INSTANCES: &str = concat!("SELECT ", tallied_columns!(), " FROM instance NOT INDEXED WHERE known = 1");

const ROUTES: &str = "SELECT id, name, version, major, minor, patch FROM route";
const READY_BY_ROUTE: &str = concat!(
    "SELECT route, count(*) AS instances FROM instance INDEXED BY instance_ready
    WHERE ready IS NOT NULL AND route > ",
    stray_route!(),
    " GROUP BY route"
);
const OLDEST_ON_ROUTE: &str = concat!(
    "SELECT (SELECT min(",
    waits_since!(),
    ") FROM message WHERE message.instance = instance.id)
    FROM instance INDEXED BY instance_ready WHERE route = ?1 AND ready IS NOT NULL ORDER BY ready LIMIT 1"
);
/// A locked instance waits for the end of its lease. NULL: it has no route.
const LOCKED_BY_ROUTE: &str = concat!(
    "SELECT nullif(route, ",
    stray_route!(),
    ") AS route, count(*) AS instances FROM instance INDEXED BY instance_wake
    WHERE wake_at > ?1 AND wake_at <= ?2 AND lock_until > ?1 GROUP BY 1"
);
const WAITING: &str = "SELECT count(*) FROM instance INDEXED BY instance_wake WHERE wake_at IS NOT NULL";
const NEXT_TIMER: &str = "SELECT wake_at FROM instance INDEXED BY instance_wake
    WHERE wake_at IS NOT NULL AND (lock_until IS NULL OR lock_until <= ?1) ORDER BY wake_at LIMIT 1";

const LANES: &str = "SELECT id, tag, activity_name FROM lane";
const READY_BY_LANE: &str =
    "SELECT lane, count(*) AS ready, min(id) AS first FROM activity INDEXED BY activity_ready
    WHERE ready IS NOT NULL AND session_id IS NULL GROUP BY lane";
const READY_BY_SESSION_LANE: &str =
    "SELECT lane, count(*) AS ready, min(id) AS first FROM activity INDEXED BY activity_session_ready
    WHERE ready IS NOT NULL AND session_id IS NOT NULL GROUP BY lane";
/// Activities that run or are hidden; those that became due a moment ago are ready.
const WAITING_BY_LANE: &str = "SELECT lane, count(*) FILTER (WHERE lock_until > ?1) AS running,
        count(*) FILTER (WHERE (lock_until > ?1) IS NOT TRUE AND wake_at > ?1) AS delayed,
        count(*) FILTER (WHERE wake_at <= ?1) AS due,
        min(CASE WHEN wake_at <= ?1 THEN id END) AS first
    FROM activity INDEXED BY activity_wake WHERE wake_at IS NOT NULL GROUP BY lane";
const SCHEDULE: &str = concat!(
    "SELECT ",
    whole_data!("history"),
    " FROM history JOIN activity ON history.instance = activity.instance
        AND history.execution_id = activity.execution_id AND history.event_id = activity.activity_id
    WHERE activity.id = ?1"
);

/// Later leases are not searched: between now and then the timers of a whole store may be due.
const LEASE_MAX: Duration = Duration::from_secs(3600);

pub(crate) fn instances(db: &Db, request: &SummaryRequest) -> Result<InstanceSummary, StoreFailure> {
    let mut tally = InstanceTally::new(request);
    db.all(INSTANCES, [stored_time(request.from_ms)], |row| {
        let text = |column| row.get_ref(column).map(|value| value.as_str().unwrap_or_default());
        let ended_at = row.get::<_, Option<i64>>(instance::ended_at)?.map(|at| time(at).as_millis());
        let created_at = time(row.get(instance::created_at)?).as_millis();
        let handler = [text(instance::name)?, text(instance::version)?, text(instance::status)?];
        tally.add(text(instance::instance_id)?, handler, created_at, ended_at);
        Ok(())
    })?;
    Ok(tally.into_summary())
}

pub(crate) fn queues(db: &Db, now: Timestamp) -> Result<QueueSummary, StoreFailure> {
    let orchestrations = routes(db, now)?;
    let locked: u64 = orchestrations.iter().map(|route| route.locked).sum();
    let waiting: u64 = db.value(WAITING, [])?.map(unsigned).unwrap_or_default();
    let next: Option<i64> = db.value(NEXT_TIMER, [micros(now)])?;
    Ok(QueueSummary {
        now_ms: now.as_millis(),
        orchestrations,
        activities: lanes(db, now)?,
        next_timer_ms: next.map(|at| time(at).as_millis_ceil()),
        waiting_timers: waiting.saturating_sub(locked),
    })
}

fn routes(db: &Db, now: Timestamp) -> Result<Vec<RouteSummary>, StoreFailure> {
    let mut routes: BTreeMap<Option<i64>, RouteSummary> = BTreeMap::new();
    let by_route = |row: &Row<'_>| Ok((row.get::<_, Option<i64>>("route")?, unsigned(row.get("instances")?)));
    for (route, count) in db.all(READY_BY_ROUTE, [], by_route)? {
        let oldest: Option<Option<i64>> = db.value(OLDEST_ON_ROUTE, [route])?;
        let oldest_ready_ms = oldest.flatten().map(|since| time(since).as_millis());
        routes.insert(route, RouteSummary { ready: count, oldest_ready_ms, ..RouteSummary::default() });
    }
    let leases = (micros(now), micros(now.saturating_add(LEASE_MAX)));
    for (route, count) in db.all(LOCKED_BY_ROUTE, leases, by_route)? {
        routes.entry(route).or_default().locked = count;
    }
    let named = db.all(ROUTES, [], |row| {
        Ok((row.get::<_, Option<i64>>("id")?, row.get("name")?, row.get("version")?, triple(row, TRIPLE)?))
    })?;
    for (id, name, version, pinned) in named {
        if let Some(summary) = routes.get_mut(&id) {
            let pinned = pinned.map(|pinned| pinned.to_string());
            *summary = RouteSummary { name, version, pinned, ..std::mem::take(summary) };
        }
    }
    let mut routes: Vec<_> = routes.into_values().collect();
    routes.sort_unstable();
    Ok(routes)
}

/// A lane, and its activity that comes first.
#[derive(Default)]
struct Lane {
    summary: LaneSummary,
    first: Option<i64>,
}

impl Lane {
    fn add_ready(&mut self, count: i64, first: Option<i64>) {
        self.summary.ready += unsigned(count);
        self.first = self.first.into_iter().chain(first).min();
    }
}

fn lanes(db: &Db, now: Timestamp) -> Result<Vec<LaneSummary>, StoreFailure> {
    let mut lanes: BTreeMap<i64, Lane> = BTreeMap::new();
    for sql in [READY_BY_LANE, READY_BY_SESSION_LANE] {
        let ready = db.all(sql, [], |row| Ok((row.get("lane")?, row.get("ready")?, row.get("first")?)))?;
        for (lane, count, first) in ready {
            lanes.entry(lane).or_default().add_ready(count, first);
        }
    }
    let waiting = db.all(WAITING_BY_LANE, [micros(now)], |row| {
        Ok((row.get("lane")?, (row.get("running")?, row.get("delayed")?), row.get("due")?, row.get("first")?))
    })?;
    for (lane, (running, delayed), due, first) in waiting {
        let lane = lanes.entry(lane).or_default();
        (lane.summary.running, lane.summary.delayed) = (unsigned(running), unsigned(delayed));
        lane.add_ready(due, first);
    }
    let named = db.all(LANES, [], |row| {
        Ok((row.get::<_, i64>("id")?, row.get("tag")?, row.get::<_, String>("activity_name")?))
    })?;
    let mut summaries = Vec::new();
    for (id, tag, name) in named {
        let Some(Lane { summary, first }) = lanes.remove(&id) else { continue };
        let oldest_ready_ms = first.map(|first| scheduled_at_ms(db, first)).transpose()?.flatten();
        summaries.push(LaneSummary { name, tag, oldest_ready_ms, ..summary });
    }
    summaries.sort_unstable();
    Ok(summaries)
}

fn scheduled_at_ms(db: &Db, activity: i64) -> Result<Option<u64>, StoreFailure> {
    let event = db.first(SCHEDULE, [activity], |row| lossy_text(row, ONLY))?;
    Ok(event.and_then(|event| recorded_at_ms(&event)))
}
