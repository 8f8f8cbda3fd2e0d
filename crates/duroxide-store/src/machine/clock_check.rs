//! Notices that somebody set the wall clock.

use std::time::Duration;

use duroxide_core::Timestamp;

/// Clocks run at slightly different speeds, and a clock that is corrected little by little is not set. Beyond this
/// leases are looked at.
const DRIFT_MAX: Duration = Duration::from_secs(1);

/// The wall clock beside a clock that nobody sets.
#[derive(Debug, Default)]
pub(super) struct ClockCheck {
    /// A moment at which both were trusted.
    agreed: Option<(Timestamp, Duration)>,
}

impl ClockCheck {
    /// Whether the wall clock moved away from the steady one since they last agreed. From now on they agree again.
    pub(super) fn was_set(&mut self, now: Timestamp, steady: Duration) -> bool {
        let (then, steady_then) = *self.agreed.get_or_insert((now, steady));
        let expected = then.saturating_add(steady.saturating_sub(steady_then));
        let moved = expected.saturating_since(now).max(now.saturating_since(expected)) > DRIFT_MAX;
        if moved {
            self.agreed = Some((now, steady));
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn time_that_passes_on_both_clocks_is_no_jump() {
        let mut check = ClockCheck::default();
        assert!(!check.was_set(at(1_000), SECOND));
        assert!(!check.was_set(at(9_000), 8_001 * SECOND));
    }

    #[test]
    fn both_directions_are_noticed_once() {
        let mut check = ClockCheck::default();
        check.was_set(at(1_000), SECOND);
        assert!(check.was_set(at(900), 2 * SECOND));
        assert!(!check.was_set(at(901), 3 * SECOND));
        assert!(check.was_set(at(5_000), 4 * SECOND));
        assert!(!check.was_set(at(5_001), 5 * SECOND));
    }

    /// A clock set back for less time than the store slept never shows an earlier time than before.
    #[test]
    fn a_set_back_clock_is_noticed_also_if_it_does_not_go_below_what_was_seen() {
        let mut check = ClockCheck::default();
        check.was_set(at(1_000), SECOND);
        assert!(check.was_set(at(1_001), 8 * SECOND));
    }

    #[test]
    fn slow_drift_adds_up() {
        let mut check = ClockCheck::default();
        let drifted = |seconds: u64| Timestamp::from_millis(seconds * 999);
        let noticed = (0..=2_500).filter(|n| check.was_set(drifted(*n), SECOND * *n as u32)).count();
        assert_eq!(noticed, 2);
    }
}
