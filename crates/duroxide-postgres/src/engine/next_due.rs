//! [`NextDue`]: the time of the next promotion, as far as this node knows.
//!
//! The query for the next due time reads the beginning of an index where every lease leaves a dead entry, so it is not part
//! of every transaction. In between, this node adds the due times that it writes itself. A due time that another node writes
//! concerns only that node for as long as it lives.

use std::time::{Duration, Instant};

use duroxide_core::Timestamp;
use duroxide_provider::store::{Batch, Op};

/// How long the database's answer is used, at least.
const FRESH: Duration = Duration::from_secs(1);
/// The query may use at most 1/50 of the time. While a transaction is kept open anywhere, the leases of the last half minute
/// leave index entries that every query has to read.
const SHARE: u32 = 50;
/// Later due times are shortened to this. The database is asked again long before.
const REMEMBERED_MAX: Duration = Duration::from_secs(3_600);

/// The earliest time at which a promotion has something to do, on a clock that cannot be set.
#[derive(Debug, Default)]
pub(super) struct NextDue {
    fresh_until: Option<Instant>,
    at: Option<Instant>,
}

impl NextDue {
    /// Stores the answer of the database: a row is due `after` that time from `since`.
    pub(super) fn learn(&mut self, since: Instant, after: Option<Duration>) {
        self.fresh_until = Some(Instant::now() + FRESH.max(since.elapsed() * SHARE));
        self.at = None;
        self.add(since, after);
    }

    /// Adds a row of this node that is due `after` that time from `since`.
    pub(super) fn add(&mut self, since: Instant, after: Option<Duration>) {
        let at = after.map(|after| since + after.min(REMEMBERED_MAX));
        self.at = self.at.into_iter().chain(at).min();
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.fresh_until.is_some_and(|until| Instant::now() < until)
    }

    /// Whether the transaction of this batch has to read the next due time. A promotion uses up the known one, and after the end
    /// of a node the other nodes promote its timers.
    pub(super) fn must_be_read_by(&self, batch: &Batch<'_>) -> bool {
        let ends_node = |op: &Op| matches!(op, Op::EndNode { .. });
        !self.is_fresh() || batch.promote || batch.operations.iter().any(|submitted| ends_node(&submitted.op))
    }

    /// When something is due, on a clock that showed `then` at `since`.
    pub(super) fn on_clock(&self, since: Instant, then: Timestamp) -> Option<Timestamp> {
        self.at.map(|at| then.saturating_add(at.saturating_duration_since(since)))
    }
}

#[cfg(test)]
mod tests {
    use duroxide_provider::store::Submitted;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    #[test]
    fn the_earliest_of_what_was_read_and_written_counts() {
        let (mut due, now) = (NextDue::default(), Instant::now());
        let at = |seconds| NOW.saturating_add(Duration::from_secs(seconds));
        assert!(!due.is_fresh());
        due.learn(now, Some(Duration::from_secs(60)));
        assert!(due.is_fresh());
        due.add(now, Some(Duration::from_secs(600)));
        assert_eq!(due.on_clock(now, NOW), Some(at(60)));
        due.add(now, Some(Duration::from_secs(30)));
        assert_eq!(due.on_clock(now, NOW), Some(at(30)));
        due.add(now, None);
        due.learn(now, None);
        assert_eq!(due.on_clock(now, NOW), None, "the database knows better");
    }

    #[test]
    fn a_question_that_took_long_is_asked_seldom() {
        let mut due = NextDue::default();
        due.learn(Instant::now() - Duration::from_millis(100), None);
        let in_seconds = |seconds| Instant::now() + Duration::from_secs(seconds);
        assert!(due.fresh_until > Some(in_seconds(4)) && due.fresh_until < Some(in_seconds(10)));
    }

    #[test]
    fn promotions_and_the_end_of_a_node_ask_the_database() {
        let mut due = NextDue::default();
        assert!(due.must_be_read_by(&Batch::default()), "nothing is known");
        due.learn(Instant::now(), None);
        assert!(!due.must_be_read_by(&Batch::default()));
        assert!(due.must_be_read_by(&Batch { promote: true, ..Batch::default() }));
        let end = Op::EndNode { name: "n".to_owned(), blamed: None };
        let operations = vec![Submitted::now(&end)];
        assert!(due.must_be_read_by(&Batch { operations, ..Batch::default() }));
    }
}
