//! When watchers hear that another process changed something.

use std::time::Duration;

use duroxide_core::Timestamp;

/// The cost of telling one watcher, which then reads its instance.
const COST_OF_ONE: Duration = Duration::from_micros(100);
/// The longest time that news are kept back.
const KEPT_BACK_MAX: Duration = Duration::from_millis(500);

/// News from other processes. Nobody knows which instances they concern, so all watchers are told; but the more there
/// are, the less often, or two busy processes would do nothing else.
#[derive(Debug, Default)]
pub(super) struct News {
    untold: bool,
    not_before: Timestamp,
}

impl News {
    /// The store was changed by another process.
    pub(super) fn came(&mut self) {
        self.untold = true;
    }

    /// Whether to tell this many watchers now. If so, it counts as done.
    pub(super) fn are_told(&mut self, now: Timestamp, watchers: usize) -> bool {
        // A clock that was set back keeps nothing back for longer.
        let kept_back = now < self.not_before && self.not_before <= now.saturating_add(KEPT_BACK_MAX);
        if !self.untold || kept_back {
            return false;
        }
        let pause = COST_OF_ONE.saturating_mul(u32::try_from(watchers).unwrap_or(u32::MAX));
        self.untold = false;
        self.not_before = now.saturating_add(pause.min(KEPT_BACK_MAX));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn news_are_told_at_once_and_then_as_often_as_the_watchers_can_bear() {
        let mut news = News::default();
        assert!(!news.are_told(at(1_000), 1_000), "there are none");
        news.came();
        assert!(news.are_told(at(1_000), 1_000));
        news.came();
        assert!(!news.are_told(at(1_099), 1_000));
        assert!(news.are_told(at(1_100), 1_000));
        assert!(!news.are_told(at(2_000), 1_000), "they have been told");
    }

    #[test]
    fn neither_many_watchers_nor_a_clock_set_back_keep_news_for_long() {
        let mut news = News::default();
        news.came();
        assert!(news.are_told(at(5_000), usize::MAX));
        news.came();
        assert!(!news.are_told(at(5_499), usize::MAX));
        assert!(news.are_told(at(1_000), usize::MAX));
    }
}
