//! Decides whether turns run before the transaction of their claims is committed, and how long it waits for their rounds
//! (24.13).
//!
//! A round that comes in time saves a commit. For a late round all callers of the transaction have waited for nothing, so
//! after a transaction whose rounds were all late the next ones do not wait.

use std::time::Duration;

/// Handing a claim to other threads and taking its round back costs about as much as a commit that is faster than this.
const COMMIT_MIN: Duration = Duration::from_micros(100);
/// The longest wait, however slow the disk is.
const WAIT_MAX: Duration = Duration::from_millis(10);
/// The transaction stops waiting if no round came for a quarter of the wait, but for at least `GAP_MIN` and at most `GAP_MAX`.
const GAP_MIN: Duration = Duration::from_micros(300);
const GAP_MAX: Duration = Duration::from_millis(1);
/// How many transactions in a row hand nothing over early, at most.
const SKIPPED_MAX: u32 = 64;

/// How long a transaction waits for the rounds of early turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    /// For all of them.
    pub(crate) max: Duration,
    /// For the next one.
    pub(crate) gap: Duration,
}

/// Decides by the results of earlier transactions.
#[derive(Debug, Default)]
pub(crate) struct EarlyTurnsPolicy {
    /// The duration of a transaction without its wait, smoothed.
    commit: Duration,
    /// How many more transactions do not wait.
    skips: u32,
    /// How many transactions do not wait after the next one that waits for nothing.
    next_skips: u32,
}

impl EarlyTurnsPolicy {
    /// How long the next transaction waits for the rounds of turns that it lets run early. `None`: it lets none run.
    pub(crate) fn wait(&mut self) -> Option<Wait> {
        if self.skips > 0 {
            self.skips -= 1;
            return None;
        }
        let max = self.commit.min(WAIT_MAX);
        let gap = (max / 4).clamp(GAP_MIN, GAP_MAX);
        (self.commit >= COMMIT_MIN).then_some(Wait { max, gap })
    }

    /// A transaction handed claims over early, and this many of their rounds came in time.
    pub(crate) fn waited_for(&mut self, handed_over: usize, in_time: usize) {
        if handed_over == 0 {
            return;
        }
        if in_time > 0 {
            self.next_skips = 0;
        } else {
            self.next_skips = (self.next_skips * 2).clamp(1, SKIPPED_MAX);
            self.skips = self.next_skips;
        }
    }

    /// A transaction was committed, and took this long without its wait.
    pub(crate) fn note_commit(&mut self, took: Duration) {
        self.commit = (self.commit * 7 + took) / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn after_commits(took: Duration) -> EarlyTurnsPolicy {
        let mut policy = EarlyTurnsPolicy::default();
        (0..50).for_each(|_| policy.note_commit(took));
        policy
    }

    #[test]
    fn a_transaction_waits_no_longer_than_a_commit_takes() {
        let mut policy = after_commits(MS);
        let Wait { max, gap } = policy.wait().unwrap();
        assert!(max <= MS && max > MS / 2 && gap == GAP_MIN, "{max:?} {gap:?}");
        assert_eq!(after_commits(100 * MS).wait(), Some(Wait { max: WAIT_MAX, gap: GAP_MAX }));
    }

    #[test]
    fn a_fast_commit_is_not_worth_a_wait() {
        assert_eq!(EarlyTurnsPolicy::default().wait(), None);
        assert_eq!(after_commits(Duration::from_micros(20)).wait(), None);
    }

    #[test]
    fn after_turns_that_were_all_late_ever_more_transactions_do_not_wait() {
        let mut policy = after_commits(MS);
        for skipped in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert!(policy.wait().is_some());
            policy.waited_for(3, 0);
            (0..skipped).for_each(|_| assert_eq!(policy.wait(), None));
        }
        assert!(policy.wait().is_some());
        policy.waited_for(3, 1);
        assert!(policy.wait().is_some(), "one was in time");
        policy.waited_for(0, 0);
        assert!(policy.wait().is_some(), "nothing was waited for");
    }
}
