//! Limits how often watchers are notified of other processes' changes.

use std::time::Duration;

use duroxide_core::Timestamp;

/// The cost of notifying one watcher, which then reads its instance.
const COST_OF_ONE: Duration = Duration::from_micros(100);
/// Maximum delay of a notification.
const DELAY_MAX: Duration = Duration::from_millis(500);

/// Decides when to notify watchers of changes by other processes. The store does not know which instances changed, so it
/// notifies all watchers. The more watchers there are, the longer the pause between two notifications: otherwise the reads
/// of the watchers of two busy processes would take all their time.
#[derive(Debug, Default)]
pub(super) struct ChangeNotifications {
    /// Another process changed the store since the last notification.
    pending: bool,
    not_before: Timestamp,
}

impl ChangeNotifications {
    /// Another process changed the store.
    pub(super) fn note_change(&mut self) {
        self.pending = true;
    }

    /// Whether to notify this many watchers now. If so, the notification counts as sent.
    pub(super) fn are_due(&mut self, now: Timestamp, watchers: usize) -> bool {
        // A clock that was set back must not make the delay longer.
        let is_delayed = now < self.not_before && self.not_before <= now.saturating_add(DELAY_MAX);
        if !self.pending || is_delayed {
            return false;
        }
        let pause = COST_OF_ONE.saturating_mul(u32::try_from(watchers).unwrap_or(u32::MAX));
        self.pending = false;
        self.not_before = now.saturating_add(pause.min(DELAY_MAX));
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
    fn the_first_change_is_notified_at_once_and_later_ones_after_a_pause_that_grows_with_the_watchers() {
        let mut notifications = ChangeNotifications::default();
        assert!(!notifications.are_due(at(1_000), 1_000), "nothing changed");
        notifications.note_change();
        assert!(notifications.are_due(at(1_000), 1_000));
        notifications.note_change();
        assert!(!notifications.are_due(at(1_099), 1_000));
        assert!(notifications.are_due(at(1_100), 1_000));
        assert!(!notifications.are_due(at(2_000), 1_000), "nothing changed since");
    }

    #[test]
    fn neither_many_watchers_nor_a_clock_set_back_delay_a_notification_for_long() {
        let mut notifications = ChangeNotifications::default();
        notifications.note_change();
        assert!(notifications.are_due(at(5_000), usize::MAX));
        notifications.note_change();
        assert!(!notifications.are_due(at(5_499), usize::MAX));
        assert!(notifications.are_due(at(1_000), usize::MAX));
    }
}
