//! Reads. Each call sees one state. Mailboxes are invisible to all but the queue depths and the snapshot; an instance whose
//! start is queued is shown by the reads that mention it.

mod answers;
pub(crate) mod bulk;
mod export;
mod fullness;
mod listing;
mod queued_work;
mod ready;
mod snapshot;
mod summary;

pub use self::export::SqliteExport;
use std::collections::BTreeMap;

use duroxide_core::{SystemStats, Timestamp};
use duroxide_provider::{
    ExecutionInfo, QueueDepths, SystemMetrics,
    rules::identity_in_event,
    store::{EventRow, RunningVersion, StoreFailure, StoredDescriptor, StoredExecution, StoredStatus},
};

use rusqlite::Row;

pub(crate) use self::fullness::Fullness;
use crate::{
    columns::columns,
    db::{Db, TRIPLE, lossy_text, lossy_text_or_null, micros, number, time, triple, unsigned},
    tables::{
        executions::{OUTPUT, first_event, output, output_columns},
        instances::is_end_of_instance,
        mailboxes::held,
        payloads::{whole_bytes, whole_data},
        state::{custom_status, key_values},
    },
};

columns!(instance as known_columns: id, execution_id);
const KNOWN: &str =
    concat!("SELECT ", known_columns!(), " FROM instance WHERE instance_id = ?1 AND known = 1");
columns!(history as event_columns: event_id, data = whole_data!("history"));
const HISTORY: &str = concat!(
    "SELECT ",
    event_columns!(),
    " FROM history WHERE instance = ?1 AND execution_id = ?2
      AND NOT EXISTS (SELECT 1 FROM removal WHERE instance = ?1 AND execution_id = ?2) ORDER BY event_id"
);
columns!(status as status_columns:
    execution_id = "i.execution_id",
    terminal_event = concat!(
        "CASE WHEN ",
        is_end_of_instance!("i.status"),
        " THEN (SELECT ",
        whole_data!("h"),
        " FROM history h WHERE h.instance = i.id AND h.execution_id = i.execution_id
             ORDER BY event_id DESC LIMIT 1) END"
    ),
    custom_status = "c.status",
    custom_status_version = "coalesce(c.version, 0)",
);
/// The query of [`read_status`], without its last condition.
macro_rules! status {
    () => {
        concat!(
            "SELECT ",
            status_columns!(),
            "
    FROM instance i LEFT JOIN custom_status c ON c.instance = i.id
    WHERE i.instance_id = ?1 AND "
        )
    };
}
const STATUS: &str = concat!(status!(), "i.known = 1");
const STATUS_OR_PENDING: &str = concat!(
    status!(),
    "(i.known = 1 OR EXISTS (SELECT 1 FROM message m WHERE m.instance = i.id AND m.kind <= 1))"
);
const LAST_EVENT_ID: &str = "SELECT event_id FROM history WHERE instance = ?1 AND execution_id = ?2
      AND NOT EXISTS (SELECT 1 FROM removal WHERE instance = ?1 AND execution_id = ?2)
    ORDER BY event_id DESC LIMIT 1";
const HISTORY_SIZE: &str = concat!(
    "SELECT count(*) AS events, coalesce(sum(",
    whole_bytes!("history"),
    "), 0) AS bytes FROM history WHERE instance = ?1 AND execution_id = ?2"
);
const EXECUTIONS: &str = "SELECT execution_id FROM execution WHERE instance = ?1 ORDER BY execution_id";
const EXECUTION_INFO: &str = concat!(
    "SELECT status, started_at, completed_at,
        (SELECT count(*) FROM history WHERE history.instance = ?1 AND history.execution_id = ?2) AS event_count, ",
    output_columns!(),
    " FROM execution WHERE instance = ?1 AND execution_id = ?2"
);
const SYSTEM_METRICS: &str = "SELECT
        (SELECT count(*) FROM instance WHERE known = 1) AS total_instances,
        (SELECT count(*) FROM execution)
            - (SELECT count(*) FROM removal JOIN execution ON execution.instance = removal.instance
               WHERE removal.execution_id IS NULL) AS total_executions,
        (SELECT count(*) FROM instance WHERE known = 1 AND status = 'Running') AS running_instances,
        (SELECT count(*) FROM instance WHERE known = 1 AND status = 'Completed') AS completed_instances,
        (SELECT count(*) FROM instance WHERE known = 1 AND status = 'Failed') AS failed_instances,
        (SELECT count(*) FROM history)
            - (SELECT count(*) FROM removal JOIN history ON history.instance = removal.instance
               AND history.execution_id = coalesce(removal.execution_id, history.execution_id)) AS total_events";
const QUEUE_DEPTHS: &str = concat!(
    "SELECT
        (SELECT count(*) FROM message JOIN instance ON instance.id = message.instance
         WHERE NOT ",
    held!(),
    " OR instance.lock_until IS NULL OR instance.lock_until <= ?1) AS orchestrator_queue,
        (SELECT count(*) FROM activity WHERE lock_until IS NULL OR lock_until <= ?1) AS worker_queue"
);
const CHILDREN: &str = "SELECT instance_id FROM instance WHERE parent = ?1 ORDER BY id";
const RUNNING_VERSIONS: &str = concat!(
    "SELECT major, minor, patch,
        CASE WHEN major IS NULL THEN
            (SELECT ",
    whole_data!("history"),
    " FROM history WHERE history.instance = instance.id
             AND history.execution_id = instance.execution_id ORDER BY event_id LIMIT 1) END AS first_event
    FROM instance LEFT JOIN execution ON execution.instance = instance.id
        AND execution.execution_id = instance.execution_id
    WHERE known = 1 AND instance.status = 'Running' ORDER BY id"
);
const WRITTEN_AT: &str = "SELECT written_at FROM sequence WHERE id = 1";

/// An instance that was started.
struct Known {
    id: i64,
    execution_id: u64,
}

fn known(db: &Db, instance: &str) -> Result<Option<Known>, StoreFailure> {
    db.first(KNOWN, [instance], |row| {
        Ok(Known { id: row.get(instance::id)?, execution_id: unsigned(row.get(instance::execution_id)?) })
    })
}

/// When the store was last written.
pub(crate) fn written_at(db: &Db) -> Result<Timestamp, StoreFailure> {
    Ok(db.value(WRITTEN_AT, [])?.map(time).unwrap_or_default())
}

pub(crate) fn events(db: &Db, id: i64, execution_id: u64) -> Result<Vec<EventRow>, StoreFailure> {
    db.all(HISTORY, (id, number(execution_id)), |row| {
        Ok(EventRow {
            event_id: unsigned(row.get(history::event_id)?),
            data: lossy_text(row, history::data)?,
        })
    })
}

pub(crate) fn history(
    db: &Db,
    instance: &str,
    execution_id: Option<u64>,
) -> Result<Vec<EventRow>, StoreFailure> {
    match known(db, instance)? {
        Some(row) => events(db, row.id, execution_id.unwrap_or(row.execution_id)),
        None => Ok(Vec::new()),
    }
}

pub(crate) fn load(db: &Db, instance: &str, execution_id: u64) -> Result<StoredExecution, StoreFailure> {
    match known(db, instance)? {
        Some(row) => Ok(StoredExecution {
            events: events(db, row.id, execution_id)?,
            kv: key_values::left(db, row.id)?,
        }),
        None => Ok(StoredExecution::default()),
    }
}

/// One row, and the last event only if the instance has ended. Every waiting client asks this, so it is one statement.
pub(crate) fn status(db: &Db, instance: &str) -> Result<Option<StoredStatus>, StoreFailure> {
    db.first(STATUS, [instance], read_status)
}

/// Like `status`, and also finds an instance whose start is queued.
pub(crate) fn status_or_pending(db: &Db, instance: &str) -> Result<Option<StoredStatus>, StoreFailure> {
    db.first(STATUS_OR_PENDING, [instance], read_status)
}

fn read_status(row: &Row<'_>) -> rusqlite::Result<StoredStatus> {
    Ok(StoredStatus {
        execution_id: unsigned(row.get(status::execution_id)?),
        terminal_event: lossy_text_or_null(row, status::terminal_event)?,
        custom_status: row.get(status::custom_status)?,
        custom_status_version: unsigned(row.get(status::custom_status_version)?),
    })
}

pub(crate) fn descriptor(db: &Db, instance: &str) -> Result<Option<StoredDescriptor>, StoreFailure> {
    let Some(row) = known(db, instance)? else { return Ok(None) };
    let first = first_event(db, row.id, row.execution_id)?;
    Ok(first.map(|first_event| StoredDescriptor { first_event }))
}

pub(crate) fn last_event_id(db: &Db, instance: &str, execution_id: u64) -> Result<Option<u64>, StoreFailure> {
    let Some(row) = known(db, instance)? else { return Ok(None) };
    Ok(db.value(LAST_EVENT_ID, (row.id, number(execution_id)))?.map(unsigned))
}

pub(crate) fn custom_status(db: &Db, instance: &str) -> Result<Option<(Option<String>, u64)>, StoreFailure> {
    match known(db, instance)? {
        Some(row) => custom_status::read(db, row.id),
        None => Ok(None),
    }
}

pub(crate) fn kv_value(db: &Db, instance: &str, key: &str) -> Result<Option<String>, StoreFailure> {
    match known(db, instance)? {
        Some(row) => key_values::value(db, row.id, key),
        None => Ok(None),
    }
}

pub(crate) fn kv_values(db: &Db, instance: &str) -> Result<BTreeMap<String, String>, StoreFailure> {
    match known(db, instance)? {
        Some(row) => key_values::values(db, row.id),
        None => Ok(BTreeMap::new()),
    }
}

pub(crate) fn stats(db: &Db, instance: &str) -> Result<Option<SystemStats>, StoreFailure> {
    let Some(row) = known(db, instance)? else { return Ok(None) };
    let columns = (row.id, number(row.execution_id));
    let sizes = db.first(HISTORY_SIZE, columns, |row| Ok((row.get("events")?, row.get("bytes")?)))?;
    let (events, bytes) = sizes.unwrap_or_default();
    let values = key_values::values(db, row.id)?;
    Ok(Some(SystemStats {
        history_event_count: unsigned(events),
        history_size_bytes: unsigned(bytes),
        queue_pending_count: 0,
        kv_user_key_count: values.len() as u64,
        kv_total_value_bytes: values.values().map(|value| value.len() as u64).sum(),
    }))
}

pub(crate) fn executions(db: &Db, instance: &str) -> Result<Vec<u64>, StoreFailure> {
    match known(db, instance)? {
        Some(row) => Ok(db.values(EXECUTIONS, [row.id])?.into_iter().map(unsigned).collect()),
        None => Ok(Vec::new()),
    }
}

pub(crate) fn current_execution(db: &Db, instance: &str) -> Result<Option<u64>, StoreFailure> {
    Ok(known(db, instance)?.map(|row| row.execution_id))
}

/// Name and version of an instance that was never named, out of its first event.
pub(crate) fn identity_in_history(
    db: &Db,
    id: i64,
    execution_id: u64,
) -> Result<(String, Option<String>), StoreFailure> {
    Ok(identity_in_event(first_event(db, id, execution_id)?.as_deref()))
}

pub(crate) fn execution_info(
    db: &Db,
    instance: &str,
    execution_id: u64,
) -> Result<Option<ExecutionInfo>, StoreFailure> {
    let Some(known) = known(db, instance)? else { return Ok(None) };
    db.first(EXECUTION_INFO, (known.id, number(execution_id)), |row| {
        Ok(ExecutionInfo {
            execution_id,
            status: row.get("status")?,
            output: output(row, OUTPUT)?,
            started_at: time(row.get("started_at")?).as_millis(),
            completed_at: row.get::<_, Option<i64>>("completed_at")?.map(|at| time(at).as_millis()),
            event_count: usize::try_from(row.get::<_, i64>("event_count")?).unwrap_or_default(),
        })
    })
}

pub(crate) fn system_metrics(db: &Db) -> Result<SystemMetrics, StoreFailure> {
    let metrics = db.first(SYSTEM_METRICS, [], |row| {
        Ok(SystemMetrics {
            total_instances: unsigned(row.get("total_instances")?),
            total_executions: unsigned(row.get("total_executions")?),
            running_instances: unsigned(row.get("running_instances")?),
            completed_instances: unsigned(row.get("completed_instances")?),
            failed_instances: unsigned(row.get("failed_instances")?),
            total_events: unsigned(row.get("total_events")?),
        })
    })?;
    Ok(metrics.unwrap_or_default())
}

/// Rows that no live lock holds.
pub(crate) fn queue_depths(db: &Db, now: Timestamp) -> Result<QueueDepths, StoreFailure> {
    let depths = db.first(QUEUE_DEPTHS, [micros(now)], |row| {
        Ok(QueueDepths {
            orchestrator_queue: usize::try_from(row.get::<_, i64>("orchestrator_queue")?).unwrap_or_default(),
            worker_queue: usize::try_from(row.get::<_, i64>("worker_queue")?).unwrap_or_default(),
            timer_queue: 0,
        })
    })?;
    Ok(depths.unwrap_or_default())
}

pub(crate) fn children(db: &Db, instance: &str) -> Result<Vec<String>, StoreFailure> {
    db.values(CHILDREN, [instance])
}

pub(crate) fn running_versions(db: &Db) -> Result<Vec<RunningVersion>, StoreFailure> {
    let versions = db.all(RUNNING_VERSIONS, [], |row| {
        Ok(match triple(row, TRIPLE)? {
            Some(pinned) => Some(RunningVersion::Pinned(pinned)),
            None => row
                .get::<_, Option<String>>("first_event")?
                .map(|first_event| RunningVersion::Unpinned { first_event }),
        })
    })?;
    Ok(versions.into_iter().flatten().collect())
}
