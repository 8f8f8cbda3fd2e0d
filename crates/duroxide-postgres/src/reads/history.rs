//! The stored rows of one instance.

use std::collections::{BTreeMap, HashMap};

use duroxide_core::{KvEntry, SystemStats};
use duroxide_provider::{
    ExecutionInfo,
    store::{EventRow, StoreFailure, StoredDescriptor, StoredExecution, StoredStatus},
};
use tokio_postgres::Row;

use super::each;
use crate::{
    PostgresEngine,
    connection::{Query, parameters},
    database_error::DatabaseError,
    record::rules_in_sql::is_end_of_instance,
    value::{Columns, number, time},
};

/// The number of a known instance.
macro_rules! known {
    () => {
        "(SELECT number FROM {s}.instance WHERE id = $1 AND known)"
    };
}
/// A removal takes the events of a pruned execution away from every read at once.
macro_rules! not_removed {
    () => {
        "NOT EXISTS (SELECT 1 FROM {s}.removal
            WHERE removal.instance = instance.number AND removal.execution_id = history.execution_id)"
    };
}
const HISTORY: &str = concat!(
    "SELECT history.event_id, history.data FROM {s}.instance JOIN {s}.history
        ON history.instance = instance.number AND history.execution_id = coalesce($2, instance.execution_id)
    WHERE instance.id = $1 AND instance.known AND ",
    not_removed!(),
    " ORDER BY history.event_id"
);
/// For each execution its events, and behind them the key-values that earlier executions left. One statement sees one state of
/// the store.
const EXECUTIONS_OF: &str = concat!(
    "WITH asked AS (SELECT asked.place, instance.number, asked.execution_id
        FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS asked (id, execution_id, place)
        JOIN {s}.instance ON instance.id = ANY (ARRAY[asked.id]) AND instance.known)
    SELECT instance.place, history.event_id, history.data, NULL AS key, NULL::bigint AS last_updated_at_ms
    FROM asked AS instance JOIN {s}.history
        ON history.instance = ANY (ARRAY[instance.number]) AND history.execution_id = instance.execution_id
    WHERE ",
    not_removed!(),
    " UNION ALL SELECT asked.place, NULL, kv.value, kv.key, kv.last_updated_at_ms
    FROM asked JOIN {s}.kv ON kv.instance = ANY (ARRAY[asked.number])
    ORDER BY place, event_id"
);
/// With the changes of the current execution.
const VALUES: &str = concat!(
    "SELECT coalesce(kv_change.key, kv.key) AS key,
        CASE WHEN kv_change.key IS NULL THEN kv.value ELSE kv_change.value END AS value
    FROM (SELECT key, value FROM {s}.kv WHERE instance = ",
    known!(),
    ") AS kv FULL JOIN (SELECT key, value FROM {s}.kv_change WHERE instance = ",
    known!(),
    ") AS kv_change ON kv_change.key = kv.key
    WHERE kv_change.key IS NULL OR kv_change.value IS NOT NULL"
);
/// The query of a status, without its last condition.
macro_rules! status {
    ($id:literal) => {
        concat!(
            "SELECT instance.id, instance.execution_id,
            CASE WHEN ",
            is_end_of_instance!("instance.status"),
            " THEN
                (SELECT data FROM {s}.history WHERE history.instance = instance.number
                    AND history.execution_id = instance.execution_id ORDER BY event_id DESC LIMIT 1)
            END AS terminal_event,
            custom_status.status AS custom_status, coalesce(custom_status.version, 0) AS version
        FROM {s}.instance LEFT JOIN {s}.custom_status ON custom_status.instance = instance.number
        WHERE instance.id = ",
            $id,
            " AND "
        )
    };
}
const STATUS: &str = concat!(status!("$1"), "instance.known");
const STATUSES: &str = concat!(status!("ANY ($1::text[])"), "instance.known");
const STATUS_OR_PENDING: &str = concat!(
    status!("$1"),
    "(instance.known OR EXISTS (SELECT 1 FROM {s}.message WHERE message.instance = instance.number AND kind <= 1))"
);
const FIRST_EVENTS: &str = "SELECT instance.id, first.data FROM {s}.instance CROSS JOIN LATERAL (
        SELECT data FROM {s}.history WHERE history.instance = instance.number
            AND history.execution_id = instance.execution_id ORDER BY event_id LIMIT 1) AS first
    WHERE instance.id = ANY ($1::text[]) AND instance.known";
const CUSTOM_STATUS: &str =
    concat!("SELECT status, version FROM {s}.custom_status WHERE instance = ", known!());
const HISTORY_SIZE: &str = "SELECT count(history.event_id) AS events,
        coalesce(sum(octet_length(history.data)), 0)::bigint AS bytes
    FROM {s}.instance LEFT JOIN {s}.history ON history.instance = instance.number
        AND history.execution_id = instance.execution_id
    WHERE instance.id = $1 AND instance.known GROUP BY instance.number";
const EXECUTIONS: &str =
    concat!("SELECT execution_id FROM {s}.execution WHERE instance = ", known!(), " ORDER BY execution_id");
const CURRENT_EXECUTION: &str = "SELECT execution_id FROM {s}.instance WHERE id = $1 AND known";
const EXECUTION_INFO: &str = concat!(
    "SELECT status, output, started_at, completed_at, (SELECT count(*) FROM {s}.history
            WHERE history.instance = execution.instance AND history.execution_id = $2) AS events
    FROM {s}.execution WHERE execution_id = $2 AND instance = ",
    known!()
);

fn by_id(sql: &'static str, instance: &str) -> Query {
    Query::new(sql, parameters![instance.to_owned()])
}

fn history_query(instance: &str, execution_id: Option<u64>) -> Query {
    Query::new(HISTORY, parameters![instance.to_owned(), execution_id.map(number)])
}

fn read_event(row: &Row) -> Result<EventRow, DatabaseError> {
    Ok(EventRow { event_id: row.number("event_id")?, data: row.column("data")? })
}

/// Adds an event, or a key-value that earlier executions left, to its execution.
fn add_row(row: &Row, executions: &mut [StoredExecution]) -> Result<(), DatabaseError> {
    // The database counts from 1.
    let place = usize::try_from(row.number("place")?).ok().and_then(|place| place.checked_sub(1));
    let Some(execution) = place.and_then(|place| executions.get_mut(place)) else { return Ok(()) };
    match row.column::<Option<String>>("key")? {
        None => execution.events.push(read_event(row)?),
        Some(key) => {
            let last_updated_at_ms = row.number("last_updated_at_ms")?;
            execution.kv.insert(key, KvEntry { value: row.column("data")?, last_updated_at_ms });
        }
    }
    Ok(())
}

fn read_stored_status(row: &Row) -> Result<StoredStatus, DatabaseError> {
    Ok(StoredStatus {
        execution_id: row.number("execution_id")?,
        terminal_event: row.column("terminal_event")?,
        custom_status: row.column("custom_status")?,
        custom_status_version: row.number("version")?,
    })
}

fn read_value(row: &Row) -> Result<(String, String), DatabaseError> {
    Ok((row.column("key")?, row.column("value")?))
}

impl PostgresEngine {
    pub(super) fn read_history(
        &mut self,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<EventRow>, StoreFailure> {
        self.read_each(history_query(instance, execution_id), read_event)
    }

    pub(super) fn read_execution(
        &mut self,
        instance: &str,
        execution_id: u64,
    ) -> Result<StoredExecution, StoreFailure> {
        let found = self.read_executions_of(&[(instance.to_owned(), execution_id)])?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Reads several executions.
    pub(super) fn read_executions_of(
        &mut self,
        executions: &[(String, u64)],
    ) -> Result<Vec<StoredExecution>, StoreFailure> {
        let (ids, numbers): (Vec<String>, Vec<i64>) = executions
            .iter()
            .map(|(instance, execution_id)| (instance.clone(), number(*execution_id)))
            .unzip();
        let rows = self.read(Query::new(EXECUTIONS_OF, parameters![ids, numbers]))?;
        let mut found = vec![StoredExecution::default(); executions.len()];
        for row in &rows {
            add_row(row, &mut found).map_err(DatabaseError::into_failure)?;
        }
        Ok(found)
    }

    /// One row, and the last event only if the instance has ended.
    pub(super) fn read_status(
        &mut self,
        instance: &str,
        pending_too: bool,
    ) -> Result<Option<StoredStatus>, StoreFailure> {
        let sql = if pending_too { STATUS_OR_PENDING } else { STATUS };
        self.read_first(by_id(sql, instance), read_stored_status)
    }

    /// Reads several instances.
    pub(super) fn read_statuses(
        &mut self,
        instances: &[String],
    ) -> Result<Vec<Option<StoredStatus>>, StoreFailure> {
        self.read_of_each(STATUSES, instances, read_stored_status)
    }

    pub(super) fn read_descriptor(
        &mut self,
        instance: &str,
    ) -> Result<Option<StoredDescriptor>, StoreFailure> {
        Ok(self.read_descriptors(&[instance.to_owned()])?.pop().flatten())
    }

    /// Reads several instances.
    pub(super) fn read_descriptors(
        &mut self,
        instances: &[String],
    ) -> Result<Vec<Option<StoredDescriptor>>, StoreFailure> {
        self.read_of_each(FIRST_EVENTS, instances, |row| {
            Ok(StoredDescriptor { first_event: row.column("data")? })
        })
    }

    /// The row that a statement finds for each of these instances, in their order.
    fn read_of_each<T: Clone>(
        &mut self,
        sql: &'static str,
        instances: &[String],
        make: impl Fn(&Row) -> Result<T, DatabaseError>,
    ) -> Result<Vec<Option<T>>, StoreFailure> {
        let query = Query::new(sql, parameters![instances.to_vec()]);
        let found = self.read_each(query, |row| Ok((row.column::<String>("id")?, make(row)?)))?;
        let found: HashMap<String, T> = found.into_iter().collect();
        Ok(instances.iter().map(|instance| found.get(instance).cloned()).collect())
    }

    pub(super) fn read_last_event_id(
        &mut self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Option<u64>, StoreFailure> {
        let events = self.read_history(instance, Some(execution_id))?;
        Ok(events.last().map(|event| event.event_id))
    }

    pub(super) fn read_custom_status(
        &mut self,
        instance: &str,
    ) -> Result<Option<(Option<String>, u64)>, StoreFailure> {
        self.read_first(by_id(CUSTOM_STATUS, instance), |row| {
            Ok((row.column("status")?, row.number("version")?))
        })
    }

    pub(super) fn read_values(&mut self, instance: &str) -> Result<BTreeMap<String, String>, StoreFailure> {
        Ok(self.read_each(by_id(VALUES, instance), read_value)?.into_iter().collect())
    }

    pub(super) fn read_stats(&mut self, instance: &str) -> Result<Option<SystemStats>, StoreFailure> {
        let [sizes, values] = two(self.read_all(&[by_id(HISTORY_SIZE, instance), by_id(VALUES, instance)])?);
        let sizes = each(&sizes, |row| Ok((row.number("events")?, row.number("bytes")?)))?;
        let values = each(&values, read_value)?;
        Ok(sizes.first().map(|(events, bytes)| SystemStats {
            history_event_count: *events,
            history_size_bytes: *bytes,
            queue_pending_count: 0,
            kv_user_key_count: values.len() as u64,
            kv_total_value_bytes: values.iter().map(|(_, value)| value.len() as u64).sum(),
        }))
    }

    pub(super) fn read_executions(&mut self, instance: &str) -> Result<Vec<u64>, StoreFailure> {
        self.read_each(by_id(EXECUTIONS, instance), |row| row.number("execution_id"))
    }

    pub(super) fn read_current_execution(&mut self, instance: &str) -> Result<Option<u64>, StoreFailure> {
        self.read_first(by_id(CURRENT_EXECUTION, instance), |row| row.number("execution_id"))
    }

    pub(super) fn read_execution_info(
        &mut self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Option<ExecutionInfo>, StoreFailure> {
        let query = Query::new(EXECUTION_INFO, parameters![instance.to_owned(), number(execution_id)]);
        self.read_first(query, |row| {
            Ok(ExecutionInfo {
                execution_id,
                status: row.column("status")?,
                output: row.column("output")?,
                started_at: row.time("started_at")?.as_millis(),
                completed_at: row.column::<Option<i64>>("completed_at")?.map(|at| time(at).as_millis()),
                event_count: usize::try_from(row.column::<i64>("events")?).unwrap_or_default(),
            })
        })
    }
}

/// The answers to two statements.
fn two(answers: Vec<Vec<Row>>) -> [Vec<Row>; 2] {
    let mut answers = answers.into_iter();
    [answers.next().unwrap_or_default(), answers.next().unwrap_or_default()]
}
