//! The lowest keys at which ready and due rows are searched.
//!
//! A claim reads the beginning of an index. Each claimed row leaves a dead entry there, and as long as any transaction of the
//! server stays open, the server cannot remove those entries: a claim would read more and more of them. So claims begin at the
//! lowest number that can be ready. That number is read now and then, without locks. A node knows its own writes, and other
//! processes send a notification when they make a lower one ready. Without notifications claims begin at the first entry.
//!
//! Promotions begin at the earliest time that can be due: leases that have ended long ago leave dead entries before it.
//! Rows of another node that are due earlier are promoted by that node while it is alive.

use std::time::{Duration, Instant};

use duroxide_core::Timestamp;
use tokio_postgres::Row;

use crate::{
    connection::parameters,
    database_error::DatabaseError,
    session::News,
    tables::load::{Meaning, Request},
    value::{Columns, micros, number, unsigned},
};

/// How often to read from the last known start.
const NEAR_PAUSE: Duration = Duration::from_millis(100);
/// How often, at least, to read from the first entry, in case a notification was lost.
const FULL_PAUSE: Duration = Duration::from_secs(1);
/// Reads from the first entry may take this fraction (one part of so many) of the time.
const FULL_SHARE: u32 = 50;

/// The first rows that can be claimed, from `$1` and `$2` on. Rows that other transactions have locked are included.
macro_rules! first_ready {
    () => {
        "SELECT
            (SELECT min(first.place) FROM {s}.route CROSS JOIN LATERAL (
                SELECT ready_instance.place FROM {s}.ready_instance WHERE ready_instance.route = route.id
                    AND ready_instance.place >= $1::bigint
                ORDER BY ready_instance.place LIMIT 1) AS first) AS instances,
            (SELECT min(first.number) FROM {s}.lane CROSS JOIN LATERAL (
                SELECT activity.number FROM {s}.activity WHERE activity.lane = lane.id
                    AND activity.wait_until IS NULL AND activity.session_id IS NULL AND activity.number >= $2::bigint
                ORDER BY activity.number LIMIT 1) AS first) AS activities"
    };
}
const FIRST_READY: &str = first_ready!();

/// Where scans of ready and due rows begin.
#[derive(Debug, Default)]
pub(crate) struct ScanStarts {
    instances: u64,
    activities: u64,
    /// The earliest time at which something can be due.
    due: Timestamp,
    /// When to read due rows from the first entry again.
    due_full_at: Option<Instant>,
    /// Whether other processes send notifications of rows that they make ready. If not, scans begin at the first entry.
    is_on: bool,
    /// When to read from the last known start again, and from the first entry.
    near_at: Option<Instant>,
    full_at: Option<Instant>,
    /// When a read from the first entry was sent.
    full_sent_at: Option<Instant>,
    /// The result of this transaction's last read. It counts when the transaction has drawn its numbers.
    found: Option<(Option<u64>, Option<u64>)>,
}

impl ScanStarts {
    /// Switches scan starts on, if other processes send notifications of ready rows. Otherwise lists begin at the first
    /// entry.
    pub(crate) fn switch(&mut self, is_on: bool) {
        if !is_on {
            *self = Self::default();
        }
        self.is_on = is_on;
    }

    pub(in crate::tables) fn instances(&self) -> i64 {
        number(self.instances)
    }

    pub(in crate::tables) fn activities(&self) -> i64 {
        number(self.activities)
    }

    /// The time from which due rows are searched.
    pub(in crate::tables) fn due(&self) -> i64 {
        let is_full = self.due_full_at.is_none_or(|at| at <= Instant::now());
        if is_full { 0 } else { micros(self.due) }
    }

    /// A transaction whose time is `now` has read, at `asked_at`, the next due time. Later writes are due later than now.
    pub(in crate::tables) fn learn_due(
        &mut self,
        next: Option<Timestamp>,
        now: Timestamp,
        asked_at: Instant,
    ) {
        if !self.is_on {
            return;
        }
        if self.due_full_at.is_none_or(|at| at <= asked_at) {
            self.due_full_at = Some(Instant::now() + FULL_PAUSE.max(asked_at.elapsed() * FULL_SHARE));
        }
        self.due = next.map_or(now, |next| next.min(now));
    }

    /// A row is due at this time, which may be over.
    pub(in crate::tables) fn lower_due(&mut self, at: Option<Timestamp>) {
        self.due = at.map_or(self.due, |at| self.due.min(at));
    }

    /// Reads all due rows next time: a node has ended that would have promoted some of them.
    pub(crate) fn forget_due(&mut self) {
        self.due_full_at = None;
    }

    /// Rows were made ready.
    pub(crate) fn lower(&mut self, news: News) {
        self.instances = news.lowest_instance().map_or(self.instances, |from| self.instances.min(from));
        self.activities = news.activities_from.map_or(self.activities, |from| self.activities.min(from));
    }

    /// A read of the first ready rows, if it is time for one.
    pub(in crate::tables) fn read_first(&mut self) -> Option<Request> {
        let now = Instant::now();
        let is_due = |at: Option<Instant>| at.is_none_or(|at| at <= now);
        if !self.is_on || !(is_due(self.near_at) || is_due(self.full_at)) {
            return None;
        }
        let (instances, activities) = self.begin_read();
        Some(Request::new(Meaning::ScanStarts, FIRST_READY, parameters![instances, activities]))
    }

    /// Where a read that is sent now begins: at the last known start, or at the first entry if it is time for that.
    pub(in crate::tables) fn begin_read(&mut self) -> (i64, i64) {
        let now = Instant::now();
        self.near_at = Some(now + NEAR_PAUSE);
        self.full_sent_at = None;
        if !self.is_on || self.full_at.is_some_and(|at| at > now) {
            return (self.instances(), self.activities());
        }
        self.full_sent_at = Some(now);
        // Used if the answer never comes.
        self.full_at = Some(now + FULL_PAUSE);
        (0, 0)
    }

    pub(in crate::tables) fn take(&mut self, rows: &[Row]) -> Result<(), DatabaseError> {
        let Some(row) = rows.first().filter(|_| self.is_on) else { return Ok(()) };
        let read = |name| Ok::<_, DatabaseError>(row.column::<Option<i64>>(name)?.map(unsigned));
        self.found = Some((read("instances")?, read("activities")?));
        if let Some(sent_at) = self.full_sent_at.take() {
            let took = sent_at.elapsed();
            self.full_at = Some(Instant::now() + FULL_PAUSE.max(took * FULL_SHARE));
        }
        Ok(())
    }

    /// If the read found no ready row, a row that becomes ready has at least this number, which was drawn or is the
    /// next to be used, or the notification of its commit is still to come.
    pub(in crate::tables) fn take_drawn(&mut self, first: Option<u64>) {
        let (Some((instances, activities)), Some(first)) = (self.found.take(), first) else { return };
        self.instances = instances.unwrap_or(first);
        self.activities = activities.unwrap_or(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(instances: Option<u64>, activities: Option<u64>) -> ScanStarts {
        let mut scan_starts =
            ScanStarts { found: Some((instances, activities)), is_on: true, ..ScanStarts::default() };
        scan_starts.take_drawn(Some(1_000));
        scan_starts
    }

    #[test]
    fn lists_begin_at_the_first_ready_row_or_at_the_next_number() {
        let scan_starts = known(Some(7), None);
        assert_eq!((scan_starts.instances(), scan_starts.activities()), (7, 1_000));
    }

    #[test]
    fn rows_made_ready_later_move_the_beginning_down_and_never_up() {
        let mut scan_starts = known(Some(7), Some(9));
        scan_starts.lower(News { instances_from: Some(5), activities_from: Some(2_000), ..News::default() });
        assert_eq!((scan_starts.instances(), scan_starts.activities()), (5, 9));
        scan_starts.lower(News::ANYTHING);
        assert_eq!((scan_starts.instances(), scan_starts.activities()), (0, 0));
    }

    #[test]
    fn without_notifications_lists_begin_at_the_beginning() {
        let mut scan_starts = known(Some(7), Some(9));
        scan_starts.switch(false);
        assert_eq!((scan_starts.instances(), scan_starts.activities()), (0, 0));
        assert!(scan_starts.read_first().is_none());
    }

    #[test]
    fn only_the_answer_to_a_full_read_counts_for_the_pause() {
        let mut scan_starts = ScanStarts::default();
        assert_eq!((scan_starts.begin_read(), scan_starts.full_sent_at), ((0, 0), None), "it is off");
        scan_starts.switch(true);
        scan_starts.begin_read();
        assert!(scan_starts.full_sent_at.is_some());
        scan_starts.begin_read();
        assert_eq!(scan_starts.full_sent_at, None, "the answer to the first read never came");
    }

    #[test]
    fn rows_due_before_the_last_read_are_not_searched() {
        let mut scan_starts = ScanStarts { is_on: true, ..ScanStarts::default() };
        let at = Timestamp::from_micros;
        assert_eq!(scan_starts.due(), 0);
        scan_starts.learn_due(Some(at(900)), at(500), Instant::now());
        assert_eq!(scan_starts.due(), 500, "others may let something be due from now on");
        scan_starts.learn_due(Some(at(400)), at(600), Instant::now());
        assert_eq!(scan_starts.due(), 400, "it is overdue");
        scan_starts.lower_due(Some(at(300)));
        scan_starts.lower_due(Some(at(700)));
        assert_eq!(scan_starts.due(), 300);
        scan_starts.forget_due();
        assert_eq!(scan_starts.due(), 0);
        let mut off = ScanStarts::default();
        off.learn_due(Some(at(900)), at(500), Instant::now());
        assert_eq!(off.due(), 0);
    }

    #[test]
    fn a_full_read_is_repeated_after_a_pause_and_a_near_one_more_often() {
        let mut scan_starts = ScanStarts { is_on: true, ..ScanStarts::default() };
        assert!(scan_starts.read_first().is_some() && scan_starts.full_sent_at.take().is_some());
        assert!(scan_starts.read_first().is_none(), "it is not time");
        scan_starts.near_at = None;
        assert!(scan_starts.read_first().is_some() && scan_starts.full_sent_at.is_none());
        scan_starts.full_at = None;
        assert!(scan_starts.read_first().is_some() && scan_starts.full_sent_at.is_some());
    }
}
