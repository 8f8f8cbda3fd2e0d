//! Rows of deleted instances and pruned executions, removed in steps.

use std::collections::BTreeSet;

use duroxide_core::Timestamp;
use duroxide_provider::rules::{Removal, RemovalBudget, RemovedRows};

use super::{
    PostgresTables,
    load::{Meaning, Request, given_time},
    numbers,
};
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    value::{Columns, limit, micros, number, unsigned},
};

const INSERT: &str = "INSERT INTO {s}.removal (number, task, instance, execution_id)
    SELECT added.number, $1::bigint, added.instance, added.execution_id
    FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS added (number, instance, execution_id)";
const FIRST: &str = "SELECT number, instance, execution_id FROM {s}.removal WHERE task = $1
    ORDER BY number LIMIT $2";
const DELETE: &str = "DELETE FROM {s}.removal WHERE number = ANY ($1::bigint[])";
const WRITE_TASK: &str = "INSERT INTO {s}.removal_task (number, remove_at) VALUES ($1, $2)
    ON CONFLICT (number) DO UPDATE SET remove_at = excluded.remove_at";
const DELETE_TASK: &str = "DELETE FROM {s}.removal_task WHERE number = $1";
const DUE_TASK: &str = concat!(
    "SELECT number FROM {s}.removal_task WHERE remove_at <= ",
    given_time!("$1"),
    " ORDER BY remove_at, number LIMIT 1 FOR UPDATE SKIP LOCKED"
);

/// Rows of a removal in a table, with their sizes: all rows of the instance.
macro_rules! rows_of {
    ($part:literal, $table:literal, $text:literal) => {
        concat!(
            " UNION ALL (SELECT ",
            $part,
            ", ",
            $table,
            ".ctid, coalesce(octet_length(",
            $text,
            "), 0)::bigint FROM {s}.",
            $table,
            " WHERE ",
            $table,
            ".instance = ANY (ARRAY[removal.instance]) AND removal.execution_id IS NULL LIMIT $3)"
        )
    };
}
/// Deletes the rows of a part that were taken.
macro_rules! delete {
    ($name:literal, $part:literal, $table:literal) => {
        concat!(
            $name,
            " AS (DELETE FROM {s}.",
            $table,
            " WHERE ctid = ANY (ARRAY(SELECT row_id FROM taken WHERE part = ",
            $part,
            ")) RETURNING 1), "
        )
    };
}
/// Takes rows of the removals `$1` (instances) and `$2` (executions, or NULL), one removal after the other, and deletes them: at
/// most `$3` rows, and no further row once they have `$4` bytes. Part 0 is the visit of a removal, which counts as a row.
///
/// The rows come in the order of the removals, so the limit ends the reading of rows. Nobody changes them while they are removed:
/// the instance is locked, or nothing leads to them any more.
const REMOVE: &str = concat!(
    "WITH taken AS MATERIALIZED (SELECT * FROM (
        SELECT found.*, sum(size) OVER (ORDER BY place ROWS UNBOUNDED PRECEDING) - size AS size_before FROM (
            SELECT removal.place, removal.instance, removal.execution_id, of_removal.*
            FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS removal (instance, execution_id, place)
            CROSS JOIN LATERAL (SELECT 0 AS part, NULL::tid AS row_id, 0::bigint AS size
                UNION ALL (SELECT 1, history.ctid, octet_length(history.data)::bigint FROM {s}.history
                    WHERE history.instance = ANY (ARRAY[removal.instance])
                        AND history.execution_id >= coalesce(removal.execution_id, 0)
                        AND history.execution_id <= coalesce(removal.execution_id, 9223372036854775807) LIMIT $3)",
    rows_of!("2", "message", "message.data"),
    rows_of!("3", "execution", "execution.output"),
    rows_of!("4", "kv", "kv.value"),
    rows_of!("5", "kv_change", "kv_change.value"),
    ") AS of_removal ORDER BY removal.place LIMIT $3::bigint
        ) AS found) AS summed WHERE size_before < $4::bigint), ",
    delete!("events", "1", "history"),
    delete!("messages", "2", "message"),
    delete!("executions", "3", "execution"),
    delete!("key_values", "4", "kv"),
    delete!("changes", "5", "kv_change"),
    "statuses AS (DELETE FROM {s}.custom_status WHERE instance = ANY (ARRAY(
        SELECT instance FROM taken WHERE execution_id IS NULL)))
    SELECT (SELECT count(*) FROM taken) AS rows, (SELECT coalesce(sum(size), 0)::bigint FROM taken) AS bytes,
        (SELECT coalesce(max(place), 0) FROM taken) AS visited, (SELECT count(*) FROM events) AS events,
        (SELECT count(*) FROM messages) AS messages, (SELECT count(*) FROM executions) AS executions"
);

impl Request {
    /// The task that has been due longest at this time, or when the transaction began.
    pub(super) fn due_removal_task(at: Option<Timestamp>) -> Self {
        Self::new(Meaning::DueRemovalTask, DUE_TASK, parameters![at.map(micros)])
    }
}

impl PostgresTables {
    pub(super) fn insert_removals(
        &mut self,
        task: u64,
        removals: &[(u64, Removal)],
    ) -> Result<(), DatabaseError> {
        let instances: Vec<i64> = removals.iter().map(|(_, removal)| number(removal.instance)).collect();
        let executions: Vec<Option<i64>> =
            removals.iter().map(|(_, removal)| removal.execution_id.map(number)).collect();
        let added = numbers(removals.iter().map(|(number, _)| number));
        self.write_later(Query::new(INSERT, parameters![number(task), added, instances, executions]))
    }

    pub(super) fn first_removals(
        &mut self,
        task: u64,
        at_most: usize,
    ) -> Result<Vec<(u64, Removal)>, DatabaseError> {
        let rows = self.ask(Query::new(FIRST, parameters![number(task), limit(at_most)]))?;
        rows.iter()
            .map(|row| {
                let execution_id = row.column::<Option<i64>>("execution_id")?.map(unsigned);
                Ok((row.number("number")?, Removal { instance: row.number("instance")?, execution_id }))
            })
            .collect()
    }

    pub(super) fn delete_removals(&mut self, ended: &[u64]) -> Result<(), DatabaseError> {
        self.write_later(Query::new(DELETE, parameters![numbers(ended)]))
    }

    pub(super) fn write_removal_task(
        &mut self,
        task: u64,
        remove_at: Timestamp,
    ) -> Result<(), DatabaseError> {
        self.set.touched_removals = true;
        self.write_later(Query::new(WRITE_TASK, parameters![number(task), micros(remove_at)]))
    }

    pub(super) fn delete_removal_task(&mut self, task: u64) -> Result<(), DatabaseError> {
        self.write_later(Query::new(DELETE_TASK, parameters![number(task)]))
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
        removals: &[Removal],
        budget: &mut RemovalBudget,
    ) -> Result<RemovedRows, DatabaseError> {
        let executions: Vec<Option<i64>> =
            removals.iter().map(|removal| removal.execution_id.map(number)).collect();
        let parameters = parameters![
            numbers(removals.iter().map(|removal| &removal.instance)),
            executions,
            limit(budget.rows()),
            limit(budget.bytes()),
        ];
        let rows = self.ask(Query::new(REMOVE, parameters))?;
        let row = rows.first().ok_or_else(|| DatabaseError::refused("a removal returned no counts"))?;
        let count = |name| row.column::<i64>(name).map(|count| usize::try_from(count).unwrap_or_default());
        budget.spend_all(count("rows")?, count("bytes")?);
        let visited = count("visited")?;
        // An instance that was not visited may stay, and its rows are as they were.
        let whole = removals.iter().take(visited).filter(|removal| removal.execution_id.is_none());
        self.forget_rows_of(&whole.map(|removal| removal.instance).collect());
        let unfinished = usize::from(budget.is_spent());
        Ok(RemovedRows {
            events: row.number("events")?,
            messages: row.number("messages")?,
            executions: row.number("executions")?,
            done: visited.saturating_sub(unfinished),
        })
    }

    fn forget_rows_of(&mut self, instances: &BTreeSet<u64>) {
        self.set.messages.forget(|message| instances.contains(&message.instance));
        self.set.executions.forget(|execution| instances.contains(&execution.instance));
        self.set.key_values.forget(|key_value| instances.contains(&key_value.instance));
        self.set.key_value_changes.forget(|change| instances.contains(&change.instance));
        self.set.custom_status.forget(|status| instances.contains(&status.instance));
    }
}
