//! Extends short leases by the duration of slow transactions.
//!
//! A lease counts from the beginning of its transaction, and its holder gets the claim after the commit. If the commit took
//! longer than the lease, other nodes would claim the item before the holder had begun, again and again until the item is
//! poison. So a lease that is short compared with recent transactions is extended by their duration. If a transaction takes
//! longer than that, the next one renews its leases once.

use std::{borrow::Cow, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::store::Op;

use super::{StoreDriver, transaction::Outcome};
use crate::{job::Job, submit::Request};

/// Faster transactions do not matter, because no lease is that short.
const SLOW: Duration = Duration::from_millis(50);
/// Bounds the extension, so that items of a dead process are not locked for much longer on a slow disk.
const ALLOWANCE_MAX: Duration = Duration::from_secs(60);
/// At most 1/4 of a lease may have passed when its holder gets the claim. The holder renews after half of the lease.
const PART_MAX: u32 = 4;

/// The extension of short leases while transactions are slow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LeaseAllowance(Duration);

impl LeaseAllowance {
    /// The allowance after a transaction of this duration. It shrinks slowly, because a fast transaction may have written
    /// nothing.
    fn after(self, took: Duration) -> Self {
        let time = took.max(self.0 / 2);
        Self(if time < SLOW { Duration::ZERO } else { time.min(ALLOWANCE_MAX) })
    }

    /// The extension of this lease. A lease that is long compared with the transactions keeps the requested length, so that
    /// other nodes can rely on its end.
    pub(super) fn beside(self, lease: Duration) -> Option<Duration> {
        Some(self.0).filter(|time| *time > lease / PART_MAX)
    }

    /// Whether too much of a lease has passed after a transaction of this duration.
    fn is_exceeded(self, took: Duration, lease: Duration) -> bool {
        let late = took.saturating_sub(self.beside(lease).unwrap_or_default());
        late >= SLOW && late > lease / PART_MAX
    }

    /// The operation with this allowance, if it gives a lease.
    pub(super) fn applied_to(self, op: &Op) -> Cow<'_, Op> {
        let longer = op.profile().lease.and_then(|lease| Some(lease.saturating_add(self.beside(lease)?)));
        longer.map_or(Cow::Borrowed(op), |lease| Cow::Owned(op.clone().with_lease(lease)))
    }
}

impl StoreDriver {
    /// Renews the leases of a transaction that began `now` if too much of them has passed, before their holders get them. A
    /// renewal without a caller is not repeated: a store that is always slow would renew leases of dead nodes forever.
    pub(super) fn renew_late_leases(
        &mut self,
        jobs: &[Job],
        outcome: &Outcome,
        took: Duration,
        now: Timestamp,
    ) {
        let allowance = self.lease_allowance;
        let is_late = |lease: Duration| allowance.is_exceeded(took, lease);
        let asked = jobs.iter().filter(|job| !job.is_unattended()).map(Job::op);
        let mut renewals: Vec<Op> =
            asked.filter(|op| op.profile().lease.is_some_and(is_late)).cloned().collect();
        renewals.extend(self.machine.instances.renewals(&outcome.instances, is_late));
        renewals.extend(self.machine.activities.renewals(&outcome.activities, is_late));
        for op in renewals {
            self.machine.accept(Request::Job(Job::unattended(op, now)));
        }
    }

    /// Notes the duration of the last transaction.
    pub(super) fn note_duration(&mut self, took: Duration) {
        self.lease_allowance = self.lease_allowance.after(took);
    }
}
