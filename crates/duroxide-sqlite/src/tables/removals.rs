//! Rows of deleted instances and pruned executions that are still to be removed.

use duroxide_core::Timestamp;
use duroxide_provider::rules::{Removal, RemovalBudget, RemovalTable, RemovedRows, Rows};
use rusqlite::Row;

use super::{SqliteTables, payloads::whole_bytes};
use crate::{
    columns::{columns, insert, upsert},
    db::{Db, limit, micros, number, unsigned},
};

columns!(removal as removal_columns: id, instance, execution_id);

const DELETE_TASK: &str = "DELETE FROM removal_task WHERE id = ?1";
const DUE_TASK: &str = "SELECT id FROM removal_task WHERE remove_at <= ?1 ORDER BY remove_at LIMIT 1";
const FIRST: &str =
    concat!("SELECT ", removal_columns!(), " FROM removal WHERE task = ?1 ORDER BY id LIMIT ?2");
const DELETE: &str = "DELETE FROM removal WHERE id = ?1";

/// The first rows of an instance: their sizes as `bytes`, and the columns of their keys as `first_key` and `second_key`. More
/// conditions may follow the table.
macro_rules! sized_rows {
    ($bytes:expr, $first_key:literal $(, $second_key:literal)?; $table:literal $(, $and:literal)?) => {
        concat!(
            "SELECT ", $bytes, " AS bytes, ", $first_key, " AS first_key" $(, ", ", $second_key, " AS second_key")?,
            " FROM ", $table, " WHERE instance = ?1" $(, $and)?,
            " ORDER BY ", $first_key $(, ", ", $second_key)?, " LIMIT ?2"
        )
    };
}

const EVENTS: &str = sized_rows!(whole_bytes!("history"), "execution_id", "event_id"; "history");
const DELETE_EVENTS: &str =
    "DELETE FROM history WHERE instance = ?1 AND (execution_id, event_id) <= (?2, ?3)";
const EVENTS_OF_EXECUTION: &str =
    sized_rows!(whole_bytes!("history"), "event_id"; "history", " AND execution_id = ?3");
const DELETE_EVENTS_OF_EXECUTION: &str =
    "DELETE FROM history WHERE instance = ?1 AND execution_id = ?2 AND event_id <= ?3";
const MESSAGES: &str = sized_rows!(whole_bytes!("message"), "due_at", "seq"; "message");
const DELETE_MESSAGES: &str = "DELETE FROM message WHERE instance = ?1 AND (due_at, seq) <= (?2, ?3)";
const EXECUTIONS: &str = sized_rows!("octet_length(output)", "execution_id"; "execution");
const DELETE_EXECUTIONS: &str = "DELETE FROM execution WHERE instance = ?1 AND execution_id <= ?2";
const KEYS: &str = sized_rows!("octet_length(value)", "key"; "kv");
const DELETE_KEYS: &str = "DELETE FROM kv WHERE instance = ?1 AND key <= ?2";
const CHANGED_KEYS: &str = sized_rows!("octet_length(value)", "key"; "kv_change");
const DELETE_CHANGED_KEYS: &str = "DELETE FROM kv_change WHERE instance = ?1 AND key <= ?2";
const DELETE_CUSTOM_STATUS: &str = "DELETE FROM custom_status WHERE instance = ?1";

/// Removes rows of one removal within a budget, table by table.
fn remove_rows_of(db: &Db, removal: &Removal, budget: &mut RemovalBudget) -> Rows<RemovedRows> {
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
    Ok(removed)
}

fn remove_events_of(db: &Db, id: i64, execution_id: i64, budget: &mut RemovalBudget) -> Rows<u64> {
    let columns = (id, limit(budget.rows()), execution_id);
    let last = last_admitted(db, EVENTS_OF_EXECUTION, columns, budget, |row| row.get::<_, i64>("first_key"))?;
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
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>("first_key")?, row.get::<_, i64>("second_key")?));
    let last = last_admitted(db, select, (id, limit(budget.rows())), budget, read)?;
    let Some(last) = last else { return Ok(0) };
    Ok(db.execute(delete, (id, last.0, last.1))? as u64)
}

fn remove_executions(db: &Db, id: i64, budget: &mut RemovalBudget) -> Rows<u64> {
    let read = |row: &Row<'_>| row.get::<_, i64>("first_key");
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
    let read = |row: &Row<'_>| row.get::<_, String>("first_key");
    let last = last_admitted(db, select, (id, limit(budget.rows())), budget, read)?;
    let Some(key) = last else { return Ok(()) };
    db.execute(delete, (id, key)).map(|_| ())
}

/// The key of the last row that fits into the budget.
fn last_admitted<K>(
    db: &Db,
    select: &'static str,
    columns: impl rusqlite::Params,
    budget: &mut RemovalBudget,
    mut key: impl FnMut(&Row<'_>) -> rusqlite::Result<K>,
) -> Rows<Option<K>> {
    let admitted = db.all_while(select, columns, |row| {
        // The text of a row may be missing, such as the output of an execution that runs.
        let bytes: Option<i64> = row.get("bytes")?;
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default();
        if budget.spend(bytes) { key(row).map(Some) } else { Ok(None) }
    })?;
    Ok(admitted.into_iter().next_back())
}

impl RemovalTable for SqliteTables {
    fn insert_removals(&mut self, task: u64, removals: &[(u64, Removal)]) -> Rows<()> {
        removals.iter().try_for_each(|(id, removal)| {
            let inserted = insert!(
                self.db,
                removal {
                    id: number(*id),
                    task: number(task),
                    instance: number(removal.instance),
                    execution_id: removal.execution_id.map(number),
                }
            );
            inserted.map(|_| ())
        })
    }

    fn first_removals(&mut self, task: u64, at_most: usize) -> Rows<Vec<(u64, Removal)>> {
        self.db.all(FIRST, (number(task), limit(at_most)), |row| {
            let removal = Removal {
                instance: unsigned(row.get(removal::instance)?),
                execution_id: row.get::<_, Option<i64>>(removal::execution_id)?.map(unsigned),
            };
            Ok((unsigned(row.get(removal::id)?), removal))
        })
    }

    fn delete_removals(&mut self, numbers: &[u64]) -> Rows<()> {
        numbers.iter().try_for_each(|id| self.db.execute(DELETE, [number(*id)]).map(|_| ()))
    }

    fn write_removal_task(&mut self, task: u64, remove_at: Timestamp) -> Rows<()> {
        upsert!(self.db, removal_task [id: number(task)] { remove_at: micros(remove_at) }).map(|_| ())
    }

    fn delete_removal_task(&mut self, task: u64) -> Rows<()> {
        self.db.execute(DELETE_TASK, [number(task)]).map(|_| ())
    }

    fn due_removal_task(&mut self, now: Timestamp) -> Rows<Option<u64>> {
        Ok(self.db.value(DUE_TASK, [micros(now)])?.map(unsigned))
    }

    fn remove_rows(&mut self, removals: &[Removal], budget: &mut RemovalBudget) -> Rows<RemovedRows> {
        budget.visit(removals, |removal, budget| remove_rows_of(&self.db, removal, budget))
    }
}
