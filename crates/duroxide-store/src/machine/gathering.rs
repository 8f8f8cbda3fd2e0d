//! Waits a moment for results that are on their way.
//!
//! The results of the items that a commit claims arrive one after the other. If the first result were committed at once, all
//! others would wait for the disk behind it. So the store waits for a part of the results while they keep coming, and never
//! longer than half the duration of the last commit: a lone caller is not delayed, and each of many callers gains more by
//! the saved commit than the wait costs. Waiting for all results would leave disk and processor idle in turn.

use std::time::Duration;

use duroxide_core::Timestamp;

/// The store does not wait for fewer claims than this.
const CLAIMS_MIN: usize = 8;
/// The store waits until 1/4 of the results have come.
const PART: usize = 4;
/// The longest wait, however slow the disk is.
const WAIT_MAX: Duration = Duration::from_millis(5);
/// The store stops waiting if nothing came for a quarter of the wait, but for at least `GAP_MIN` and at most `GAP_MAX`.
const GAP_MIN: Duration = Duration::from_micros(200);
const GAP_MAX: Duration = Duration::from_millis(1);
/// The next fetch of a caller is waited for only after a commit that took this long. A quicker one costs less than the wait.
const FETCH_COMMIT_MIN: Duration = Duration::from_millis(2);

/// The results that are expected after the last commit.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// Claims whose results are likely to arrive soon.
    expected: usize,
    /// When to stop waiting for them.
    until: Timestamp,
    gap: Duration,
    arrived_at: Timestamp,
    /// Whether the last commit took so long that a fetch is worth a wait.
    waits_for_fetch: bool,
}

impl Gathering {
    /// A commit of this many operations, which ended `now` and took this long, delivered claims.
    pub(crate) fn expect_results(
        &mut self,
        operations: usize,
        claims: usize,
        took: Duration,
        now: Timestamp,
    ) {
        // An item whose result does not come within a few commits runs for long.
        let expected = claims + self.expected.saturating_sub(operations) / 2;
        let wait = if expected < CLAIMS_MIN { Duration::ZERO } else { (took / 2).min(WAIT_MAX) };
        let (until, gap) = (now.saturating_add(wait), (wait / 4).clamp(GAP_MIN, GAP_MAX));
        let waits_for_fetch = took >= FETCH_COMMIT_MIN;
        *self = Self { expected, until, gap, arrived_at: now, waits_for_fetch };
    }

    /// Notes that a request came in.
    pub(super) fn note_arrival(&mut self, now: Timestamp) {
        self.arrived_at = now;
    }

    /// Until when to wait for more operations than the `waiting` ones; `None` to commit now. `lacks_fetch`: the caller of an
    /// answered fetch is about to make the next one. Without that fetch, work that the operations make ready would need another
    /// transaction, or go to another process.
    pub(super) fn goes_on_until(
        &self,
        waiting: usize,
        lacks_fetch: bool,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let until = self.until.min(self.arrived_at.saturating_add(self.gap));
        let is_worth_it = (lacks_fetch && self.waits_for_fetch) || waiting < self.expected / PART;
        (is_worth_it && now < until).then_some(until)
    }

    /// Ends the wait, because the clock was set back.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    const fn at(micros: u64) -> Timestamp {
        Timestamp::from_micros(1_000_000 + micros)
    }

    fn after_commit(claims: usize, took: Duration) -> Gathering {
        let mut gathering = Gathering::default();
        gathering.expect_results(0, claims, took, at(0));
        gathering
    }

    #[test]
    fn results_are_waited_for_while_they_keep_coming() {
        let mut gathering = after_commit(100, 4 * MS);
        assert_eq!(gathering.goes_on_until(1, false, at(10)), Some(at(500)));
        gathering.note_arrival(at(490));
        assert_eq!(gathering.goes_on_until(2, false, at(510)), Some(at(990)));
        assert_eq!(gathering.goes_on_until(2, false, at(990)), None, "nothing came for a while");
        assert_eq!(gathering.goes_on_until(25, false, at(500)), None, "enough have come");
    }

    #[test]
    fn the_next_fetch_of_a_caller_is_waited_for_as_results_are() {
        let gathering = after_commit(100, 4 * MS);
        assert_eq!(gathering.goes_on_until(25, true, at(10)), Some(at(500)));
        assert_eq!(gathering.goes_on_until(25, true, at(500)), None, "it does not come");
        assert_eq!(Gathering::default().goes_on_until(25, true, at(0)), None, "nothing was handed out");
        assert_eq!(after_commit(100, MS).goes_on_until(25, true, at(0)), None, "the commit was quick");
    }

    /// The clock was set back: a time of before may be far away.
    #[test]
    fn nothing_is_waited_for_under_another_clock() {
        let mut gathering = after_commit(100, 4 * MS);
        assert!(gathering.goes_on_until(1, false, at(10)).is_some());
        gathering.end();
        assert_eq!(gathering.goes_on_until(1, false, at(10)), None);
    }

    #[test]
    fn no_wait_is_longer_than_half_the_commit_before_it() {
        let mut gathering = after_commit(100, 2 * MS);
        gathering.note_arrival(at(950));
        assert_eq!(gathering.goes_on_until(1, false, at(960)), Some(at(1_000)));
        assert_eq!(gathering.goes_on_until(1, false, at(1_000)), None);
        let mut slow = after_commit(100, 1_000 * MS);
        slow.note_arrival(at(4_999));
        assert_eq!(slow.goes_on_until(1, false, at(5_000)), None);
    }

    #[test]
    fn callers_that_stay_away_for_a_few_commits_are_not_waited_for() {
        let mut gathering = after_commit(100, MS);
        for expected in [50, 25, 12] {
            gathering.expect_results(0, 0, MS, at(0));
            assert!(gathering.goes_on_until(expected / PART - 1, false, at(0)).is_some());
            assert_eq!(gathering.goes_on_until(expected / PART, false, at(0)), None);
        }
        gathering.expect_results(0, 0, MS, at(0));
        assert_eq!(gathering.goes_on_until(0, false, at(0)), None, "they run for long");
    }

    #[test]
    fn a_lone_caller_is_not_delayed() {
        assert_eq!(Gathering::default().goes_on_until(0, false, at(0)), None);
        assert_eq!(after_commit(CLAIMS_MIN - 1, 1_000 * MS).goes_on_until(1, false, at(0)), None);
    }
}
