//! Rows that callers have written in transactions of their own.

use duroxide_provider::store::{INTAKE_BYTES_MAX, IntakeRow, StoreFailure};

use super::Prefetched;
use crate::{
    connection::{Frame, Query, parameters},
    database_error::DatabaseError,
    needs::Needs,
    tables::{Phase, PostgresTables},
    value::{Columns, limit},
};

/// 24.14: one node applies rows at a time: two could change the order of one caller's rows. The lock ends with the transaction.
const LOCK: &str =
    "SELECT pg_try_advisory_xact_lock(hashtextextended('duroxide intake {s}', 0)) AS is_locked";
/// At most `$1` rows, up to and including the row with which they exceed `$2` bytes.
const OLDEST: &str = "SELECT number, kind, instance_id, name, version, data FROM (
        SELECT *, sum(octet_length(data)) OVER (ORDER BY number) AS bytes FROM {s}.intake ORDER BY number LIMIT $1
    ) AS oldest WHERE bytes - octet_length(data) < $2::bigint ORDER BY number";
const HAS_ROWS: &str = "SELECT 1 FROM {s}.intake LIMIT 1";
const DELETE: &str = "DELETE FROM {s}.intake WHERE number = ANY ($1::bigint[])";

/// Rows that this transaction may take over.
#[derive(Debug)]
pub(crate) struct WaitingRows {
    /// Whether this node has the lock of the intake. If not, another node takes rows over now.
    pub(crate) is_locked: bool,
    pub(crate) numbers: Vec<i64>,
    pub(crate) rows: Vec<IntakeRow>,
}

impl WaitingRows {
    /// Whether rows may be left behind these, which are `max` at most.
    pub(crate) fn leaves_some(&self, max: usize) -> bool {
        let bytes = self.rows.iter().fold(0_usize, |sum, row| sum.saturating_add(row.data.len()));
        self.rows.len() >= max || bytes >= INTAKE_BYTES_MAX
    }
}

impl PostgresTables {
    /// Begins a transaction that takes rows over, in one round trip.
    pub(crate) fn begin_intake(&mut self, max: usize) -> Result<WaitingRows, DatabaseError> {
        self.forget();
        self.phase = Phase::Unsent;
        let bytes_max = i64::try_from(INTAKE_BYTES_MAX).unwrap_or(i64::MAX);
        let queries = [Query::new(LOCK, Vec::new()), Query::new(OLDEST, parameters![limit(max), bytes_max])];
        let answers = self.send(&queries)?;
        let mut waiting = WaitingRows { is_locked: false, numbers: Vec::new(), rows: Vec::new() };
        let [lock, rows] = &answers[..] else { return Ok(waiting) };
        for row in lock {
            waiting.is_locked = row.column("is_locked")?;
        }
        for row in rows.iter().filter(|_| waiting.is_locked) {
            waiting.numbers.push(row.column("number")?);
            waiting.rows.push(IntakeRow {
                kind: row.column("kind")?,
                instance_id: row.column("instance_id")?,
                name: row.column("name")?,
                version: row.column("version")?,
                data: row.column("data")?,
            });
        }
        Ok(waiting)
    }

    /// Locks and loads the rows that the intake needs, in one round trip of the same transaction. `None`: the intake
    /// names new routes. These must not be stored in a transaction that may be rolled back, so this one is rolled back,
    /// and has to begin again.
    pub(crate) fn prefetch_for_intake(
        &mut self,
        needs: &Needs<'_>,
    ) -> Result<Option<Prefetched>, DatabaseError> {
        let names = self.requests_for_dictionaries(needs);
        if !names.is_empty() {
            self.rollback();
            let (queries, meanings): (Vec<_>, Vec<_>) =
                names.into_iter().map(|request| (request.query, request.meaning)).unzip();
            let answers = self.connection.trip(&queries, Frame::Plain)?;
            self.take_answers(meanings, answers)?;
            return Ok(None);
        }
        let prefetched = self.load_needs(needs)?;
        self.phase = Phase::Prefetched;
        Ok(Some(prefetched))
    }

    /// Deletes the intake's rows, sends the writes and commits, in one round trip. Returns whether other processes were
    /// notified.
    pub(crate) fn commit_intake(
        &mut self,
        numbers: Vec<i64>,
        notification: Option<Query>,
    ) -> Result<bool, DatabaseError> {
        let delete = Query::new(DELETE, parameters![numbers]);
        self.finish_and_notify(vec![delete], notification).map(|(_, was_notified)| was_notified)
    }

    /// Whether the intake has rows.
    pub(crate) fn has_intake(&mut self) -> Result<bool, StoreFailure> {
        let found = self.ask(Query::new(HAS_ROWS, Vec::new())).map(|rows| !rows.is_empty());
        let found = found.map_err(DatabaseError::into_failure);
        self.rollback();
        found
    }
}
