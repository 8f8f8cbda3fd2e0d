//! When a process checks for dead nodes (24.6): the processes take turns, so that checks are frequent and each process makes few.

use std::time::Duration;

/// In each period another process checks. Only the checks of a dead process are missing, so four processes or more find it after two
/// periods at the latest.
const PERIOD: Duration = Duration::from_millis(375);
/// A process checks at most once in this many periods; otherwise a process that is alone would check in every period. Two processes
/// find a dead one within this many periods, so that its claims are released within two seconds.
const PERIODS_MIN: u64 = 4;
/// How often a process without nodes checks: it ends no dead nodes, and only has to know whether other processes listen.
pub(super) const WITHOUT_NODES: Duration = Duration::from_secs(10);
/// How often a process that is alone checks whether other processes listen. A new process announces itself, so this check is seldom
/// needed.
pub(super) const ALONE: Duration = Duration::from_secs(10);

/// This process's rank in the rotation.
#[derive(Debug, Clone, Copy)]
pub(super) struct RotationRank {
    /// The number of processes before this one.
    pub(super) rank: u64,
    pub(super) processes: u64,
}

impl RotationRank {
    /// How long to wait from `now`, a time of the database's clock, which all processes share. A check is made in the middle of
    /// a period, so that a process that is a little early or late does not check twice in a period.
    pub(super) fn until_next_check(self, now: Duration) -> Duration {
        let (periods, micros) = (self.processes.max(PERIODS_MIN), as_micros(now));
        // Spreads fewer than four processes over the four periods.
        let own = self.rank * periods / self.processes.max(1);
        let period = as_micros(PERIOD);
        let current = micros / period;
        let ahead = match (own + periods - current % periods) % periods {
            0 => periods,
            ahead => ahead,
        };
        Duration::from_micros((current + ahead) * period + period / 2 - micros)
    }
}

fn as_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When these processes check within half a minute, in milliseconds.
    fn checks(processes: u64, alive: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut checks: Vec<u64> = Vec::new();
        for rank in alive {
            let mut now = Duration::from_millis(1_000_000 + 77 * rank);
            while now < Duration::from_millis(1_030_000) {
                now += RotationRank { rank, processes }.until_next_check(now);
                checks.push(u64::try_from(now.as_millis()).unwrap());
            }
        }
        checks.sort_unstable();
        checks
    }

    fn longest_gap(checks: &[u64]) -> u64 {
        // The last checks are those of few.
        let all = checks.iter().zip(&checks[1..]).filter(|(_, next)| **next < 1_023_000);
        all.map(|(one, next)| next - one).max().unwrap()
    }

    /// 24.6
    #[test]
    fn a_check_is_made_in_every_period_and_each_process_makes_few() {
        for processes in 2..=10 {
            let checks = checks(processes, 0..processes);
            assert!(longest_gap(&checks) <= 750, "{processes}: {checks:?}");
            let of_each = checks.len() as u64 / processes;
            assert!(of_each <= 30_000 / 1_500 + 2, "{processes}: {checks:?}");
            assert!(checks.len() as u64 <= 30_000 / 375 + 2 * processes, "{processes}: {checks:?}");
        }
    }

    /// 24.6
    #[test]
    fn of_a_process_that_dies_only_its_own_check_is_missing() {
        for processes in 2..=10 {
            for dead in 0..processes {
                let checks = checks(processes, (0..processes).filter(|rank| *rank != dead));
                let bound = if processes < 4 { 1_500 } else { 750 };
                assert!(longest_gap(&checks) <= bound, "{processes} without {dead}: {checks:?}");
            }
        }
    }

    #[test]
    fn one_that_is_alone_does_not_check_in_every_period() {
        let checks = checks(1, [0]);
        assert!(longest_gap(&checks) == 1_500 && checks.len() < 30, "{checks:?}");
    }

    #[test]
    fn one_that_is_early_or_late_does_not_check_twice_in_a_period() {
        let rank = RotationRank { rank: 1, processes: 3 };
        let first = Duration::from_secs(1_000);
        let taken = first + rank.until_next_check(first);
        for (early, late) in [(150, 0), (0, 150)] {
            let checked = taken + Duration::from_millis(late) - Duration::from_millis(early);
            assert!(rank.until_next_check(checked) > Duration::from_millis(1_300));
        }
    }
}
