//! Takes over the rows of the intake, which callers have written in transactions of their own, before a batch.
//!
//! The takeover runs in transactions of its own, so that a row that breaks one does not fail an operation of the batch.

use std::time::Duration;

use tracing::error;

use super::{Batch, Done, Fault};
use crate::store::DeadLetterNote;

/// How many rows of the intake a transaction takes over.
pub const INTAKE_ROWS_MAX: usize = 256;
/// The retry pause for rows that another process has locked. It may have begun before the newest row was committed, or
/// may be suspended.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// The rows that a transaction took over from the intake.
#[derive(Debug, Default)]
pub struct TakenOver {
    /// How many rows.
    pub rows: usize,
    /// Whether rows may be left.
    pub more: bool,
    /// Rows that became dead letters.
    pub dead_letters: Vec<DeadLetterNote>,
}

/// Applies rows by `take`, which runs one transaction for up to the given number of rows, or makes a dead letter of a
/// row for the given reason.
///
/// 24.15: if a row breaks its transaction, the next one takes a single row, and a row that breaks even that becomes a dead letter:
/// no row holds up those behind it.
///
/// A store that cannot even store a dead letter leaves the rows where they are.
///
/// # Errors
/// If the store is unavailable, or a commit lost a race or its answer.
pub fn take_over(
    take: impl FnMut(usize, Option<String>) -> Result<TakenOver, Fault>,
) -> Result<TakenOver, Fault> {
    match take_over_or_break(take) {
        Err(Fault::Broken { failure, .. }) => {
            error!(target: "duroxide::store", %failure, "the intake cannot be taken over");
            // Rows that another process has locked must not delay a batch.
            Ok(TakenOver::default())
        }
        taken => taken,
    }
}

fn take_over_or_break(
    mut take: impl FnMut(usize, Option<String>) -> Result<TakenOver, Fault>,
) -> Result<TakenOver, Fault> {
    match take(INTAKE_ROWS_MAX, None) {
        Err(Fault::Broken { .. }) => {}
        taken => return taken,
    }
    let taken = match take(1, None) {
        Err(Fault::Broken { failure, .. }) => take(1, Some(failure.message)),
        taken => taken,
    }?;
    Ok(TakenOver { more: true, ..taken })
}

impl TakenOver {
    /// Carries out a batch after the intake was applied, and returns when to apply more.
    ///
    /// # Errors
    /// The faults of `transact`.
    pub fn then(
        self,
        batch: &Batch<'_>,
        transact: impl FnOnce(&Batch<'_>) -> Result<Done, Fault>,
    ) -> Result<Done, Fault> {
        // A fetch that found nothing before may find something now.
        let batch = Batch { promote: batch.promote || self.rows > 0, ..batch.clone() };
        let mut done = transact(&batch)?;
        done.dead_letters.extend(self.dead_letters);
        if self.more {
            let pause = if self.rows == 0 { BUSY_PAUSE } else { Duration::ZERO };
            let again = batch.now.saturating_add(pause);
            done.next_wake = done.next_wake.at_latest(again);
        }
        Ok(done)
    }
}
