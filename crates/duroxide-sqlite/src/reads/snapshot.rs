//! The whole content of a store, for invariant checks and comparisons.

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::still_hidden,
    store::{
        ActivitySnapshot, ExecutionSnapshot, InstanceSnapshot, LockSnapshot, MessageSnapshot, StoreFailure,
        StoreSnapshot,
    },
};
use rusqlite::Row;

use crate::{
    db::{Db, TRIPLE, count, lossy_text, time, triple, unsigned},
    reads,
    tables::{
        dead_letters,
        executions::{OUTPUT, output, output_columns},
        mailboxes::held,
        payloads::whole_data,
        state::{custom_status, key_values},
    },
};

const INSTANCES: &str = "SELECT id, instance_id, name, version, parent, execution_id, lock_token, lock_until
    FROM instance ORDER BY instance_id";
const EXECUTIONS: &str = concat!(
    "SELECT execution_id, status, major, minor, patch, turns, ",
    output_columns!(),
    " FROM execution WHERE instance = ?1 ORDER BY execution_id"
);
const MESSAGES: &str = concat!(
    "SELECT due_at, hidden_until, attempt_count + ",
    held!(),
    " AS attempts, ",
    held!(),
    " AS held, key, ",
    whole_data!("message"),
    " AS whole_data FROM message JOIN instance ON instance.id = message.instance
    WHERE message.instance = ?1 ORDER BY due_at, seq"
);
const ACTIVITIES: &str = concat!(
    "SELECT execution_id, activity_id, hidden_until, attempt_count, lock_token, lock_until, claimed, stop_requested, ",
    whole_data!("activity"),
    " AS whole_data FROM activity WHERE instance = ?1 ORDER BY id"
);

/// The whole content. Rows hidden until `now` or earlier count as visible.
pub(crate) fn take(db: &Db, now: Timestamp) -> Result<StoreSnapshot, StoreFailure> {
    let rows = db.all(INSTANCES, [], |row| {
        let instance = InstanceSnapshot {
            instance: row.get("instance_id")?,
            name: row.get("name")?,
            version: row.get("version")?,
            parent: row.get("parent")?,
            execution_id: unsigned(row.get("execution_id")?),
            lock: lock(row)?,
            ..InstanceSnapshot::default()
        };
        Ok((row.get("id")?, instance))
    })?;
    let mut instances = Vec::with_capacity(rows.len());
    for (id, instance) in rows {
        instances.push(complete(db, id, instance, now)?);
    }
    Ok(StoreSnapshot { taken_at: now, instances, dead_letters: dead_letters::list(db, None)? })
}

fn complete(
    db: &Db,
    id: i64,
    instance: InstanceSnapshot,
    now: Timestamp,
) -> Result<InstanceSnapshot, StoreFailure> {
    Ok(InstanceSnapshot {
        custom_status: custom_status::read(db, id)?,
        executions: executions(db, id)?,
        messages: db.all(MESSAGES, [id], |row| message(row, now))?,
        activities: db.all(ACTIVITIES, [id], |row| activity(row, now))?,
        kv: key_values::left(db, id)?,
        kv_changes: key_values::changes(db, id)?.into_iter().collect(),
        ..instance
    })
}

fn executions(db: &Db, id: i64) -> Result<Vec<ExecutionSnapshot>, StoreFailure> {
    let mut executions = db.all(EXECUTIONS, [id], |row| {
        Ok(ExecutionSnapshot {
            execution_id: unsigned(row.get("execution_id")?),
            status: row.get("status")?,
            output: output(row, OUTPUT)?,
            pinned: triple(row, TRIPLE)?,
            turns: unsigned(row.get("turns")?),
            events: Vec::new(),
        })
    })?;
    for execution in &mut executions {
        execution.events = reads::events(db, id, execution.execution_id)?;
    }
    Ok(executions)
}

fn message(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<MessageSnapshot> {
    Ok(MessageSnapshot {
        due_at_ms: time(row.get("due_at")?).as_millis(),
        hidden_until: still_hidden(time(row.get("hidden_until")?), now),
        attempt_count: count(row.get("attempts")?),
        locked: row.get("held")?,
        key: row.get("key")?,
        data: lossy_text(row, "whole_data")?,
    })
}

fn activity(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<ActivitySnapshot> {
    Ok(ActivitySnapshot {
        execution_id: unsigned(row.get("execution_id")?),
        activity_id: unsigned(row.get("activity_id")?),
        hidden_until: still_hidden(time(row.get("hidden_until")?), now),
        attempt_count: count(row.get("attempt_count")?),
        lock: lock(row)?,
        claimed: row.get("claimed")?,
        stop_requested: row.get("stop_requested")?,
        data: lossy_text(row, "whole_data")?,
    })
}

/// The lock of an instance or activity.
fn lock(row: &Row<'_>) -> rusqlite::Result<Option<LockSnapshot>> {
    let Some(token) = row.get("lock_token")? else { return Ok(None) };
    Ok(Some(LockSnapshot { token, until: time(row.get("lock_until")?) }))
}
