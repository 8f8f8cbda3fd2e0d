//! [`DelayedReads`]: when to read ready items that other processes have left (24.11).
//!
//! A process that stores starts leaves most of them to other processes, and names the one that is to claim them. Without a
//! name all others would read the same rows. Activities that a busy process leaves ready it mostly claims itself a moment
//! later. Each read costs a transaction a second round trip and several statements, so a busy process reads seldom and claims
//! many.

use std::time::{Duration, Instant};

use crate::session::News;

/// The shortest time between two reads of instances that were left to this process.
const PAUSE: Duration = Duration::from_millis(5);
/// Instances that were left to another process may be claimed by this process after this time: the other one may have ended, or
/// lack the handler or a free slot.
const LEFT_FOR: Duration = Duration::from_millis(100);
/// A process that claims activities now is expected to claim those that it leaves ready within this time.
pub(super) const CLAIMED_WITHIN: Duration = Duration::from_millis(10);

/// Ready items that this process may claim and has not read.
#[derive(Debug, Default)]
pub(super) struct DelayedReads {
    left_here: PendingRead,
    /// Apart from those left here: a read of those must not find these before their time.
    left_elsewhere: PendingRead,
    activities: PendingRead,
    read_at: Option<Instant>,
}

/// A read that is to be made: from which ready number on, and when.
#[derive(Debug, Default)]
struct PendingRead(Option<(u64, Instant)>);

impl DelayedReads {
    /// Takes the content of notifications.
    pub(super) fn add_notification(&mut self, news: News, now: Instant) {
        let soon = self.read_at.map_or(now, |at| now.max(at + PAUSE));
        self.left_here.add(news.left_here_from, soon);
        self.activities.add(news.later_activities_from, now + CLAIMED_WITHIN);
        self.leave(news.left_elsewhere_from, now);
    }

    /// A transaction that began at `since` has left instances from this ready number on to other processes.
    pub(super) fn leave(&mut self, from: Option<u64>, since: Instant) {
        self.left_elsewhere.add(from, since + LEFT_FOR);
    }

    /// From which numbers on to read now, if it is time to.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<News> {
        let instances = [self.left_here.take_due(now), self.left_elsewhere.take_due(now)];
        let instances_from = instances.into_iter().flatten().min();
        if instances_from.is_some() {
            self.read_at = Some(now);
        }
        let activities_from = self.activities.take_due(now);
        let news = News { instances_from, activities_from, ..News::default() };
        (news != News::default()).then_some(news)
    }
}

impl PendingRead {
    fn add(&mut self, from: Option<u64>, at: Instant) {
        let Some(from) = from else { return };
        self.0 = Some(match self.0 {
            Some((pending, due)) => (pending.min(from), due.min(at)),
            None => (from, at),
        });
    }

    fn take_due(&mut self, now: Instant) -> Option<u64> {
        self.0.take_if(|(_, due)| *due <= now).map(|(from, _)| from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_here(from: u64) -> News {
        News { left_here_from: Some(from), ..News::default() }
    }

    fn left_elsewhere(from: u64) -> News {
        News { left_elsewhere_from: Some(from), ..News::default() }
    }

    fn instances(from: u64) -> Option<News> {
        Some(News { instances_from: Some(from), ..News::default() })
    }

    #[test]
    fn what_is_left_to_this_process_is_read_at_once_and_then_after_a_pause() {
        let (mut reads, now) = (DelayedReads::default(), Instant::now());
        assert_eq!(reads.take_due(now), None);
        reads.add_notification(left_here(7), now);
        assert_eq!(reads.take_due(now), instances(7));
        reads.add_notification(left_here(9), now + PAUSE / 2);
        reads.add_notification(left_here(8), now + PAUSE / 2);
        assert_eq!(reads.take_due(now + PAUSE / 2), None);
        assert_eq!(reads.take_due(now + PAUSE), instances(8));
        assert_eq!(reads.take_due(now + 2 * PAUSE), None, "it is read once");
    }

    #[test]
    fn what_is_left_to_others_is_read_later() {
        let (mut reads, now) = (DelayedReads::default(), Instant::now());
        reads.leave(Some(7), now);
        reads.add_notification(left_elsewhere(5), now + LEFT_FOR / 2);
        assert_eq!(reads.take_due(now + LEFT_FOR / 2), None);
        assert_eq!(reads.take_due(now + LEFT_FOR), instances(5), "the first that was left counts");
    }

    #[test]
    fn a_process_that_reads_its_own_does_not_read_those_of_others_yet() {
        let (mut reads, now) = (DelayedReads::default(), Instant::now());
        reads.add_notification(left_elsewhere(5), now);
        reads.add_notification(left_here(7), now);
        assert_eq!(reads.take_due(now), instances(7));
        assert_eq!(reads.take_due(now + LEFT_FOR), instances(5));
    }

    #[test]
    fn activities_of_a_busy_process_are_read_later() {
        let (mut reads, now) = (DelayedReads::default(), Instant::now());
        reads.add_notification(News { later_activities_from: Some(7), ..News::default() }, now);
        reads.add_notification(left_here(9), now);
        assert_eq!(reads.take_due(now), instances(9));
        let activities = News { activities_from: Some(7), ..News::default() };
        assert_eq!(reads.take_due(now + CLAIMED_WITHIN), Some(activities));
    }
}
