//! How leases change after the clock was set.

use std::time::Duration;

use duroxide_core::Timestamp;

use super::ClockStep;

/// A change of all leases that the next transaction makes first, because the clock was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseChange {
    /// When a transaction is made for this change alone.
    pub(super) at: Timestamp,
    /// Until when transactions leave the change out, because it failed.
    pub(super) not_before: Timestamp,
    /// How far the clock was set forward, and leases have to move. Leases that are too long are shortened in any case.
    pub(crate) forward: Duration,
    /// How far the clock was set back before; a step forward that only undoes that moves no lease.
    back: Duration,
}

impl LeaseChange {
    /// Combines a pending change with another step of the clock.
    pub(super) fn after(pending: Option<Self>, step: ClockStep, now: Timestamp) -> Self {
        let (forward, back) = pending.map_or_else(Default::default, |change| (change.forward, change.back));
        let (forward, back) = match step {
            ClockStep::Forward(by) => (forward + by.saturating_sub(back), back.saturating_sub(by)),
            ClockStep::Back(by) => (forward.saturating_sub(by), back + by.saturating_sub(forward)),
        };
        Self { at: now, not_before: now, forward, back }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn after(steps: &[ClockStep]) -> Duration {
        let none = None;
        let change =
            steps.iter().fold(none, |change, step| Some(LeaseChange::after(change, *step, Timestamp::ZERO)));
        change.unwrap().forward
    }

    #[test]
    fn leases_move_by_the_lead_of_the_clock_only() {
        use ClockStep::{Back, Forward};
        assert_eq!(after(&[Forward(HOUR)]), HOUR);
        assert_eq!(after(&[Forward(HOUR), Forward(HOUR)]), 2 * HOUR);
        assert_eq!(after(&[Back(HOUR)]), Duration::ZERO);
        assert_eq!(after(&[Forward(3 * HOUR), Back(HOUR)]), 2 * HOUR);
        assert_eq!(after(&[Forward(HOUR), Back(HOUR)]), Duration::ZERO);
        assert_eq!(after(&[Back(HOUR), Forward(HOUR)]), Duration::ZERO);
        assert_eq!(after(&[Back(HOUR), Forward(3 * HOUR)]), 2 * HOUR);
    }
}
