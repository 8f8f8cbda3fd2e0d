//! Execution rows and their events.

use duroxide_provider::{
    rules::{ExecutionAge, ExecutionRow, HistoryTable, Rows},
    store::EventRow,
};
use rusqlite::{Row, RowIndex, types::ValueRef};

use super::{
    SqliteTables,
    payloads::{Payloads, output_of, whole_data},
};
use crate::{
    columns::{columns, insert_into, upsert},
    db::{
        Db, ONLY, limit, lossy_text, lossy_text_or_null, micros, number, time, triple, triple_columns,
        unsigned,
    },
};

/// The output of an execution that is stored with its last event.
macro_rules! event_output {
    () => {
        "CASE WHEN execution.output_event IS NOT NULL THEN
            (SELECT payload.data FROM history JOIN payload ON payload.id = history.payload
             WHERE history.instance = execution.instance AND history.execution_id = execution.execution_id
               AND history.event_id = execution.output_event) END"
    };
}
/// The output of an execution in a statement, whose columns are [`OUTPUT`].
macro_rules! output_columns {
    () => {
        concat!(
            "execution.output AS output, ",
            crate::tables::executions::event_output!(),
            " AS event_output"
        )
    };
}
pub(crate) use {event_output, output_columns};

/// The two columns of an output, of which one has it, for [`output`].
pub(crate) const OUTPUT: [&str; 2] = ["output", "event_output"];

columns!(execution as execution_columns: status, major, minor, patch, last_event_id, turns, started_at, completed_at,
    output, event_output = crate::tables::executions::event_output!());
pub(super) use execution_columns as columns_of_execution;

const SELECT: &str =
    concat!("SELECT ", execution_columns!(), " FROM execution WHERE instance = ?1 AND execution_id = ?2");
const IDS: &str = "SELECT execution_id FROM execution WHERE instance = ?1 ORDER BY execution_id";
const DELETE: &str = "DELETE FROM execution WHERE instance = ?1 AND execution_id = ?2";
const NTH_NEWEST: &str = "SELECT execution_id FROM execution WHERE instance = ?1
    ORDER BY execution_id DESC LIMIT 1 OFFSET ?2 - 1";
const BETWEEN: &str = "SELECT execution_id, status, completed_at FROM execution
    WHERE instance = ?1 AND execution_id > ?2 AND execution_id < ?3 ORDER BY execution_id LIMIT ?4";
const HAS_EVENT: &str = "SELECT 1 FROM history WHERE instance = ?1 AND execution_id = ?2 AND event_id = ?3";
const INSERT_EVENT: &str = insert_into!(history: instance, execution_id, event_id, data);
const INSERT_SPLIT_EVENT: &str = insert_into!(history: instance, execution_id, event_id, data, payload);
const FIRST_EVENT: &str = concat!(
    "SELECT ",
    whole_data!("history"),
    " FROM history WHERE instance = ?1 AND execution_id = ?2
      AND NOT EXISTS (SELECT 1 FROM removal WHERE instance = ?1 AND execution_id = ?2)
    ORDER BY event_id LIMIT 1"
);

/// Where the columns of an execution begin in a row.
pub(super) struct ExecutionColumns {
    pub(super) first: usize,
}

impl ExecutionColumns {
    fn read(&self, row: &Row<'_>) -> rusqlite::Result<ExecutionRow> {
        let first = self.first;
        Ok(ExecutionRow {
            status: row.get(first + execution::status)?,
            output: output(row, [first + execution::output, first + execution::event_output])?,
            pinned: triple(
                row,
                [execution::major, execution::minor, execution::patch].map(|part| first + part),
            )?,
            last_event_id: unsigned(row.get(first + execution::last_event_id)?),
            turns: unsigned(row.get(first + execution::turns)?),
            started_at: time(row.get(first + execution::started_at)?),
            completed_at: row.get::<_, Option<i64>>(first + execution::completed_at)?.map(time),
        })
    }

    /// The execution of a joined row, if it has one.
    pub(super) fn read_joined(&self, row: &Row<'_>) -> rusqlite::Result<Option<ExecutionRow>> {
        let is_joined = row.get_ref(self.first + execution::status)? != ValueRef::Null;
        is_joined.then(|| self.read(row)).transpose()
    }
}

/// The output of an execution, by its two columns.
pub(crate) fn output(
    row: &Row<'_>,
    [output, event_output]: [impl RowIndex; 2],
) -> rusqlite::Result<Option<String>> {
    match lossy_text_or_null(row, event_output)? {
        Some(literal) => Ok(Some(output_of(&literal))),
        None => lossy_text_or_null(row, output),
    }
}

fn get(db: &Db, instance: u64, execution_id: u64) -> Rows<Option<ExecutionRow>> {
    let columns = ExecutionColumns { first: 0 };
    db.first(SELECT, (number(instance), number(execution_id)), |row| columns.read(row))
}

/// All executions of an instance, with their numbers.
pub(crate) fn all(db: &Db, instance: u64) -> Rows<Vec<(u64, ExecutionRow)>> {
    let ids = db.values(IDS, [number(instance)])?;
    let rows = ids.into_iter().map(unsigned).map(|id| Ok(get(db, instance, id)?.map(|row| (id, row))));
    rows.filter_map(Rows::transpose).collect()
}

/// The first event of an execution.
pub(crate) fn first_event(db: &Db, instance: i64, execution_id: u64) -> Rows<Option<String>> {
    db.first(FIRST_EVENT, (instance, number(execution_id)), |row| lossy_text(row, ONLY))
}

impl HistoryTable for SqliteTables {
    fn execution(&mut self, instance: u64, execution_id: u64) -> Rows<Option<ExecutionRow>> {
        get(&self.db, instance, execution_id)
    }

    /// An output that an event has as its payload is not written again.
    fn write_execution(&mut self, instance: u64, execution_id: u64, execution: &ExecutionRow) -> Rows<()> {
        let output = execution.output.as_deref();
        let event = output.and_then(|output| self.payloads.event_of_output(instance, execution_id, output));
        let [major, minor, patch] = triple_columns(execution.pinned);
        let written = upsert!(self.db, execution [instance: number(instance), execution_id: number(execution_id)] {
            status: &execution.status,
            output: output.filter(|_| event.is_none()),
            major: major,
            minor: minor,
            patch: patch,
            last_event_id: number(execution.last_event_id),
            turns: number(execution.turns),
            completed_at: execution.completed_at.map(micros),
            output_event: event.map(number),
        } once { started_at: micros(execution.started_at) });
        written.map(|_| ())
    }

    fn has_event(&mut self, instance: u64, execution_id: u64, event_id: u64) -> Rows<bool> {
        self.db.exists(HAS_EVENT, (number(instance), number(execution_id), number(event_id)))
    }

    fn append_events(&mut self, instance: u64, execution_id: u64, events: &[EventRow]) -> Rows<()> {
        let key = (number(instance), number(execution_id));
        if !events.iter().any(|event| Payloads::is_large(&event.data)) {
            let rows = events.iter().map(|event| (key.0, key.1, number(event.event_id), &event.data));
            return self.db.execute_each(INSERT_EVENT, rows);
        }
        let mut splits = Vec::with_capacity(events.len());
        for event in events {
            let split = self.payloads.split(&mut self.sequence, instance, &event.data);
            self.payloads.insert(&self.db, instance, &split)?;
            self.payloads.appended(instance, execution_id, event.event_id, &split);
            splits.push((event.event_id, split));
        }
        let rows = splits
            .iter()
            .map(|(event_id, split)| (key.0, key.1, number(*event_id), &*split.data, split.payload));
        self.db.execute_each(INSERT_SPLIT_EVENT, rows)
    }

    fn first_event(&mut self, instance: u64, execution_id: u64) -> Rows<Option<String>> {
        first_event(&self.db, number(instance), execution_id)
    }

    fn old_executions(
        &mut self,
        instances: &[u64],
        keep: u32,
        after: u64,
        limit: usize,
    ) -> Rows<Vec<ExecutionAge>> {
        let mut old = Vec::new();
        let after = std::iter::once(after).chain(std::iter::repeat(0));
        for (instance, after) in instances.iter().zip(after) {
            let left = limit.saturating_sub(old.len());
            old.extend(old_executions_of(&self.db, *instance, keep, after, left)?);
        }
        Ok(old)
    }

    fn delete_execution(&mut self, instance: u64, execution_id: u64) -> Rows<()> {
        self.db.execute(DELETE, (number(instance), number(execution_id))).map(|_| ())
    }
}

fn old_executions_of(
    db: &Db,
    instance: u64,
    keep: u32,
    after: u64,
    at_most: usize,
) -> Rows<Vec<ExecutionAge>> {
    let Some(oldest_kept) = db.value::<i64>(NTH_NEWEST, (number(instance), keep))? else {
        return Ok(Vec::new());
    };
    db.all(BETWEEN, (number(instance), number(after), oldest_kept, limit(at_most)), |row| {
        Ok(ExecutionAge {
            instance,
            execution_id: unsigned(row.get("execution_id")?),
            status: row.get("status")?,
            completed_at: row.get::<_, Option<i64>>("completed_at")?.map(time),
        })
    })
}
