//! Takes over rows of the intake, which callers write in transactions of their own.

use std::{borrow::Cow, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::store::{
    Batch, Done, FailureClass, Fault, IntakeRow, Op, StoreFailure, Submitted, TakenOver, TransactionSteps,
    caught, take_over,
};

use super::{Clock, PostgresEngine};
use crate::{database_error::DatabaseError, needs::Needs, session::News, tables::WaitingRows};

impl PostgresEngine {
    /// Takes over rows of the intake, then carries out a batch.
    pub(super) fn transact_with_intake(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        let taken = take_over(|max, refusal| self.take_rows(batch.now, max, refusal))?;
        self.intake_due = taken.more;
        taken.then(batch, |batch| self.transact_batch(batch))
    }

    /// Whether the intake has rows. The database is asked only if it may have some.
    pub(super) fn has_intake(&mut self) -> Result<bool, StoreFailure> {
        if self.intake_due {
            self.intake_due = self.tables().has_intake()?;
        }
        Ok(self.intake_due)
    }

    /// One transaction, for up to `max` rows.
    fn take_rows(&mut self, now: Timestamp, max: usize, refusal: Option<String>) -> Result<TakenOver, Fault> {
        self.ensure_open().map_err(Fault::Unavailable)?;
        let result = self.take_rows_in_transaction(now, max, refusal);
        result.map_err(|fault| self.rules.roll_back_after(fault))
    }

    fn take_rows_in_transaction(
        &mut self,
        now: Timestamp,
        max: usize,
        refusal: Option<String>,
    ) -> Result<TakenOver, Fault> {
        let waiting = self.tables().begin_intake(max).map_err(DatabaseError::into_fault)?;
        if waiting.rows.is_empty() {
            self.rules.rollback();
            return Ok(TakenOver { more: !waiting.is_locked, ..TakenOver::default() });
        }
        let operations = operations(&waiting.rows);
        let named = Batch { now, operations, ..Batch::default() };
        let now = (self.clock == Clock::Caller).then_some(now);
        let prefetched = self.tables().prefetch_for_intake(&Needs::of(&named, now));
        let Some(prefetched) = prefetched.map_err(DatabaseError::into_fault)? else {
            return self.take_rows_in_transaction(named.now, max, refusal);
        };
        let now = prefetched.now;
        let carried_out = caught("intake", FailureClass::Permanent, || {
            self.rules.begin(now)?;
            match (&waiting.rows[..], refusal) {
                ([row], Some(error)) => Ok(vec![self.rules.refuse_intake(row, error)?]),
                (rows, _) => self.rules.take_in(rows),
            }
        });
        let dead_letters = carried_out.map_err(Fault::of_transaction)?;
        let taken = TakenOver { rows: waiting.rows.len(), more: waiting.leaves_some(max), dead_letters };
        self.commit_intake(waiting, now)?;
        Ok(taken)
    }

    fn commit_intake(&mut self, waiting: WaitingRows, now: Timestamp) -> Result<(), Fault> {
        let news = self.tables().ready_rows_left();
        let notification = self.notification((news != News::default()).then_some(news));
        let committed = self.tables().commit_intake(waiting.numbers, notification);
        let was_notified =
            committed.map_err(|error| Fault::of_commit(error.into_failure(), Done::at(now)))?;
        self.rules.committed();
        self.note_notified(was_notified);
        Ok(())
    }
}

/// The operations that the rows stand for, for the rows that they need.
fn operations(rows: &[IntakeRow]) -> Vec<Submitted<'static>> {
    let messages = rows.iter().filter_map(|row| row.message().ok());
    let operations = messages.map(|message| match message.start {
        Some(_) => Op::StartIfNew(message),
        None => Op::EnqueueMessage(message),
    });
    operations.map(|op| Submitted { op: Cow::Owned(op), waited: Duration::ZERO }).collect()
}
