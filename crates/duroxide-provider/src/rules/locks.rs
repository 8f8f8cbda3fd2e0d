//! Operations of the holder of an instance lock, except committing a round.

use std::time::Duration;

use duroxide_core::Timestamp;

use super::{InstanceChange, InstanceRow, Lease, Loaded, NOT_HIDDEN, Rows, Rules, Tables};
use crate::store::{Answer, ApplyError, Refusal, token_row};

impl<T: Tables> Rules<T> {
    /// The instance that a token locks, with its current execution. The lease is checked at the time the operation was
    /// submitted: a busy store must not end healthy leases. A takeover in between shows as another token.
    pub(super) fn held_instance(&mut self, token: &str, handed_in: Timestamp) -> Result<Loaded, ApplyError> {
        let found = match token_row(token) {
            Some(number) => self.tables.load(number)?,
            None => None,
        };
        let held = found.filter(|held| held.row.is_locked_by(token)).ok_or(Refusal::InvalidLockToken)?;
        if held.row.is_locked(handed_in) { Ok(held) } else { Err(Refusal::InstanceLockExpired.into()) }
    }

    /// The instance that a token locks, whether its lease is live or not.
    pub(super) fn instance_locked_by(&mut self, token: &str) -> Rows<Option<InstanceRow>> {
        let Some(number) = token_row(token) else { return Ok(None) };
        Ok(self.tables.instance(number)?.filter(|row| row.is_locked_by(token)))
    }

    pub(super) fn renew_instance(
        &mut self,
        token: &str,
        extend_for: Duration,
        handed_in: Timestamp,
    ) -> Result<Answer, ApplyError> {
        let mut row = self.instance_locked_by(token)?.ok_or(Refusal::InvalidLockToken)?;
        if !row.is_locked(handed_in) {
            return Err(Refusal::InstanceLockExpired.into());
        }
        if let Some(lock) = &mut row.lock {
            extend(&mut lock.lease, self.now, extend_for);
        }
        self.settle_with(row, InstanceChange::Lock)?;
        Ok(Answer::Done)
    }

    /// Gives the messages of a claim back. Only the token counts, not the lease: no other claim can hold these rows.
    pub(super) fn abandon_instance(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<Answer, ApplyError> {
        let mut row = self.instance_locked_by(token)?.ok_or(Refusal::InvalidLockToken)?;
        let hidden_until = self.hidden_until(delay);
        if let Some(lock) = row.lock.take() {
            self.tables.release(row.number, &lock.extent, hidden_until, u32::from(!ignore_attempt))?;
        }
        row.may_be_poison |= !ignore_attempt;
        self.settle_at_the_back(row, InstanceChange::Lock)?;
        Ok(Answer::Done)
    }

    /// Until when an abandon with this delay hides its rows.
    pub(super) fn hidden_until(&self, delay: Option<Duration>) -> Timestamp {
        let delay = delay.filter(|delay| !delay.is_zero());
        delay.map_or(NOT_HIDDEN, |delay| self.now.saturating_add(delay))
    }
}

/// A lease that begins anew.
pub(super) fn extend(lease: &mut Lease, now: Timestamp, length: Duration) {
    lease.until = now.saturating_add(length);
    lease.length = length;
}
