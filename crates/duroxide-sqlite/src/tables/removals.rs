//! Rows of deleted instances and pruned executions that are still to be removed.

use duroxide_core::Timestamp;
use duroxide_provider::rules::{Removal, RemovalBudget, RemovalTable, RemovedRows, Rows};
use rusqlite::Row;

use super::{SqliteTables, payloads::whole_bytes};
use crate::db::{Db, limit, micros, number, unsigned};

const WRITE_TASK: &str = "INSERT INTO removal_task (id, remove_at) VALUES (?1, ?2)
    ON CONFLICT (id) DO UPDATE SET remove_at = excluded.remove_at";
const DELETE_TASK: &str = "DELETE FROM removal_task WHERE id = ?1";
const DUE_TASK: &str = "SELECT id FROM removal_task WHERE remove_at <= ?1 ORDER BY remove_at LIMIT 1";
const INSERT: &str = "INSERT INTO removal (id, task, instance, execution_id) VALUES (?1, ?2, ?3, ?4)";
const FIRST: &str = "SELECT id, instance, execution_id FROM removal WHERE task = ?1 ORDER BY id LIMIT 1";
const DELETE: &str = "DELETE FROM removal WHERE id = ?1";

const EVENTS: &str = concat!(
    "SELECT ",
    whole_bytes!("history"),
    ", execution_id, event_id FROM history WHERE instance = ?1 ORDER BY execution_id, event_id LIMIT ?2"
);
const DELETE_EVENTS: &str =
    "DELETE FROM history WHERE instance = ?1 AND (execution_id, event_id) <= (?2, ?3)";
const EVENTS_OF_EXECUTION: &str = concat!(
    "SELECT ",
    whole_bytes!("history"),
    ", event_id FROM history WHERE instance = ?1 AND execution_id = ?3 ORDER BY event_id LIMIT ?2"
);
const DELETE_EVENTS_OF_EXECUTION: &str =
    "DELETE FROM history WHERE instance = ?1 AND execution_id = ?2 AND event_id <= ?3";
const MESSAGES: &str = concat!(
    "SELECT ",
    whole_bytes!("message"),
    ", due_at, seq FROM message WHERE instance = ?1 ORDER BY due_at, seq LIMIT ?2"
);
const DELETE_MESSAGES: &str = "DELETE FROM message WHERE instance = ?1 AND (due_at, seq) <= (?2, ?3)";
const EXECUTIONS: &str = "SELECT octet_length(output), execution_id FROM execution
    WHERE instance = ?1 ORDER BY execution_id LIMIT ?2";
const DELETE_EXECUTIONS: &str = "DELETE FROM execution WHERE instance = ?1 AND execution_id <= ?2";
const KEYS: &str = "SELECT octet_length(value), key FROM kv WHERE instance = ?1 ORDER BY key LIMIT ?2";
const DELETE_KEYS: &str = "DELETE FROM kv WHERE instance = ?1 AND key <= ?2";
const CHANGED_KEYS: &str =
    "SELECT octet_length(value), key FROM kv_change WHERE instance = ?1 ORDER BY key LIMIT ?2";
const DELETE_CHANGED_KEYS: &str = "DELETE FROM kv_change WHERE instance = ?1 AND key <= ?2";
const DELETE_CUSTOM_STATUS: &str = "DELETE FROM custom_status WHERE instance = ?1";

pub(super) fn insert(db: &Db, task: u64, removal: &Removal) -> Rows<()> {
    let columns =
        (number(removal.number), number(task), number(removal.instance), removal.execution_id.map(number));
    db.execute(INSERT, columns).map(|_| ())
}

pub(super) fn first(db: &Db, task: u64) -> Rows<Option<Removal>> {
    db.first(FIRST, [number(task)], |row| {
        Ok(Removal {
            number: unsigned(row.get(0)?),
            instance: unsigned(row.get(1)?),
            execution_id: row.get::<_, Option<i64>>(2)?.map(unsigned),
        })
    })
}

pub(super) fn delete(db: &Db, removal: &Removal) -> Rows<()> {
    db.execute(DELETE, [number(removal.number)]).map(|_| ())
}

pub(super) fn write_task(db: &Db, task: u64, remove_at: Timestamp) -> Rows<()> {
    db.execute(WRITE_TASK, (number(task), micros(remove_at))).map(|_| ())
}

pub(super) fn delete_task(db: &Db, task: u64) -> Rows<()> {
    db.execute(DELETE_TASK, [number(task)]).map(|_| ())
}

pub(super) fn due_task(db: &Db, now: Timestamp) -> Rows<Option<u64>> {
    db.first(DUE_TASK, [micros(now)], |row| row.get(0).map(unsigned))
}

/// Removes rows within a budget, table by table.
pub(super) fn remove_rows(db: &Db, removal: &Removal, budget: &mut RemovalBudget) -> Rows<RemovedRows> {
    let id = number(removal.instance);
    let mut removed = RemovedRows::default();
    if let Some(execution_id) = removal.execution_id {
        removed.events = remove_events_of(db, id, number(execution_id), budget)?;
    } else {
        removed.events = remove_pairs(db, EVENTS, DELETE_EVENTS, id, budget)?;
        removed.messages = remove_pairs(db, MESSAGES, DELETE_MESSAGES, id, budget)?;
        removed.executions = remove_executions(db, id, budget)?;
        remove_keys(db, KEYS, DELETE_KEYS, id, budget)?;
        remove_keys(db, CHANGED_KEYS, DELETE_CHANGED_KEYS, id, budget)?;
        db.execute(DELETE_CUSTOM_STATUS, [id])?;
    }
    removed.is_done = !budget.is_spent();
    Ok(removed)
}

fn remove_events_of(db: &Db, id: i64, execution_id: i64, budget: &mut RemovalBudget) -> Rows<u64> {
    let columns = (id, limit(budget.rows()), execution_id);
    let last = last_admitted(db, EVENTS_OF_EXECUTION, columns, budget, |row| row.get::<_, i64>(1))?;
    let Some(event_id) = last else { return Ok(0) };
    Ok(db.execute(DELETE_EVENTS_OF_EXECUTION, (id, execution_id, event_id))? as u64)
}

fn remove_pairs(
    db: &Db,
    select: &'static str,
    delete: &'static str,
    id: i64,
    budget: &mut RemovalBudget,
) -> Rows<u64> {
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let last = last_admitted(db, select, (id, limit(budget.rows())), budget, read)?;
    let Some(last) = last else { return Ok(0) };
    Ok(db.execute(delete, (id, last.0, last.1))? as u64)
}

fn remove_executions(db: &Db, id: i64, budget: &mut RemovalBudget) -> Rows<u64> {
    let read = |row: &Row<'_>| row.get::<_, i64>(1);
    let last = last_admitted(db, EXECUTIONS, (id, limit(budget.rows())), budget, read)?;
    let Some(execution_id) = last else { return Ok(0) };
    Ok(db.execute(DELETE_EXECUTIONS, (id, execution_id))? as u64)
}

fn remove_keys(
    db: &Db,
    select: &'static str,
    delete: &'static str,
    id: i64,
    budget: &mut RemovalBudget,
) -> Rows<()> {
    let read = |row: &Row<'_>| row.get::<_, String>(1);
    let last = last_admitted(db, select, (id, limit(budget.rows())), budget, read)?;
    let Some(key) = last else { return Ok(()) };
    db.execute(delete, (id, key)).map(|_| ())
}

/// The key of the last row that fits into the budget. The size of a row comes first in its columns.
fn last_admitted<K>(
    db: &Db,
    select: &'static str,
    columns: impl rusqlite::Params,
    budget: &mut RemovalBudget,
    mut key: impl FnMut(&Row<'_>) -> rusqlite::Result<K>,
) -> Rows<Option<K>> {
    let admitted = db.all_while(select, columns, |row| {
        let bytes: Option<i64> = row.get(0)?;
        let bytes = usize::try_from(bytes.unwrap_or_default()).unwrap_or_default();
        if budget.spend(bytes) { key(row).map(Some) } else { Ok(None) }
    })?;
    Ok(admitted.into_iter().next_back())
}

impl RemovalTable for SqliteTables {
    fn insert_removal(&mut self, task: u64, removal: &Removal) -> Rows<()> {
        insert(&self.db, task, removal)
    }

    fn first_removal(&mut self, task: u64) -> Rows<Option<Removal>> {
        first(&self.db, task)
    }

    fn delete_removal(&mut self, removal: &Removal) -> Rows<()> {
        delete(&self.db, removal)
    }

    fn write_removal_task(&mut self, task: u64, remove_at: Timestamp) -> Rows<()> {
        write_task(&self.db, task, remove_at)
    }

    fn delete_removal_task(&mut self, task: u64) -> Rows<()> {
        delete_task(&self.db, task)
    }

    fn due_removal_task(&mut self, now: Timestamp) -> Rows<Option<u64>> {
        due_task(&self.db, now)
    }

    fn remove_rows(&mut self, removal: &Removal, budget: &mut RemovalBudget) -> Rows<RemovedRows> {
        remove_rows(&self.db, removal, budget)
    }
}
