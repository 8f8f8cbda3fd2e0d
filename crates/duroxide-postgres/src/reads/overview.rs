//! Counts and lists over the whole store.

use duroxide_provider::{
    DeadLetter, DeadLetterQueue, QueueDepths, ScheduledActivityIdentifier, SystemMetrics,
    rules::{Lane, Origin, Route},
    store::{
        CANCELLATION, InstanceNeeds, ReadyActivity, ReadyInstance, RunningVersion, StoreFailure, StoredNode,
    },
};
use tokio_postgres::Row;

use super::each;
use crate::{
    PostgresEngine,
    connection::{Query, parameters},
    database_error::DatabaseError,
    record::rules_in_sql::{holds, waits_since},
    record::{Letter, Record, read_pinned},
    tables::nodes,
    value::{Columns, limit, micros, number, time},
};

/// The time of a read: the database's, unless the caller gives one.
pub(super) const NOW: &str =
    "SELECT coalesce($1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS now";
/// Rows that wait for their removal are counted nowhere.
const SYSTEM_METRICS: &str = "SELECT
    (SELECT count(*) FROM {s}.instance WHERE known) AS instances,
    (SELECT count(*) FROM {s}.execution) - (SELECT count(*) FROM {s}.removal
        JOIN {s}.execution ON execution.instance = removal.instance
        WHERE removal.execution_id IS NULL) AS executions,
    (SELECT count(*) FROM {s}.instance WHERE known AND ended IS NULL AND status = 'Running') AS running,
    (SELECT count(*) FROM {s}.instance WHERE ended = 'Completed') AS completed,
    (SELECT count(*) FROM {s}.instance WHERE ended = 'Failed') AS failed,
    (SELECT count(*) FROM {s}.history) - (SELECT count(*) FROM {s}.removal
        JOIN {s}.history ON history.instance = removal.instance
            AND history.execution_id = coalesce(removal.execution_id, history.execution_id)) AS events";
/// Rows that no live lock holds.
const QUEUE_DEPTHS: &str = concat!(
    "SELECT
    (SELECT count(*) FROM {s}.message JOIN {s}.instance ON instance.number = message.instance
        WHERE instance.lock_until IS NULL OR instance.lock_until <= coalesce($1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
            OR (",
    holds!("instance.extent_mark", "instance.extent_up_to", "instance.extent_at"),
    ") IS NOT TRUE) AS messages,
    (SELECT count(*) FROM {s}.activity WHERE lock_until IS NULL OR lock_until <= coalesce($1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)) AS activities"
);
const PENDING: &str = "SELECT count(DISTINCT message.instance) AS pending FROM {s}.message
    JOIN {s}.instance ON instance.number = message.instance WHERE message.kind <= 1 AND NOT instance.known";
const CHILDREN: &str = "SELECT id FROM {s}.instance WHERE parent = $1 ORDER BY number";
const RUNNING_VERSIONS: &str = "SELECT pinned_major, pinned_minor, pinned_patch,
        CASE WHEN pinned_major IS NULL THEN
            (SELECT data FROM {s}.history WHERE history.instance = instance.number
             AND history.execution_id = instance.execution_id ORDER BY event_id LIMIT 1) END AS first_event
    FROM {s}.instance LEFT JOIN {s}.execution ON execution.instance = instance.number
        AND execution.execution_id = instance.execution_id
    WHERE instance.known AND instance.ended IS NULL AND instance.status = 'Running' ORDER BY instance.number";
const DEAD_LETTERS: &str =
    "SELECT {columns dead_letter} FROM {s}.dead_letter ORDER BY dead_letter.number LIMIT $1";
/// `QueuedMessage::is_from_client` in SQL.
const MAILBOX_HOLDS: &str = "SELECT count(*) AS messages FROM (SELECT 1 FROM {s}.message
    WHERE instance = (SELECT number FROM {s}.instance WHERE id = $1)
        AND due_at = 0 AND kind > 1 AND key IS NULL LIMIT $2) AS counted";
const ROUTES: &str = "SELECT id, definition FROM {s}.route ORDER BY id";
const READY: &str = concat!(
    "SELECT instance.id, instance.ready_number, route.definition, (SELECT min(",
    waits_since!(),
    ") FROM {s}.message WHERE message.instance = instance.number) AS since,
        EXISTS (SELECT 1 FROM {s}.message WHERE message.instance = instance.number
            AND left(message.data, length($3)) = $3) AS cancelled
    FROM unnest($1::bigint[]) AS accepted (route) JOIN {s}.route ON route.id = accepted.route
    CROSS JOIN LATERAL (SELECT instance.* FROM {s}.ready_instance
        JOIN {s}.instance ON instance.number = ready_instance.instance
        WHERE ready_instance.route = accepted.route ORDER BY ready_instance.place LIMIT $2) AS instance
    ORDER BY instance.ready_number LIMIT $2"
);
const LANES: &str = "SELECT id, definition FROM {s}.lane ORDER BY id";
const READY_ACTIVITIES: &str =
    "SELECT instance.id, activity.execution_id, activity.activity_id, lane.definition
    FROM unnest($1::bigint[]) AS accepted (lane) JOIN {s}.lane ON lane.id = accepted.lane
    CROSS JOIN LATERAL (SELECT * FROM {s}.activity WHERE activity.lane = accepted.lane
        AND activity.wait_until IS NULL ORDER BY activity.number LIMIT $2) AS activity
    JOIN {s}.instance ON instance.number = activity.instance
    ORDER BY activity.number LIMIT $2";

impl PostgresEngine {
    pub(super) fn read_system_metrics(&mut self) -> Result<SystemMetrics, StoreFailure> {
        let metrics = self.read_first(Query::of_whole_tables(SYSTEM_METRICS, Vec::new()), |row| {
            Ok(SystemMetrics {
                total_instances: row.number("instances")?,
                total_executions: row.number("executions")?,
                running_instances: row.number("running")?,
                completed_instances: row.number("completed")?,
                failed_instances: row.number("failed")?,
                total_events: row.number("events")?,
            })
        })?;
        Ok(metrics.unwrap_or_default())
    }

    pub(super) fn read_queue_depths(&mut self) -> Result<QueueDepths, StoreFailure> {
        let query = Query::of_whole_tables(QUEUE_DEPTHS, parameters![self.time_of_reads().map(micros)]);
        let depths = self.read_first(query, |row| {
            Ok(QueueDepths {
                orchestrator_queue: usize::try_from(row.column::<i64>("messages")?).unwrap_or_default(),
                worker_queue: usize::try_from(row.column::<i64>("activities")?).unwrap_or_default(),
                timer_queue: 0,
            })
        })?;
        Ok(depths.unwrap_or_default())
    }

    pub(super) fn read_pending(&mut self) -> Result<u64, StoreFailure> {
        let pending =
            self.read_first(Query::of_whole_tables(PENDING, Vec::new()), |row| row.number("pending"))?;
        Ok(pending.unwrap_or_default())
    }

    pub(super) fn read_children(&mut self, instance: &str) -> Result<Vec<String>, StoreFailure> {
        self.read_each(Query::new(CHILDREN, parameters![instance.to_owned()]), |row| row.column("id"))
    }

    pub(super) fn read_running_versions(&mut self) -> Result<Vec<RunningVersion>, StoreFailure> {
        let versions = self.read_each(Query::of_whole_tables(RUNNING_VERSIONS, Vec::new()), |row| {
            let first_event: Option<String> = row.column("first_event")?;
            Ok(match read_pinned(row)? {
                Some(pinned) => Some(RunningVersion::Pinned(pinned)),
                None => first_event.map(|first_event| RunningVersion::Unpinned { first_event }),
            })
        })?;
        Ok(versions.into_iter().flatten().collect())
    }

    pub(super) fn read_dead_letters(&mut self, max: Option<u32>) -> Result<Vec<DeadLetter>, StoreFailure> {
        let query = Query::new(DEAD_LETTERS, parameters![max.map(i64::from)]);
        self.read_each(query, |row| Letter::read(row).map(shown))
    }

    pub(super) fn read_nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure> {
        self.read_each(Query::new(nodes::ALL, Vec::new()), nodes::stored_node)
    }

    pub(super) fn read_mailbox_holds(&mut self, instance: &str, at_least: u64) -> Result<bool, StoreFailure> {
        let max = i64::try_from(at_least).unwrap_or(i64::MAX);
        let query = Query::new(MAILBOX_HOLDS, parameters![instance.to_owned(), max]);
        let held = self.read_first(query, |row| row.number("messages"))?;
        Ok(held.unwrap_or_default() >= at_least)
    }

    pub(super) fn read_ready_instances(
        &mut self,
        wanted: &dyn Fn(&InstanceNeeds) -> bool,
        max: usize,
    ) -> Result<Vec<ReadyInstance>, StoreFailure> {
        let routes = self.read(Query::new(ROUTES, Vec::new()))?;
        let routes = each(&routes, |row| Ok((row.number("id")?, needs_of(row)?)))?;
        let accepted: Vec<i64> =
            routes.iter().filter(|(_, needs)| wanted(needs)).map(|(id, _)| number(*id)).collect();
        let query = Query::new(READY, parameters![accepted, limit(max), CANCELLATION.to_owned()]);
        self.read_each(query, |row| {
            Ok(ReadyInstance {
                instance: row.column("id")?,
                needs: needs_of(row)?,
                since: row.column::<Option<i64>>("since")?.map(time).unwrap_or_default(),
                cancel_requested: row.column("cancelled")?,
            })
        })
    }

    pub(super) fn read_ready_activities(
        &mut self,
        wanted: &dyn Fn(&str, Option<&str>) -> bool,
        max: usize,
    ) -> Result<Vec<ReadyActivity>, StoreFailure> {
        let lanes = self.read(Query::new(LANES, Vec::new()))?;
        let lanes = each(&lanes, |row| Ok((row.number("id")?, defined::<Lane>(row)?)))?;
        let picked = lanes.iter().filter(|(_, lane)| wanted(&lane.name, lane.tag.as_deref()));
        let accepted: Vec<i64> = picked.map(|(id, _)| number(*id)).collect();
        self.read_each(Query::new(READY_ACTIVITIES, parameters![accepted, limit(max)]), |row| {
            let Lane { tag, name } = defined(row)?;
            let id = ScheduledActivityIdentifier {
                instance: row.column("id")?,
                execution_id: row.number("execution_id")?,
                activity_id: row.number("activity_id")?,
            };
            Ok(ReadyActivity { id, name, tag })
        })
    }
}

pub(super) fn defined<T: serde::de::DeserializeOwned>(row: &Row) -> Result<T, DatabaseError> {
    serde_json::from_str(&row.column::<String>("definition")?)
        .map_err(|error| DatabaseError::refused(error.to_string()))
}

pub(super) fn needs_of(row: &Row) -> Result<InstanceNeeds, DatabaseError> {
    let Route { name, version, pinned } = defined(row)?;
    Ok(InstanceNeeds { name, version, pinned })
}

/// A dead letter as users see it.
pub(super) fn shown(letter: Letter) -> DeadLetter {
    let queue = match letter.row.origin {
        Origin::Message { .. } => DeadLetterQueue::Orchestrator,
        Origin::Activity { .. } => DeadLetterQueue::Worker,
    };
    DeadLetter {
        id: letter.number.to_string(),
        queue,
        instance_id: letter.row.instance_id,
        payload: letter.row.payload,
        reason: letter.row.reason,
        attempt_count: letter.row.attempts,
        dead_lettered_at_ms: letter.row.dead_lettered_at.as_millis(),
    }
}
