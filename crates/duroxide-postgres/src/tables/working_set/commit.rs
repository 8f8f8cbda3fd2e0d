//! The last round trip of a transaction: sends its writes, and commits.

use std::time::Instant;

use duroxide_core::Timestamp;
use tokio_postgres::Row;

use super::NUMBERS_IN_BLOCK;
use crate::{
    connection::{Frame, Query, parameters},
    database_error::DatabaseError,
    tables::{
        Phase, PostgresTables,
        ready::{first_ready_query, read_first_ready},
    },
    value::{Columns, micros, time, unsigned},
};

const NEXT_DUE: &str = "SELECT min(due.at) AS at FROM (
    (SELECT look_at AS at FROM {s}.instance WHERE look_at >= $2::bigint ORDER BY look_at LIMIT 1)
    UNION ALL
    (SELECT wait_until FROM {s}.activity WHERE wait_until >= $2::bigint ORDER BY wait_until LIMIT 1)
    UNION ALL
    (SELECT remove_at FROM {s}.removal_task ORDER BY remove_at LIMIT 1)
    UNION ALL
    (SELECT lock_until FROM {s}.session WHERE lock_until > $1
        AND EXISTS (SELECT 1 FROM {s}.activity WHERE activity.session_id = session.id)
        ORDER BY lock_until LIMIT 1)
) AS due";

/// How many numbers a node has at hand. A batch that needs more draws them first, which costs a round trip.
const RESERVE: usize = 4_096;

/// The answer of a commit.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) due: NextDueTime,
    /// Whether other processes were notified.
    pub(crate) was_notified: bool,
}

/// The next due time, after a commit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NextDueTime {
    /// The database has returned the next due time.
    FromDatabase(Option<Timestamp>),
    /// The earliest time that the transaction itself has written.
    OfThisTransaction(Option<Timestamp>),
}

impl PostgresTables {
    /// Sends the writes and commits, in one round trip. Sends nothing if nothing was read or written.
    pub(in crate::tables) fn commit(&mut self) -> Result<(), DatabaseError> {
        self.finish_and_notify(Vec::new(), None).map(|_| ())
    }

    /// Like [`Self::commit`], and in the same round trip, behind the commit, notifies other processes: a transaction that
    /// notifies holds a lock of the whole server while it waits for the disk. Reads the next due time if that is requested, or
    /// if only the database knows it.
    pub(crate) fn commit_and_read_due(
        &mut self,
        now: Timestamp,
        asks: bool,
        notification: Option<Query>,
    ) -> Result<Committed, DatabaseError> {
        let asks = asks || self.set.writes_rare_due();
        let wrote = self.set.earliest_due();
        let from = self.scan_starts.due();
        let checks = self.row_cache.is_check_due();
        let question = asks.then(|| next_due_query(now, from));
        let first_ready = checks.then(|| first_ready_query(&mut self.scan_starts));
        let asked_at = Instant::now();
        let (answers, was_notified) =
            self.finish_and_notify(question.into_iter().chain(first_ready).collect(), notification)?;
        let mut answers = answers.into_iter();
        let due = if asks {
            let next = read_next_due(&answers.next().unwrap_or_default())?;
            self.scan_starts.learn_due(next, now, asked_at);
            NextDueTime::FromDatabase(next)
        } else {
            NextDueTime::OfThisTransaction(wrote)
        };
        self.scan_starts.lower_due(wrote);
        if checks {
            let rows = answers.next().unwrap_or_default();
            self.scan_starts.take(&rows)?;
            self.scan_starts.take_drawn(self.reserve.first());
            let first = rows.first().map(read_first_ready).transpose()?;
            self.cache_committed();
            self.row_cache.compare_first(first);
        }
        Ok(Committed { due, was_notified })
    }

    /// Returns the rows of each question, and whether the notification was sent.
    pub(in crate::tables) fn finish_and_notify(
        &mut self,
        questions: Vec<Query>,
        notification: Option<Query>,
    ) -> Result<(Vec<Vec<Row>>, bool), DatabaseError> {
        let mut queries = self.unsent(self.blocks_to_draw())?;
        let writes = queries.len();
        queries.extend(questions);
        let frame = match (self.phase, queries.len()) {
            (Phase::Unsent | Phase::Recalled, 0) => {
                self.forget();
                return Ok((Vec::new(), false));
            }
            (Phase::Unsent | Phase::Recalled, 1) => Frame::Single,
            (Phase::Unsent | Phase::Recalled, _) => Frame::BeginAndCommit,
            (Phase::Closed | Phase::Prefetched | Phase::Sent, _) => Frame::Commit,
        };
        let asked_at = Instant::now();
        // In any case the transaction is over; a call of `rollback` is harmless then.
        let finished = match notification {
            Some(notification) => self.connection.trip_with_behind(&queries, notification, frame),
            None => self.connection.trip(&queries, frame).map(|answers| (answers, false)),
        };
        let (mut answers, was_notified) = finished.inspect_err(|_| self.row_cache.suspend())?;
        let asked = answers.split_off(writes);
        self.keep_written(answers.last().and_then(|rows| rows.first()), asked_at)?;
        Ok((asked, was_notified))
    }

    /// The transaction was committed: its rows go into the row cache.
    fn keep_written(&mut self, outcome: Option<&Row>, asked_at: Instant) -> Result<(), DatabaseError> {
        self.routes.keep();
        self.lanes.keep();
        self.set.sent();
        self.close();
        if let Some(outcome) = outcome.filter(|row| has_outcome(row)) {
            self.reserve.add(outcome.column::<Vec<i64>>("firsts")?.into_iter().map(unsigned));
            self.learn_time(asked_at, outcome.column("now").map(time)?);
        }
        Ok(())
    }

    /// The statements for the writes of this transaction.
    pub(in crate::tables) fn unsent(&mut self, blocks: u64) -> Result<Vec<Query>, DatabaseError> {
        if self.set.revision.is_none() && self.set.has_writes() {
            self.set.revision = Some(self.next_number()?);
        }
        Ok(self.set.unsent(blocks))
    }

    fn blocks_to_draw(&self) -> u64 {
        let missing = RESERVE.saturating_sub(self.set.numbers.len());
        (missing as u64).div_ceil(NUMBERS_IN_BLOCK)
    }

    pub(in crate::tables) fn next_due(
        &mut self,
        sessions_after: Timestamp,
    ) -> Result<Option<Timestamp>, DatabaseError> {
        let rows = self.ask(next_due_query(sessions_after, 0))?;
        read_next_due(&rows)
    }
}

/// Whether a row is the outcome of a statement of several parts.
fn has_outcome(row: &Row) -> bool {
    row.columns().iter().any(|column| column.name() == "unchanged")
}

fn next_due_query(sessions_after: Timestamp, from: i64) -> Query {
    Query::new(NEXT_DUE, parameters![micros(sessions_after), from])
}

fn read_next_due(rows: &[Row]) -> Result<Option<Timestamp>, DatabaseError> {
    match rows.first() {
        Some(row) => Ok(row.column::<Option<i64>>("at")?.map(time)),
        None => Ok(None),
    }
}
