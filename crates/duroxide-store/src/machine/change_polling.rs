//! When to poll for changes by other processes.
//!
//! Right after a change by another process the next one is likely, and polls are frequent; while nothing happens they are
//! rare, because an idle process should cost nothing. An engine that can notify of writes is asked to do so then. Such a
//! notification comes when the write begins, and the change is visible a moment later, so some polls follow it.

use std::time::Duration;

use duroxide_core::Timestamp;

use super::UPKEEP_PAUSE;
use crate::StoreOptions;

/// How long polls are frequent after a change by another process.
const ALERT: Duration = Duration::from_secs(1);
/// After this long without a request or a change the store is quiet.
const QUIET: Duration = Duration::from_secs(1);
/// How many times longer the pause between two polls of a quiet store is.
const QUIET_FACTOR: u32 = 4;
/// The pause of a quiet store whose engine notifies of writes, in case a notification is lost.
const NOTIFIED_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct ChangePolling {
    /// When to poll next.
    at: Timestamp,
    alert_until: Timestamp,
    /// When a caller last used the store, or another process last changed it.
    busy_at: Timestamp,
    /// The pause after the next poll, if a write was noticed a moment ago.
    follow_up: Option<Duration>,
}

impl ChangePolling {
    pub(super) fn next(&self) -> Timestamp {
        self.at
    }

    /// Polls as soon as possible: a caller must see the writes that another process committed just before.
    pub(super) fn poll_soon(&mut self) {
        self.at = Timestamp::ZERO;
    }

    /// A poll failed.
    pub(crate) fn failed(&mut self, now: Timestamp) {
        self.at = now.saturating_add(UPKEEP_PAUSE);
    }

    /// Notes that a caller used the store.
    pub(super) fn note_request(&mut self, now: Timestamp) {
        self.busy_at = now;
    }

    /// Whether nothing has happened for a while.
    pub(crate) fn is_quiet(&self, now: Timestamp) -> bool {
        self.alert_until.max(self.busy_at.saturating_add(QUIET)) <= now
    }

    /// The engine notified of a write. While the store is busy that is its own write, and it polls often enough anyway.
    pub(super) fn note_write(&mut self, now: Timestamp, options: &StoreOptions) {
        if self.is_quiet(now) {
            self.follow_up = Some(options.alert_check_interval);
            self.poll_soon();
        }
    }

    /// A poll was made. With `notifies` the engine notifies of writes.
    pub(super) fn polled(&mut self, changed: bool, notifies: bool, now: Timestamp, options: &StoreOptions) {
        let quiet_pause = options.check_interval.saturating_mul(QUIET_FACTOR);
        let follow_up = self.follow_up.take().filter(|pause| *pause < quiet_pause);
        if changed {
            self.alert_until = now.saturating_add(ALERT);
            self.busy_at = self.alert_until;
        } else {
            self.follow_up = follow_up.map(|pause| pause.saturating_mul(2));
        }
        let pause = if now < self.alert_until {
            options.alert_check_interval
        } else if let Some(pause) = follow_up {
            pause
        } else if !self.is_quiet(now) {
            options.check_interval
        } else if notifies {
            quiet_pause.max(NOTIFIED_PAUSE)
        } else {
            quiet_pause
        };
        self.at = now.saturating_add(pause);
    }

    /// The clock was set back, which must not delay a poll.
    pub(super) fn set_back(&mut self, now: Timestamp, options: &StoreOptions) {
        self.at = self.at.min(now.saturating_add(options.check_interval));
        self.alert_until = self.alert_until.min(now.saturating_add(ALERT));
        self.busy_at = self.busy_at.min(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(10_000 + millis)
    }

    /// The pause after a poll at this time, in milliseconds.
    fn after(polling: &mut ChangePolling, changed: bool, notifies: bool, millis: u64) -> u64 {
        polling.polled(changed, notifies, at(millis), &StoreOptions::default());
        polling.next().saturating_since(at(millis)).as_millis().try_into().unwrap()
    }

    fn busy_at(millis: u64) -> ChangePolling {
        let mut polling = ChangePolling::default();
        polling.note_request(at(millis));
        polling
    }

    #[test]
    fn polls_are_frequent_after_a_change_and_rare_while_nothing_happens() {
        let mut polling = busy_at(0);
        assert_eq!(after(&mut polling, false, false, 10), 50);
        assert_eq!(after(&mut polling, true, false, 60), 1);
        assert_eq!(after(&mut polling, false, false, 900), 1);
        assert_eq!(after(&mut polling, false, false, 1_100), 50);
        assert_eq!(after(&mut polling, false, false, 2_100), 200);
        polling.note_request(at(2_200));
        assert_eq!(after(&mut polling, false, false, 2_300), 50);
    }

    #[test]
    fn where_the_engine_notifies_of_writes_a_quiet_store_hardly_polls() {
        let mut polling = busy_at(0);
        assert!(!polling.is_quiet(at(999)));
        assert!(polling.is_quiet(at(1_000)));
        assert_eq!(after(&mut polling, false, true, 1_000), 1_000);
    }

    /// The pauses double up to that of a quiet store, which is no follow-up any more.
    #[test]
    fn follow_ups_end_where_a_quiet_store_begins() {
        let options =
            StoreOptions { alert_check_interval: Duration::from_millis(25), ..StoreOptions::default() };
        let mut polling = busy_at(0);
        polling.note_write(at(2_000), &options);
        let pauses = [2_000, 2_100, 2_200, 2_300].map(|millis| {
            polling.polled(false, true, at(millis), &options);
            polling.next().saturating_since(at(millis)).as_millis()
        });
        assert_eq!(pauses, [25, 50, 100, 1_000]);
    }

    #[test]
    fn after_a_noticed_write_the_store_polls_until_the_change_must_be_visible() {
        let mut polling = busy_at(0);
        after(&mut polling, false, true, 1_000);
        polling.note_write(at(1_500), &StoreOptions::default());
        assert!(polling.next() < at(1_500));
        let pauses: Vec<u64> = (0..10).map(|n| after(&mut polling, false, true, 1_500 + n)).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 1_000, 1_000]);
        polling.note_write(at(1_600), &StoreOptions::default());
        assert_eq!(after(&mut polling, true, true, 1_600), 1, "it is there");
        assert_eq!(after(&mut polling, false, true, 2_700), 50);
    }

    #[test]
    fn a_busy_store_does_not_poll_because_of_its_own_writes() {
        let mut polling = busy_at(0);
        after(&mut polling, false, false, 100);
        polling.note_write(at(110), &StoreOptions::default());
        assert_eq!(polling.next(), at(150));
    }
}
