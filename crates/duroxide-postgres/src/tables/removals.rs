//! Rows of deleted instances and pruned executions, removed in steps.

use duroxide_core::Timestamp;
use duroxide_provider::rules::{Removal, RemovalBudget, RemovedRows};

use super::{
    PostgresTables,
    load::{Meaning, Request, given_time},
};
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    value::{Columns, limit, micros, number, unsigned},
};

const INSERT: &str = "INSERT INTO {s}.removal (number, task, instance, execution_id) VALUES ($1, $2, $3, $4)";
const FIRST: &str = "SELECT number, instance, execution_id FROM {s}.removal WHERE task = $1
    ORDER BY number LIMIT 1";
const DELETE: &str = "DELETE FROM {s}.removal WHERE number = $1";
const WRITE_TASK: &str = "INSERT INTO {s}.removal_task (number, remove_at) VALUES ($1, $2)
    ON CONFLICT (number) DO UPDATE SET remove_at = excluded.remove_at";
const DELETE_TASK: &str = "DELETE FROM {s}.removal_task WHERE number = $1";
const DUE_TASK: &str = concat!(
    "SELECT number FROM {s}.removal_task WHERE remove_at <= ",
    given_time!("$1"),
    " ORDER BY remove_at, number LIMIT 1 FOR UPDATE SKIP LOCKED"
);
const DELETE_CUSTOM_STATUS: &str = "DELETE FROM {s}.custom_status WHERE instance = $1";

/// Deletes the first rows of an instance in a table: at most `$3` rows, and no further row once they have `$4` bytes. `$2`
/// is one execution, or NULL. Returns the size of each.
macro_rules! remove {
    ($table:literal, $key:literal, $text:literal, $execution:literal) => {
        concat!(
            "DELETE FROM {s}.",
            $table,
            " AS doomed USING (SELECT ",
            $key,
            ", coalesce(octet_length(",
            $text,
            "), 0)::bigint AS size, sum(coalesce(octet_length(",
            $text,
            "), 0)) OVER (ORDER BY ",
            $key,
            ") AS total FROM {s}.",
            $table,
            " WHERE instance = $1 AND ($2::bigint IS NULL OR ",
            $execution,
            " = $2) ORDER BY ",
            $key,
            " LIMIT $3) AS chosen WHERE doomed.instance = $1 AND chosen.total - chosen.size < $4 AND "
        )
    };
}
const EVENTS: &str = concat!(
    remove!("history", "execution_id, event_id", "data", "execution_id"),
    "doomed.execution_id = chosen.execution_id AND doomed.event_id = chosen.event_id RETURNING chosen.size"
);
const MESSAGES: &str = concat!(
    remove!("message", "due_at, number", "data", "NULL::bigint"),
    "doomed.due_at = chosen.due_at AND doomed.number = chosen.number RETURNING chosen.size"
);
const EXECUTIONS: &str = concat!(
    remove!("execution", "execution_id", "output", "NULL::bigint"),
    "doomed.execution_id = chosen.execution_id RETURNING chosen.size"
);
const KEY_VALUES: &str =
    concat!(remove!("kv", "key", "value", "NULL::bigint"), "doomed.key = chosen.key RETURNING chosen.size");
const KEY_VALUE_CHANGES: &str = concat!(
    remove!("kv_change", "key", "value", "NULL::bigint"),
    "doomed.key = chosen.key RETURNING chosen.size"
);

impl Request {
    /// The task that has been due longest at this time, or when the transaction began.
    pub(super) fn due_removal_task(at: Option<Timestamp>) -> Self {
        Self::new(Meaning::DueRemovalTask, DUE_TASK, parameters![at.map(micros)])
    }
}

impl PostgresTables {
    pub(super) fn insert_removal(&mut self, task: u64, removal: &Removal) -> Result<(), DatabaseError> {
        let parameters = parameters![
            number(removal.number),
            number(task),
            number(removal.instance),
            removal.execution_id.map(number),
        ];
        self.execute(Query::new(INSERT, parameters))
    }

    pub(super) fn first_removal(&mut self, task: u64) -> Result<Option<Removal>, DatabaseError> {
        let rows = self.ask(Query::new(FIRST, parameters![number(task)]))?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(Removal {
            number: row.number("number")?,
            instance: row.number("instance")?,
            execution_id: row.column::<Option<i64>>("execution_id")?.map(unsigned),
        }))
    }

    pub(super) fn delete_removal(&mut self, removal: &Removal) -> Result<(), DatabaseError> {
        self.execute(Query::new(DELETE, parameters![number(removal.number)]))
    }

    pub(super) fn write_removal_task(
        &mut self,
        task: u64,
        remove_at: Timestamp,
    ) -> Result<(), DatabaseError> {
        self.set.touched_removals = true;
        self.execute(Query::new(WRITE_TASK, parameters![number(task), micros(remove_at)]))
    }

    pub(super) fn delete_removal_task(&mut self, task: u64) -> Result<(), DatabaseError> {
        self.execute(Query::new(DELETE_TASK, parameters![number(task)]))
    }

    pub(super) fn due_removal_task(&mut self, now: Timestamp) -> Result<Option<u64>, DatabaseError> {
        if let Some(task) = self.set.due_removal_task {
            return Ok(task);
        }
        let rows = self.ask(Request::due_removal_task(Some(now)).query)?;
        rows.first().map(|row| row.number("number")).transpose()
    }

    pub(super) fn remove_rows(
        &mut self,
        removal: &Removal,
        budget: &mut RemovalBudget,
    ) -> Result<RemovedRows, DatabaseError> {
        let mut removed =
            RemovedRows { events: self.remove_from(EVENTS, removal, budget)?, ..Default::default() };
        if removal.execution_id.is_none() {
            removed.messages = self.remove_from(MESSAGES, removal, budget)?;
            removed.executions = self.remove_from(EXECUTIONS, removal, budget)?;
            self.remove_from(KEY_VALUES, removal, budget)?;
            self.remove_from(KEY_VALUE_CHANGES, removal, budget)?;
            self.execute(Query::new(DELETE_CUSTOM_STATUS, parameters![number(removal.instance)]))?;
            self.forget_rows_of(removal.instance);
        }
        removed.is_done = !budget.is_spent();
        Ok(removed)
    }

    /// Removes rows of one table within the budget; returns how many.
    fn remove_from(
        &mut self,
        sql: &'static str,
        removal: &Removal,
        budget: &mut RemovalBudget,
    ) -> Result<u64, DatabaseError> {
        if budget.is_spent() {
            return Ok(0);
        }
        let parameters = parameters![
            number(removal.instance),
            removal.execution_id.map(number),
            limit(budget.rows()),
            limit(budget.bytes()),
        ];
        let rows = self.ask(Query::new(sql, parameters))?;
        for row in &rows {
            budget.spend(usize::try_from(row.column::<i64>("size")?).unwrap_or_default());
        }
        Ok(rows.len() as u64)
    }

    fn forget_rows_of(&mut self, instance: u64) {
        self.set.messages.forget(|message| message.instance == instance);
        self.set.executions.forget(|execution| execution.instance == instance);
        self.set.key_values.forget(|key_value| key_value.instance == instance);
        self.set.key_value_changes.forget(|change| change.instance == instance);
        self.set.custom_status.forget(|status| status.instance == instance);
    }
}
