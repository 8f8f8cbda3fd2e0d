//! Summaries: instances by name, version and status, and the queues by needs.

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::{
    InstanceCount, InstanceNeeds, InstanceSummary, LaneSummary, QueueSummary, RouteSummary, SummaryRequest,
    rules::Lane,
    store::{StoreFailure, recorded_at_ms},
};
use tokio_postgres::Row;

use super::overview::{NOW, defined, needs_of};
use crate::{
    PostgresEngine,
    connection::{Query, parameters},
    database_error::DatabaseError,
    record::rules_in_sql::{is_end_of_instance, waits_since},
    value::{Columns, micros, span, time},
};

/// One pass over the instances. Reads the end of an instance only if `updated_at`, which every round sets, is in the period.
const COUNTS: &str = concat!(
    "SELECT coalesce(instance.name, '') AS name, coalesce(instance.version, '') AS version,
        coalesce(instance.status, '') AS status,
        CASE WHEN execution.completed_at >= $1 AND execution.completed_at < $2
            THEN (execution.completed_at / 1000 - $1::bigint / 1000) / $3::bigint END AS bucket,
        count(*) AS instances, min(instance.created_at) AS first
    FROM {s}.instance LEFT JOIN {s}.execution ON instance.updated_at >= $1 AND ",
    is_end_of_instance!("instance.status"),
    " AND execution.instance = instance.number AND execution.execution_id = instance.execution_id
    WHERE instance.known GROUP BY 1, 2, 3, 4"
);
const STARTED: &str =
    "SELECT (created_at / 1000 - $1::bigint / 1000) / $3::bigint AS bucket, count(*) AS instances
    FROM {s}.instance WHERE known AND created_at >= $1 AND created_at < $2 GROUP BY 1";
const OLDEST_RUNNING: &str = "SELECT id, created_at FROM {s}.instance
    WHERE known AND ended IS NULL AND status = 'Running' ORDER BY created_at LIMIT 1";

/// The first instance of each route shows how long something waits there.
const READY: &str = concat!(
    "SELECT counted.route, route.definition, counted.instances, (SELECT min(",
    waits_since!(),
    ") FROM {s}.message WHERE message.instance =
            (SELECT first.instance FROM {s}.ready_instance AS first WHERE first.route = counted.route
             ORDER BY first.place LIMIT 1)) AS since
    FROM (SELECT route, count(*) AS instances FROM {s}.ready_instance GROUP BY route) AS counted
    JOIN {s}.route ON route.id = counted.route"
);
/// A locked instance waits for the end of its lease.
const LOCKED: &str = "SELECT instance.route, route.definition, count(*) AS instances
    FROM {s}.instance LEFT JOIN {s}.route ON route.id = instance.route
    WHERE instance.look_at <= $1::bigint + $2::bigint AND instance.wait_until <= $1 + $2 AND instance.lock_until > $1
    GROUP BY 1, 2";
const WAITING: &str = "SELECT count(*) AS instances FROM {s}.instance 
    WHERE look_at IS NOT NULL AND wait_until IS NOT NULL";
/// Only for a lease, or a wait without an end, may `look_at` be too early.
const NEXT_TIMER: &str = "SELECT wait_until FROM {s}.instance
    WHERE look_at IS NOT NULL AND wait_until IS NOT NULL AND (lock_until IS NULL OR lock_until <= $1)
    ORDER BY look_at LIMIT 1";
/// Items that became due a moment ago are ready. The event of the first activity has the time at which it was
/// scheduled.
const LANES: &str = "SELECT lane.definition, counted.*,
        (SELECT history.data FROM {s}.activity JOIN {s}.history ON history.instance = activity.instance
            AND history.execution_id = activity.execution_id AND history.event_id = activity.activity_id
         WHERE activity.number = counted.first) AS event
    FROM (SELECT lane AS id, count(*) FILTER (WHERE lock_until > $1) AS running,
            count(*) FILTER (WHERE (lock_until > $1) IS NOT TRUE AND wait_until > $1) AS delayed,
            count(*) FILTER (WHERE (lock_until > $1) IS NOT TRUE AND (wait_until > $1) IS NOT TRUE) AS ready,
            min(number) FILTER (WHERE (lock_until > $1) IS NOT TRUE AND (wait_until > $1) IS NOT TRUE) AS first
        FROM {s}.activity GROUP BY lane) AS counted
    JOIN {s}.lane ON lane.id = counted.id";

/// Later leases are not searched: between now and then the timers of a whole store may be due.
const LEASE_MAX: Duration = Duration::from_secs(3600);

impl PostgresEngine {
    pub(super) fn read_instance_summary(
        &mut self,
        request: &SummaryRequest,
    ) -> Result<InstanceSummary, StoreFailure> {
        // Without a length no time is in the period.
        let to = if request.bucket_ms == 0 { request.from_ms } else { request.end_ms() };
        let length = i64::try_from(request.bucket_ms).unwrap_or(i64::MAX).max(1);
        let [from, to] = [request.from_ms, to].map(|ms| micros(Timestamp::from_millis(ms)));
        let answers = self.read_all(&[
            Query::of_whole_tables(COUNTS, parameters![from, to, length]),
            Query::of_whole_tables(STARTED, parameters![from, to, length]),
            Query::of_whole_tables(OLDEST_RUNNING, Vec::new()),
        ])?;
        summary(&answers, request).map_err(DatabaseError::into_failure)
    }

    pub(super) fn read_queue_summary(&mut self) -> Result<QueueSummary, StoreFailure> {
        let asked = Query::new(NOW, parameters![self.time_of_reads().map(micros)]);
        let now = self.read_first(asked, |row| row.column::<i64>("now"))?.unwrap_or_default();
        let answers = self.read_all(&[
            Query::of_whole_tables(READY, Vec::new()),
            Query::of_whole_tables(LOCKED, parameters![now, span(LEASE_MAX)]),
            Query::of_whole_tables(WAITING, Vec::new()),
            Query::of_whole_tables(NEXT_TIMER, parameters![now]),
            Query::of_whole_tables(LANES, parameters![now]),
        ])?;
        queues(&answers, time(now)).map_err(DatabaseError::into_failure)
    }
}

fn summary(answers: &[Vec<Row>], request: &SummaryRequest) -> Result<InstanceSummary, DatabaseError> {
    let mut summary = InstanceSummary::empty(request);
    let [counted, started, oldest] = answers else { return Ok(summary) };
    let mut counts: BTreeMap<[String; 3], u64> = BTreeMap::new();
    for row in counted {
        let identity: [String; 3] = [row.column("name")?, row.column("version")?, row.column("status")?];
        let (bucket, count) = (row.column::<Option<i64>>("bucket")?, row.number("instances")?);
        let [_, _, status] = &identity;
        match status.as_str() {
            "Completed" => add(&mut summary.completed, bucket, count),
            "Failed" => add(&mut summary.failed, bucket, count),
            _ => {}
        }
        *counts.entry(identity).or_default() += count;
    }
    let counts = counts.into_iter();
    summary.counts = counts
        .map(|([name, version, status], count)| InstanceCount { name, version, status, count })
        .collect();
    for row in started {
        add(&mut summary.started, Some(row.column("bucket")?), row.number("instances")?);
    }
    for row in oldest {
        summary.oldest_running = Some((row.column("id")?, row.time("created_at")?.as_millis()));
    }
    Ok(summary)
}

fn add(buckets: &mut [u64], bucket: Option<i64>, count: u64) {
    let bucket = bucket.and_then(|bucket| usize::try_from(bucket).ok());
    if let Some(total) = bucket.and_then(|bucket| buckets.get_mut(bucket)) {
        *total += count;
    }
}

fn queues(answers: &[Vec<Row>], now: Timestamp) -> Result<QueueSummary, DatabaseError> {
    let mut summary = QueueSummary { now_ms: now.as_millis(), ..QueueSummary::default() };
    let [ready, locked, waiting, next_timer, lanes] = answers else { return Ok(summary) };
    summary.orchestrations = routes(ready, locked)?;
    summary.activities = lanes.iter().map(lane).collect::<Result<_, DatabaseError>>()?;
    summary.activities.sort_unstable();
    let locked: u64 = summary.orchestrations.iter().map(|route| route.locked).sum();
    for row in waiting {
        summary.waiting_timers = row.number("instances")?.saturating_sub(locked);
    }
    for row in next_timer {
        summary.next_timer_ms = Some(row.time("wait_until")?.as_millis_ceil());
    }
    Ok(summary)
}

fn routes(ready: &[Row], locked: &[Row]) -> Result<Vec<RouteSummary>, DatabaseError> {
    let mut routes: BTreeMap<Option<i64>, RouteSummary> = BTreeMap::new();
    for row in ready {
        let route = RouteSummary {
            ready: row.number("instances")?,
            oldest_ready_ms: row.column::<Option<i64>>("since")?.map(|since| time(since).as_millis()),
            ..route(row)?
        };
        routes.insert(row.column("route")?, route);
    }
    for row in locked {
        let held = row.number("instances")?;
        match routes.get_mut(&row.column("route")?) {
            Some(route) => route.locked = held,
            None => drop(routes.insert(row.column("route")?, RouteSummary { locked: held, ..route(row)? })),
        }
    }
    let mut routes: Vec<_> = routes.into_values().collect();
    routes.sort_unstable();
    Ok(routes)
}

/// The needs of a route; empty without a route.
fn route(row: &Row) -> Result<RouteSummary, DatabaseError> {
    let definition: Option<String> = row.column("definition")?;
    let needs = if definition.is_some() { needs_of(row)? } else { InstanceNeeds::default() };
    let pinned = needs.pinned.map(|pinned| pinned.to_string());
    Ok(RouteSummary { name: needs.name, version: needs.version, pinned, ..RouteSummary::default() })
}

fn lane(row: &Row) -> Result<LaneSummary, DatabaseError> {
    let Lane { tag, name } = defined(row)?;
    let event: Option<String> = row.column("event")?;
    Ok(LaneSummary {
        name,
        tag,
        ready: row.number("ready")?,
        running: row.number("running")?,
        delayed: row.number("delayed")?,
        oldest_ready_ms: event.and_then(|event| recorded_at_ms(&event)),
    })
}
