//! Applies the rows that callers have written in transactions of their own.

use duroxide_core::Timestamp;
use duroxide_provider::store::{
    Batch, Done, FailureClass, Fault, StoreFailure, TakenOver, TransactionSteps, caught, take_over,
};

use super::SqliteEngine;
use crate::tables::intake;

impl SqliteEngine {
    /// Carries out a batch after the rows of the intake.
    pub(super) fn transact_with_intake(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        let taken = take_over(|max, refusal| self.take_rows(batch.now, max, refusal))?;
        self.intake_due = taken.more;
        taken.then(batch, |batch| self.rules.transact_in_steps(batch))
    }

    /// Whether the intake has rows. Read only if it may have some.
    pub(super) fn has_intake(&mut self) -> Result<bool, StoreFailure> {
        if self.intake_due {
            self.intake_due = intake::has_rows(self.db())?;
        }
        Ok(self.intake_due)
    }

    /// One transaction, for up to `max` rows.
    fn take_rows(&mut self, now: Timestamp, max: usize, refusal: Option<String>) -> Result<TakenOver, Fault> {
        let begun = caught("begin", FailureClass::OutcomeUnknown, || self.rules.begin(now));
        let taken = begun.map_err(Fault::Unavailable).and_then(|()| {
            caught("intake", FailureClass::Permanent, || self.carry_out_rows(max, refusal))
                .map_err(|failure| Fault::of_commit(failure, Done::at(now)))
        });
        let committed = taken.and_then(|taken| {
            let committed = caught("commit", FailureClass::OutcomeUnknown, || self.rules.commit());
            committed.map(|()| taken).map_err(|failure| Fault::of_commit(failure, Done::at(now)))
        });
        committed.map_err(|fault| self.rules.roll_back_after(fault))
    }

    fn carry_out_rows(&mut self, max: usize, refusal: Option<String>) -> Result<TakenOver, StoreFailure> {
        let (last, rows) = intake::oldest(self.db(), max)?;
        let dead_letters = match (&rows[..], refusal) {
            ([row], Some(error)) => vec![self.rules.refuse_intake(row, error)?],
            (rows, _) => self.rules.take_in(rows)?,
        };
        if let Some(last) = last {
            intake::delete_up_to(self.db(), last)?;
        }
        Ok(TakenOver { rows: rows.len(), more: intake::has_rows(self.db())?, dead_letters })
    }
}
