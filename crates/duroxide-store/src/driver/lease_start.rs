//! A lease begins when its holder learns of it.
//!
//! The store gives a lease as of the time of a transaction, and its holder learns of it after the commit. If that took
//! longer than the lease, the work would be given to others before the holder had begun, again and again until it is
//! poison. So a lease that is short beside recent transactions is longer by what they took, and if a transaction took longer
//! than its leases allow for, they are renewed once by the next one.

use std::{borrow::Cow, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::store::Op;

use super::{StoreDriver, transaction::Outcome};
use crate::{job::Job, submit::Request};

/// No lease is so short that a faster transaction matters.
const SLOW: Duration = Duration::from_millis(50);
/// However slow the disk is, what a dead process held is not locked for much longer.
const ALLOWANCE_MAX: Duration = Duration::from_secs(60);
/// The part of a lease that may have passed when its holder learns of it. The holder renews after half of it.
const PART_MAX: u32 = 4;

/// The time that is added to short leases, because transactions are slow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LeaseAllowance(Duration);

impl LeaseAllowance {
    /// The allowance after another transaction, which took this long. One that was fast may only have written nothing.
    fn after(self, took: Duration) -> Self {
        let time = took.max(self.0 / 2);
        Self(if time < SLOW { Duration::ZERO } else { time.min(ALLOWANCE_MAX) })
    }

    /// By how much a lease is longer. A lease that is long beside the transactions is as long as asked for: whoever waits
    /// for its end can rely on it.
    pub(super) fn beside(self, lease: Duration) -> Option<Duration> {
        Some(self.0).filter(|time| *time > lease / PART_MAX)
    }

    /// Whether too much of a lease has passed after a transaction that took this long.
    fn is_exceeded(self, took: Duration, lease: Duration) -> bool {
        let late = took.saturating_sub(self.beside(lease).unwrap_or_default());
        late >= SLOW && late > lease / PART_MAX
    }

    /// The operation with this allowance, if it gives a lease.
    pub(super) fn applied_to(self, op: &Op) -> Cow<'_, Op> {
        let longer = lease_of(op).and_then(|lease| Some(lease.saturating_add(self.beside(lease)?)));
        longer.map_or(Cow::Borrowed(op), |lease| Cow::Owned(with_lease(op, lease)))
    }
}

/// The length of the lease that an operation gives.
fn lease_of(op: &Op) -> Option<Duration> {
    match op {
        Op::RenewInstance { extend_for, .. }
        | Op::RenewActivity { extend_for, .. }
        | Op::RenewSessions { extend_for, .. } => Some(*extend_for),
        _ => None,
    }
}

fn with_lease(op: &Op, lease: Duration) -> Op {
    let mut op = op.clone();
    if let Op::RenewInstance { extend_for, .. }
    | Op::RenewActivity { extend_for, .. }
    | Op::RenewSessions { extend_for, .. } = &mut op
    {
        *extend_for = lease;
    }
    op
}

impl StoreDriver {
    /// A transaction that began `now` took this long, and gave these leases. Those of which too much has passed are
    /// renewed before anyone is told of them. A renewal that nobody asked for is not renewed again, or a store that is
    /// always slow would keep the leases of the dead.
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
        let mut renewals: Vec<Op> = asked.filter(|op| lease_of(op).is_some_and(is_late)).cloned().collect();
        renewals.extend(self.machine.instances.renewals(&outcome.instances, is_late));
        renewals.extend(self.machine.activities.renewals(&outcome.activities, is_late));
        for op in renewals {
            self.machine.accept(Request::Job(Job::unattended(op, now)));
        }
    }

    /// Notes what the last transaction took.
    pub(super) fn note_duration(&mut self, took: Duration) {
        self.lease_allowance = self.lease_allowance.after(took);
    }
}
