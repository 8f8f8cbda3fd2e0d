//! Execution rows: status, output, pin and counters of each run.

use duroxide_core::Timestamp;
use duroxide_provider::{ExecutionMetadata, VersionTriple, store::StoreFailure};
use rusqlite::Row;

use crate::{
    SqliteEngine,
    db::{micros, number, time, triple, triple_columns, unsigned},
    instances::RUNNING,
};

const SELECT: &str =
    "SELECT status, output, major, minor, patch, last_event_id, turns, started_at, completed_at
    FROM execution WHERE instance = ?1 AND execution_id = ?2";
const UPSERT: &str = "INSERT INTO execution (instance, execution_id, status, output, major, minor, patch,
        last_event_id, turns, started_at, completed_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    ON CONFLICT (instance, execution_id) DO UPDATE SET status = ?3, output = ?4, major = ?5, minor = ?6,
        patch = ?7, last_event_id = ?8, turns = ?9, completed_at = ?11";

/// One run of an instance.
#[derive(Debug, Clone)]
pub(crate) struct ExecutionRow {
    pub(crate) status: String,
    pub(crate) output: Option<String>,
    pub(crate) pinned: Option<VersionTriple>,
    pub(crate) last_event_id: u64,
    pub(crate) turns: u64,
    pub(crate) started_at: Timestamp,
    pub(crate) completed_at: Option<Timestamp>,
}

impl Default for ExecutionRow {
    fn default() -> Self {
        Self {
            status: RUNNING.to_owned(),
            output: None,
            pinned: None,
            last_event_id: 0,
            turns: 0,
            started_at: Timestamp::ZERO,
            completed_at: None,
        }
    }
}

impl ExecutionRow {
    /// A run that begins now.
    pub(crate) fn begun(now: Timestamp) -> Self {
        Self { started_at: now, ..Self::default() }
    }

    fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            status: row.get(first)?,
            output: row.get(first + 1)?,
            pinned: triple(row, first + 2)?,
            last_event_id: unsigned(row.get(first + 5)?),
            turns: unsigned(row.get(first + 6)?),
            started_at: time(row.get(first + 7)?),
            completed_at: row.get::<_, Option<i64>>(first + 8)?.map(time),
        })
    }

    /// The execution of a joined row, if there is one.
    pub(crate) fn read_joined(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Self>> {
        let joined = !matches!(row.get_ref(first)?, rusqlite::types::ValueRef::Null);
        joined.then(|| Self::read(row, first)).transpose()
    }

    /// Takes what a round says of this run. What it does not mention stays.
    pub(crate) fn describe(&mut self, metadata: &ExecutionMetadata, now: Timestamp) {
        if let Some(status) = &metadata.status {
            self.status.clone_from(status);
            self.output.clone_from(&metadata.output);
            self.completed_at = (status != RUNNING).then_some(now);
        }
        if let Some(version) = &metadata.pinned_duroxide_version {
            self.pinned = Some(version.into());
        }
    }
}

impl SqliteEngine {
    pub(crate) fn execution(&self, id: i64, execution_id: u64) -> Result<Option<ExecutionRow>, StoreFailure> {
        self.db.first(SELECT, (id, number(execution_id)), |row| ExecutionRow::read(row, 0))
    }

    /// The pinned version of an execution.
    pub(crate) fn pinned(&self, id: i64, execution_id: u64) -> Result<Option<VersionTriple>, StoreFailure> {
        Ok(self.execution(id, execution_id)?.and_then(|execution| execution.pinned))
    }

    pub(crate) fn write_execution(
        &self,
        id: i64,
        execution_id: u64,
        execution: &ExecutionRow,
    ) -> Result<(), StoreFailure> {
        let [major, minor, patch] = triple_columns(execution.pinned);
        let columns = (
            id,
            number(execution_id),
            &execution.status,
            &execution.output,
            major,
            minor,
            patch,
            number(execution.last_event_id),
            number(execution.turns),
            micros(execution.started_at),
            execution.completed_at.map(micros),
        );
        self.db.execute(UPSERT, columns).map(|_| ())
    }
}
