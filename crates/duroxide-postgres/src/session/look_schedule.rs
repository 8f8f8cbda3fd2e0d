//! When a process looks for dead nodes: the processes take turns, so that somebody looks often and nobody has to.

use std::time::Duration;

/// How long a turn lasts. Whoever dies misses its own turn, so four processes or more find a dead one after two turns at the
/// latest.
const TURN: Duration = Duration::from_millis(325);
/// A process looks at most once in so many turns: alone it would take every one. Two processes find a dead one after all these
/// turns at the latest, so that others have what it held within two seconds.
const TURNS_MIN: u64 = 4;
/// How often a process without nodes looks: it ends no dead ones, and only wants to know whether others listen.
pub(super) const WITHOUT_NODES: Duration = Duration::from_secs(10);

/// A place among the processes that look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// How many of them stand in front.
    pub(super) rank: u64,
    pub(super) processes: u64,
}

impl Place {
    /// How long to wait from `now`, a time of the database's clock, which all processes share. Turns are taken in their
    /// middle, so that a process that is a little early or late does not take one twice.
    pub(super) fn next_turn(self, now: Duration) -> Duration {
        let (turns, micros) = (self.processes.max(TURNS_MIN), as_micros(now));
        // Few processes do not stand side by side.
        let own = self.rank * turns / self.processes.max(1);
        let turn = as_micros(TURN);
        let current = micros / turn;
        let ahead = match (own + turns - current % turns) % turns {
            0 => turns,
            ahead => ahead,
        };
        Duration::from_micros((current + ahead) * turn + turn / 2 - micros)
    }
}

fn as_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When each of these processes looks within half a minute, in milliseconds.
    fn looks(processes: u64, alive: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut looks: Vec<u64> = Vec::new();
        for rank in alive {
            let mut now = Duration::from_millis(1_000_000 + 77 * rank);
            while now < Duration::from_millis(1_030_000) {
                now += Place { rank, processes }.next_turn(now);
                looks.push(u64::try_from(now.as_millis()).unwrap());
            }
        }
        looks.sort_unstable();
        looks
    }

    fn longest_gap(looks: &[u64]) -> u64 {
        // The last looks are those of few.
        let all = looks.iter().zip(&looks[1..]).filter(|(_, next)| **next < 1_023_000);
        all.map(|(one, next)| next - one).max().unwrap()
    }

    #[test]
    fn somebody_looks_in_every_turn_and_each_process_rarely() {
        for processes in 2..=10 {
            let looks = looks(processes, 0..processes);
            assert!(longest_gap(&looks) <= 650, "{processes}: {looks:?}");
            let of_each = looks.len() as u64 / processes;
            assert!(of_each <= 30_000 / 1_300 + 2, "{processes}: {looks:?}");
            assert!(looks.len() as u64 <= 30_000 / 325 + 2 * processes, "{processes}: {looks:?}");
        }
    }

    #[test]
    fn of_a_process_that_dies_only_its_own_turn_is_missing() {
        for processes in 2..=10 {
            for dead in 0..processes {
                let looks = looks(processes, (0..processes).filter(|rank| *rank != dead));
                let bound = if processes < 4 { 1_300 } else { 650 };
                assert!(longest_gap(&looks) <= bound, "{processes} without {dead}: {looks:?}");
            }
        }
    }

    #[test]
    fn one_that_is_alone_does_not_take_every_turn() {
        let looks = looks(1, [0]);
        assert!(longest_gap(&looks) == 1_300 && looks.len() < 30, "{looks:?}");
    }

    #[test]
    fn one_that_is_early_or_late_does_not_take_a_turn_twice() {
        let place = Place { rank: 1, processes: 3 };
        let first = Duration::from_secs(1_000);
        let taken = first + place.next_turn(first);
        for (early, late) in [(150, 0), (0, 150)] {
            let looked = taken + Duration::from_millis(late) - Duration::from_millis(early);
            assert!(place.next_turn(looked) > Duration::from_millis(1_100));
        }
    }
}
