//! The database's clock, as nodes know it (24.1).
//!
//! An answer contains the database's time at some moment between sending the query and receiving the answer. [`NodeClock`] must not be
//! slow, so it takes the moment of sending; [`TransactionClock`] must not be fast, so it takes that of receiving.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use duroxide_core::{Clock, Timestamp};
use duroxide_store::SystemClock;

/// The time that a clock showed at a moment.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    time: Timestamp,
}

impl Reading {
    fn now(self) -> Timestamp {
        self.time.saturating_add(self.at.elapsed())
    }
}

/// The clock by which a store that finds all rows in its row cache takes the time of a transaction. It never shows more than
/// the database's clock.
#[derive(Debug, Default)]
pub(crate) struct TransactionClock(Option<Reading>);

impl TransactionClock {
    /// How long a reading is used: two clocks drift apart.
    const FRESH: Duration = Duration::from_secs(1);

    pub(crate) fn learn(&mut self, time: Timestamp) {
        self.0 = Some(Reading { at: Instant::now(), time });
    }

    pub(crate) fn now(&self) -> Option<Timestamp> {
        self.0.filter(|reading| reading.at.elapsed() < Self::FRESH).map(Reading::now)
    }
}

/// The clock by which nodes record times and set timers. It never shows less than the database's clock, which decides when
/// timers are due, so that no timer fires early.
#[derive(Debug, Default)]
pub(crate) struct NodeClock(Mutex<Option<Reading>>);

impl NodeClock {
    /// A slow answer makes the clock fast by as much as it was slow. So the quickest answer within this time counts.
    const BEST_OF: Duration = Duration::from_secs(10);
    /// No answer is so slow: one of the clocks was set, or this process was stopped.
    const SLOW_MAX: Duration = Duration::from_secs(1);

    /// A question was sent at `asked_at`, and the answer was this time.
    pub(crate) fn learn(&self, asked_at: Instant, time: Timestamp) {
        let new = Reading { at: asked_at, time };
        let mut best = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_better = best.is_none_or(|best| {
            let (known, told) = (best.now(), new.now());
            told < known || told > known.saturating_add(Self::SLOW_MAX) || best.at.elapsed() >= Self::BEST_OF
        });
        if is_better {
            *best = Some(new);
        }
    }
}

impl Clock for NodeClock {
    fn now(&self) -> Timestamp {
        let best = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        best.map_or_else(|| SystemClock.now(), Reading::now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn ago(millis: u64) -> Instant {
        Instant::now() - Duration::from_millis(millis)
    }

    /// How far the clock is ahead of a database whose clock shows this now.
    fn ahead(clock: &NodeClock, now: Timestamp) -> Duration {
        clock.now().saturating_since(now)
    }

    /// 24.1, I14: a timer that is set by this clock is due `delay` later by the database's, or a moment after that.
    #[test]
    fn nodes_take_the_time_of_the_quickest_answer_and_are_never_behind() {
        let (clock, now) = (NodeClock::default(), SystemClock.now().saturating_sub(HOUR));
        clock.learn(ago(400), now);
        assert!(ahead(&clock, now) >= Duration::from_millis(400));
        clock.learn(ago(5), now);
        assert!((5..300).contains(&ahead(&clock, now).as_millis()), "a quick answer is better");
        clock.learn(ago(300), now);
        assert!((5..300).contains(&ahead(&clock, now).as_millis()), "a slow answer is worse");
    }

    #[test]
    fn a_clock_that_was_set_is_followed_both_ways() {
        let (clock, now) = (NodeClock::default(), SystemClock.now());
        clock.learn(ago(0), now);
        for set in [now.saturating_add(HOUR), now.saturating_sub(HOUR)] {
            clock.learn(ago(1), set);
            assert!(clock.now() >= set && ahead(&clock, set) < HOUR / 2);
        }
    }

    /// 24.1
    #[test]
    fn a_transaction_is_not_later_than_the_database_says_and_asks_after_a_second() {
        let (mut clock, now) = (TransactionClock::default(), SystemClock.now());
        assert_eq!(clock.now(), None);
        clock.learn(now);
        assert!(clock.now() >= Some(now));
        clock.0 = Some(Reading { at: ago(1_000), time: now });
        assert_eq!(clock.now(), None);
    }
}
