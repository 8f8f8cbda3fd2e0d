//! One statement that stores a message and makes the instance ready that waits for it.

use duroxide_core::Timestamp;
use duroxide_provider::store::{MessageRow, Readies};

use crate::{
    connection::{Frame, Query, parameters},
    database_error::DatabaseError,
    tables::PostgresTables,
    value::{Columns, micros},
};

/// Repeats `after_arrival` of the rules (`rules/readiness.rs`). An instance that is known, not ready and waits without an
/// end has no messages, so this one wakes it; while it is locked, it waits for the end of its lease. The other conditions of
/// the rules are columns of its row; the statement checks them again after waiting for another writer. The numbers are drawn
/// when this statement has the row: one for the message, one as the ready number, one for the revision.
const WAKE: &str = "WITH woken AS MATERIALIZED (
        SELECT number, route FROM {s}.instance
        WHERE id = $1 AND known AND ready_number IS NULL AND wait_until IS NULL
            AND route IS NOT NULL AND status IS DISTINCT FROM 'ContinuedAsNew'
        FOR UPDATE
    ), drawn AS MATERIALIZED (
        SELECT number, route, nextval('{s}.numbers') AS first,
            coalesce($5::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS now
        FROM woken
    ), changed AS (
        UPDATE {s}.instance SET ready_number = drawn.first + 1, revision = drawn.first + 2
        FROM drawn WHERE instance.number = drawn.number
    ), placed AS (
        INSERT INTO {s}.ready_instance (route, place, instance) SELECT route, first + 1, number FROM drawn
    ), queued AS (
        INSERT INTO {s}.message (instance, due_at, number, kind, key, enqueued_at, hidden_until, attempts, data)
        SELECT number, 0, first, $2::bigint, $3::text, now, 0, 0, $4::text FROM drawn
    ) SELECT first, now FROM drawn";

/// An instance that was woken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Woken {
    /// The time of the message.
    pub(crate) now: Timestamp,
    /// The place of the instance among the ready ones.
    pub(crate) place: u64,
}

impl PostgresTables {
    /// Stores a message that is visible at once and no start, in a transaction of its own, if its instance waits for one.
    /// `None`: the instance does not, and nothing was stored.
    pub(crate) fn wake_waiting(
        &mut self,
        message: &MessageRow,
        now: Option<Timestamp>,
    ) -> Result<Option<Woken>, DatabaseError> {
        let query = Query::new(
            WAKE,
            parameters![
                message.instance.clone(),
                message.kind.number(),
                message.key.clone(),
                message.data.clone(),
                now.map(micros),
            ],
        );
        let answers =
            self.connection.trip(&[query], Frame::Single).inspect_err(|_| self.row_cache.suspend())?;
        let Some(row) = answers.first().and_then(|rows| rows.first()) else { return Ok(None) };
        // The row cache does not have this change.
        self.forget_ready(Readies { instances: true, activities: false });
        // A row that got a number drawn earlier would come before this instance, although it becomes ready later.
        let first = row.number("first")?;
        self.reserve.replace(vec![first]);
        let [_message, place, _revision] = [self.reserve.next(), self.reserve.next(), self.reserve.next()];
        Ok(Some(Woken { now: row.time("now")?, place: place.unwrap_or(first) }))
    }
}
