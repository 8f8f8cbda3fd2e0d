//! Notices that the wall clock was set, and how leases change after that.

use std::time::Duration;

use duroxide_core::Timestamp;

/// A smaller difference is drift: clocks run at slightly different speeds, and a clock that is corrected little by little is
/// not set. A larger one changes leases.
const DRIFT_MAX: Duration = Duration::from_secs(1);

/// A step of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockStep {
    Back(Duration),
    /// Forward, or the machine was suspended.
    Forward(Duration),
}

/// Compares the wall clock with a clock that cannot be set.
#[derive(Debug, Default)]
pub(super) struct ClockCheck {
    /// A moment at which both clocks were read.
    agreed: Option<(Timestamp, Duration)>,
}

impl ClockCheck {
    /// How far the wall clock moved away from the steady one since they last agreed. From now on they agree again.
    pub(super) fn step(&mut self, now: Timestamp, steady: Duration) -> Option<ClockStep> {
        let (then, steady_then) = *self.agreed.get_or_insert((now, steady));
        let expected = then.saturating_add(steady.saturating_sub(steady_then));
        let (back, forward) = (expected.saturating_since(now), now.saturating_since(expected));
        if back.max(forward) <= DRIFT_MAX {
            return None;
        }
        self.agreed = Some((now, steady));
        Some(if forward.is_zero() { ClockStep::Back(back) } else { ClockStep::Forward(forward) })
    }
}

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
    use super::{ClockStep::*, *};

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn time_that_passes_on_both_clocks_is_no_jump() {
        let mut check = ClockCheck::default();
        assert_eq!(check.step(at(1_000), SECOND), None);
        assert_eq!(check.step(at(9_000), 8_001 * SECOND), None);
    }

    #[test]
    fn both_directions_are_noticed_once() {
        let mut check = ClockCheck::default();
        check.step(at(1_000), SECOND);
        assert_eq!(check.step(at(900), 2 * SECOND), Some(Back(101 * SECOND)));
        assert_eq!(check.step(at(901), 3 * SECOND), None);
        assert_eq!(check.step(at(5_000), 4 * SECOND), Some(Forward(4_098 * SECOND)));
        assert_eq!(check.step(at(5_001), 5 * SECOND), None);
    }

    /// A clock set back for less time than the store slept never shows an earlier time than before.
    #[test]
    fn a_set_back_clock_is_noticed_also_if_it_does_not_go_below_what_was_seen() {
        let mut check = ClockCheck::default();
        check.step(at(1_000), SECOND);
        assert_eq!(check.step(at(1_001), 8 * SECOND), Some(Back(6 * SECOND)));
    }

    #[test]
    fn slow_drift_adds_up() {
        let mut check = ClockCheck::default();
        let drifted = |seconds: u64| Timestamp::from_millis(seconds * 999);
        let noticed = (0..=2_500).filter(|n| check.step(drifted(*n), SECOND * *n as u32).is_some()).count();
        assert_eq!(noticed, 2);
    }

    const HOUR: Duration = Duration::from_secs(3_600);

    fn after(steps: &[ClockStep]) -> Duration {
        let none = None;
        let change =
            steps.iter().fold(none, |change, step| Some(LeaseChange::after(change, *step, Timestamp::ZERO)));
        change.unwrap().forward
    }

    #[test]
    fn leases_move_by_the_lead_of_the_clock_only() {
        assert_eq!(after(&[Forward(HOUR)]), HOUR);
        assert_eq!(after(&[Forward(HOUR), Forward(HOUR)]), 2 * HOUR);
        assert_eq!(after(&[Back(HOUR)]), Duration::ZERO);
        assert_eq!(after(&[Forward(3 * HOUR), Back(HOUR)]), 2 * HOUR);
        assert_eq!(after(&[Forward(HOUR), Back(HOUR)]), Duration::ZERO);
        assert_eq!(after(&[Back(HOUR), Forward(HOUR)]), Duration::ZERO);
        assert_eq!(after(&[Back(HOUR), Forward(3 * HOUR)]), 2 * HOUR);
    }
}
