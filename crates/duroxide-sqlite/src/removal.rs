//! Removing the rows of deleted instances and pruned executions in bounded steps.
//!
//! A delete first takes away what leads to the rows: the instance, or the execution. From then on no read, claim or
//! commit finds them. The rows themselves are removed by the same call, a bounded number in each transaction, so that
//! other work gets in between. If the call stops, by a crash or because its caller has gone, promotions remove the
//! rest.

use std::time::Duration;

use duroxide_provider::{
    DeleteInstanceResult,
    store::{
        StoreFailure,
        bounds::{REMOVED_BYTES_MAX, REMOVED_ROWS_MAX},
    },
};
use rusqlite::Row;

use crate::{SqliteEngine, db::micros};

const POSTPONE_TASK: &str = "INSERT INTO removal_task (id, remove_at) VALUES (?1, ?2)
    ON CONFLICT (id) DO UPDATE SET remove_at = excluded.remove_at";
const END_TASK: &str = "DELETE FROM removal_task WHERE id = ?1";
const DUE_TASK: &str = "SELECT id FROM removal_task WHERE remove_at <= ?1 ORDER BY remove_at LIMIT 1";
const ADD: &str = "INSERT INTO removal (id, task, instance, execution_id) VALUES (?1, ?2, ?3, ?4)";
const FIRST: &str = "SELECT id, instance, execution_id FROM removal WHERE task = ?1 ORDER BY id LIMIT 1";
const DONE: &str = "DELETE FROM removal WHERE id = ?1";

const EVENTS: &str = "SELECT octet_length(data), execution_id, event_id FROM history
    WHERE instance = ?1 ORDER BY execution_id, event_id LIMIT ?2";
const DELETE_EVENTS: &str =
    "DELETE FROM history WHERE instance = ?1 AND (execution_id, event_id) <= (?2, ?3)";
const EVENTS_OF_EXECUTION: &str = "SELECT octet_length(data), event_id FROM history
    WHERE instance = ?1 AND execution_id = ?3 ORDER BY event_id LIMIT ?2";
const DELETE_EVENTS_OF_EXECUTION: &str =
    "DELETE FROM history WHERE instance = ?1 AND execution_id = ?2 AND event_id <= ?3";
const MESSAGES: &str = "SELECT octet_length(data) + coalesce(
        (SELECT octet_length(payload.data) FROM payload WHERE payload.id = message.seq), 0), due_at, seq
    FROM message WHERE instance = ?1 ORDER BY due_at, seq LIMIT ?2";
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

/// A call that makes no step for this long has stopped, and others go on with its removal.
const STOPPED_AFTER: Duration = Duration::from_secs(60);
/// The pause between two steps that nobody waits for.
const UNATTENDED_PAUSE: Duration = Duration::from_millis(20);

/// What a step may still remove.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    rows: usize,
    bytes: usize,
}

impl Budget {
    pub(crate) const OF_STEP: Self = Self { rows: REMOVED_ROWS_MAX, bytes: REMOVED_BYTES_MAX };

    pub(crate) fn is_spent(self) -> bool {
        self.rows == 0 || self.bytes == 0
    }

    pub(crate) fn rows(self) -> i64 {
        i64::try_from(self.rows).unwrap_or(i64::MAX)
    }

    /// Takes a row into the step, unless the step is full.
    pub(crate) fn spend(&mut self, bytes: i64) -> bool {
        if self.is_spent() {
            return false;
        }
        self.rows -= 1;
        self.bytes = self.bytes.saturating_sub(usize::try_from(bytes).unwrap_or_default());
        true
    }
}

/// Everything of an instance, or one execution of it.
struct Removal {
    id: i64,
    instance: i64,
    execution_id: Option<i64>,
}

impl SqliteEngine {
    /// The number of a new task. [`Self::remove_rows`] stores it if rows are left.
    pub(crate) fn new_removal_task(&mut self) -> i64 {
        self.sequence.take()
    }

    /// Adds the rows of an instance or of one execution to a task. The caller removes rows in the same transaction.
    pub(crate) fn add_removal(
        &mut self,
        task: i64,
        instance: i64,
        execution_id: Option<i64>,
    ) -> Result<(), StoreFailure> {
        let id = self.sequence.take();
        self.db.execute(ADD, (id, task, instance, execution_id)).map(|_| ())
    }

    /// Removes rows of a task until the budget is spent. Returns whether any are left.
    pub(crate) fn remove_rows(
        &mut self,
        task: i64,
        budget: &mut Budget,
        result: &mut DeleteInstanceResult,
    ) -> Result<bool, StoreFailure> {
        self.remove_rows_until(task, budget, result, STOPPED_AFTER)
    }

    /// Removes some rows of a task whose call has stopped.
    pub(crate) fn remove_due_rows(&mut self) -> Result<(), StoreFailure> {
        let due: Option<i64> = self.db.first(DUE_TASK, [micros(self.now)], |row| row.get(0))?;
        let Some(task) = due else { return Ok(()) };
        let (mut budget, mut result) = (Budget::OF_STEP, DeleteInstanceResult::default());
        self.remove_rows_until(task, &mut budget, &mut result, UNATTENDED_PAUSE).map(|_| ())
    }

    fn remove_rows_until(
        &mut self,
        task: i64,
        budget: &mut Budget,
        result: &mut DeleteInstanceResult,
        pause: Duration,
    ) -> Result<bool, StoreFailure> {
        while let Some(removal) = self.first_removal(task)? {
            if !self.remove_from(&removal, budget, result)? {
                self.db.execute(POSTPONE_TASK, (task, micros(self.now.saturating_add(pause))))?;
                return Ok(true);
            }
            self.db.execute(DONE, [removal.id])?;
        }
        self.db.execute(END_TASK, [task])?;
        Ok(false)
    }

    fn first_removal(&self, task: i64) -> Result<Option<Removal>, StoreFailure> {
        self.db.first(FIRST, [task], |row| {
            Ok(Removal { id: row.get(0)?, instance: row.get(1)?, execution_id: row.get(2)? })
        })
    }

    /// Removes rows within the budget. Returns whether all are gone.
    fn remove_from(
        &self,
        removal: &Removal,
        budget: &mut Budget,
        result: &mut DeleteInstanceResult,
    ) -> Result<bool, StoreFailure> {
        // Looking at the tables of an instance without rows costs something too.
        if !budget.spend(0) {
            return Ok(false);
        }
        let id = removal.instance;
        if let Some(execution_id) = removal.execution_id {
            result.events_deleted += self.remove_events_of(id, execution_id, budget)?;
            return Ok(!budget.is_spent());
        }
        result.events_deleted += self.remove_pairs(EVENTS, DELETE_EVENTS, id, budget)?;
        result.queue_messages_deleted += self.remove_pairs(MESSAGES, DELETE_MESSAGES, id, budget)?;
        result.executions_deleted += self.remove_executions(id, budget)?;
        self.remove_keys(KEYS, DELETE_KEYS, id, budget)?;
        self.remove_keys(CHANGED_KEYS, DELETE_CHANGED_KEYS, id, budget)?;
        self.db.execute(DELETE_CUSTOM_STATUS, [id])?;
        Ok(!budget.is_spent())
    }

    fn remove_events_of(&self, id: i64, execution_id: i64, budget: &mut Budget) -> Result<u64, StoreFailure> {
        let columns = (id, budget.rows(), execution_id);
        let last = self.last_admitted(EVENTS_OF_EXECUTION, columns, budget, |row| row.get::<_, i64>(1))?;
        let Some(event_id) = last else { return Ok(0) };
        Ok(self.db.execute(DELETE_EVENTS_OF_EXECUTION, (id, execution_id, event_id))? as u64)
    }

    fn remove_pairs(
        &self,
        select: &'static str,
        delete: &'static str,
        id: i64,
        budget: &mut Budget,
    ) -> Result<u64, StoreFailure> {
        let read = |row: &Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let Some(last) = self.last_admitted(select, (id, budget.rows()), budget, read)? else { return Ok(0) };
        Ok(self.db.execute(delete, (id, last.0, last.1))? as u64)
    }

    fn remove_executions(&self, id: i64, budget: &mut Budget) -> Result<u64, StoreFailure> {
        let read = |row: &Row<'_>| row.get::<_, i64>(1);
        let last = self.last_admitted(EXECUTIONS, (id, budget.rows()), budget, read)?;
        let Some(execution_id) = last else { return Ok(0) };
        Ok(self.db.execute(DELETE_EXECUTIONS, (id, execution_id))? as u64)
    }

    fn remove_keys(
        &self,
        select: &'static str,
        delete: &'static str,
        id: i64,
        budget: &mut Budget,
    ) -> Result<(), StoreFailure> {
        let read = |row: &Row<'_>| row.get::<_, String>(1);
        let Some(key) = self.last_admitted(select, (id, budget.rows()), budget, read)? else { return Ok(()) };
        self.db.execute(delete, (id, key)).map(|_| ())
    }

    /// The key of the last row that fits into the budget. The size of a row comes first in its columns.
    fn last_admitted<K>(
        &self,
        select: &'static str,
        columns: impl rusqlite::Params,
        budget: &mut Budget,
        mut key: impl FnMut(&Row<'_>) -> rusqlite::Result<K>,
    ) -> Result<Option<K>, StoreFailure> {
        let admitted = self.db.all_while(select, columns, |row| {
            let bytes: Option<i64> = row.get(0)?;
            if budget.spend(bytes.unwrap_or_default()) { key(row).map(Some) } else { Ok(None) }
        })?;
        Ok(admitted.into_iter().next_back())
    }
}
