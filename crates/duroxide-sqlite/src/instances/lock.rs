//! What the holder of an instance lock may do with it, beside committing a round.

use std::time::Duration;

use duroxide_core::Timestamp;
use duroxide_provider::store::{Answer, ApplyError, Refusal, token_row};

use super::{Changed, InstanceRow, Kept, Lock};
use crate::{
    SqliteEngine,
    db::{micros, number},
};

const RENEW: &str = "UPDATE instance SET lock_until = ?2, lease = ?3 WHERE id = ?1";

impl SqliteEngine {
    /// The instance a token locks. The lease is checked at the time the operation was handed in: a busy store must
    /// not end healthy leases; a takeover in between shows as another token.
    pub(crate) fn held_instance(&self, token: &str, handed_in: Timestamp) -> Result<InstanceRow, ApplyError> {
        let row = self.instance_locked_by(token)?.ok_or(Refusal::InvalidLockToken)?;
        if row.is_locked(handed_in) { Ok(row) } else { Err(Refusal::InstanceLockExpired.into()) }
    }

    /// The same with its current execution.
    pub(crate) fn held_execution(&mut self, token: &str, handed_in: Timestamp) -> Result<Kept, ApplyError> {
        let id = number(token_row(token).ok_or(Refusal::InvalidLockToken)?);
        let found = self.instance_with_execution(id)?;
        let held = found.filter(|held| held.row.is_locked_by(token)).ok_or(Refusal::InvalidLockToken)?;
        if held.row.is_locked(handed_in) { Ok(held) } else { Err(Refusal::InstanceLockExpired.into()) }
    }

    pub(crate) fn renew_instance(
        &mut self,
        token: &str,
        extend_for: Duration,
        handed_in: Timestamp,
    ) -> Result<Answer, ApplyError> {
        let mut row = self.held_instance(token, handed_in)?;
        let until = self.now.saturating_add(extend_for);
        self.kept.forget(row.id);
        self.db.execute(RENEW, (row.id, micros(until), lease(extend_for)))?;
        row.lock = Some(Lock { token: token.to_owned(), until });
        self.settle(&row)?;
        Ok(Answer::Done)
    }

    /// Gives a batch back. Only the token counts, not the lease: nobody else holds these rows.
    pub(crate) fn abandon_instance(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<Answer, ApplyError> {
        let mut row = self.instance_locked_by(token)?.ok_or(Refusal::InvalidLockToken)?;
        let hidden_until = delay.filter(|delay| !delay.is_zero()).map(|delay| self.now.saturating_add(delay));
        self.release_batch(&row, hidden_until.unwrap_or_default(), ignore_attempt)?;
        row.lock = None;
        row.batch = None;
        row.suspect |= !ignore_attempt;
        row.ready = None;
        self.write_settled(&row, Changed::Nothing)?;
        Ok(Answer::Done)
    }
}

/// The length of a lease as it is stored.
pub(crate) fn lease(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}
