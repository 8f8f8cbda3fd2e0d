//! [`SharedStarts`]: when to look for new instances that were left to be claimed (24.11).
//!
//! A process that stores starts leaves most of them to other processes, and names the one that is to claim them. Without a
//! name all others would look for the same rows. Each look costs a transaction a second round trip and several statements, so
//! a busy process looks seldom and claims many.

use std::time::{Duration, Instant};

use crate::session::News;

/// The shortest time between two looks for what was left to this process.
const PAUSE: Duration = Duration::from_millis(5);
/// What was left to another process is this process's after this time: the other one may have ended, or lack the handler or a
/// free slot.
const LEFT_FOR: Duration = Duration::from_millis(100);

/// New instances that this process may claim and has not looked for.
#[derive(Debug, Default)]
pub(super) struct SharedStarts {
    /// The lowest ready number, and when to look.
    pending: Option<(u64, Instant)>,
    looked_at: Option<Instant>,
}

impl SharedStarts {
    /// Other processes have committed this.
    pub(super) fn hear(&mut self, news: News, now: Instant) {
        let soon = self.looked_at.map_or(now, |at| now.max(at + PAUSE));
        self.add(news.left_here_from, soon);
        self.leave(news.left_elsewhere_from, now);
    }

    /// A transaction that began at `since` has left instances from this ready number on to other processes.
    pub(super) fn leave(&mut self, from: Option<u64>, since: Instant) {
        self.add(from, since + LEFT_FOR);
    }

    fn add(&mut self, from: Option<u64>, at: Instant) {
        let Some(from) = from else { return };
        self.pending = Some(match self.pending {
            Some((pending, look_at)) => (pending.min(from), look_at.min(at)),
            None => (from, at),
        });
    }

    /// From which ready number on to look now, if it is time to.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<u64> {
        let (from, _) = self.pending.take_if(|(_, look_at)| *look_at <= now)?;
        self.looked_at = Some(now);
        Some(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_here(from: u64) -> News {
        News { left_here_from: Some(from), ..News::default() }
    }

    /// 24.11
    #[test]
    fn what_is_left_to_this_process_is_looked_for_at_once_and_then_after_a_pause() {
        let (mut starts, now) = (SharedStarts::default(), Instant::now());
        assert_eq!(starts.take_due(now), None);
        starts.hear(left_here(7), now);
        assert_eq!(starts.take_due(now), Some(7));
        starts.hear(left_here(9), now + PAUSE / 2);
        starts.hear(left_here(8), now + PAUSE / 2);
        assert_eq!(starts.take_due(now + PAUSE / 2), None);
        assert_eq!(starts.take_due(now + PAUSE), Some(8));
        assert_eq!(starts.take_due(now + 2 * PAUSE), None, "it is looked for once");
    }

    /// 24.11
    #[test]
    fn what_is_left_to_others_is_looked_for_later() {
        let (mut starts, now) = (SharedStarts::default(), Instant::now());
        starts.leave(Some(7), now);
        let elsewhere = News { left_elsewhere_from: Some(5), ..News::default() };
        starts.hear(elsewhere, now + LEFT_FOR / 2);
        assert_eq!(starts.take_due(now + LEFT_FOR / 2), None);
        assert_eq!(starts.take_due(now + LEFT_FOR), Some(5), "the first that was left counts");
    }
}
