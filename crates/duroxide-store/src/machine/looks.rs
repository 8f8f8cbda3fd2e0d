//! When to look for changes by other processes.
//!
//! Right after such a change the next one is likely, and looks are frequent; while nothing happens at all they are rare,
//! because a process that has nothing to do should cost nothing. An engine that can tell when somebody begins to write is
//! then asked to. What it tells is a beginning: the change is there a moment later, so some looks follow.

use std::time::Duration;

use duroxide_core::Timestamp;

use crate::StoreOptions;

/// How long after a change by another process looks are frequent.
const ALERT: Duration = Duration::from_secs(1);
/// After this long without a request or a change nothing happens.
const QUIET: Duration = Duration::from_secs(1);
/// How many times longer the pause between two looks is then.
const QUIET_FACTOR: u32 = 4;
/// The pause where the engine tells of changes: for a system whose word cannot be relied on.
const TOLD_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Looks {
    /// When to look next.
    at: Timestamp,
    alert_until: Timestamp,
    /// When something was last asked of the store, or changed by another process.
    busy_at: Timestamp,
    /// The pause after the next look, if somebody began to write a moment ago.
    follow_up: Option<Duration>,
}

impl Looks {
    pub(super) fn next(&self) -> Timestamp {
        self.at
    }

    /// Someone must not miss what another process did just before.
    pub(super) fn look_soon(&mut self) {
        self.at = Timestamp::ZERO;
    }

    pub(super) fn look_at(&mut self, at: Timestamp) {
        self.at = at;
    }

    /// Something was asked of the store.
    pub(super) fn note_request(&mut self, now: Timestamp) {
        self.busy_at = now;
    }

    /// Whether nothing has happened for a while.
    pub(super) fn is_quiet(&self, now: Timestamp) -> bool {
        self.alert_until.max(self.busy_at.saturating_add(QUIET)) <= now
    }

    /// Somebody began to write. While the store is busy that is the store itself, and it looks often enough anyway.
    pub(super) fn stirred(&mut self, now: Timestamp, options: &StoreOptions) {
        if self.is_quiet(now) {
            self.follow_up = Some(options.alert_check_interval);
            self.look_soon();
        }
    }

    /// Someone looked. `told` says that the engine tells when somebody begins to write.
    pub(super) fn looked(&mut self, changed: bool, told: bool, now: Timestamp, options: &StoreOptions) {
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
        } else if told {
            quiet_pause.max(TOLD_PAUSE)
        } else {
            quiet_pause
        };
        self.at = now.saturating_add(pause);
    }

    /// The clock was set back: nothing is to take longer by it.
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

    /// Where the pause after a look at this time leads.
    fn after(looks: &mut Looks, changed: bool, told: bool, millis: u64) -> u64 {
        looks.looked(changed, told, at(millis), &StoreOptions::default());
        looks.next().saturating_since(at(millis)).as_millis().try_into().unwrap()
    }

    fn busy_at(millis: u64) -> Looks {
        let mut looks = Looks::default();
        looks.note_request(at(millis));
        looks
    }

    #[test]
    fn looks_are_frequent_after_a_change_and_rare_while_nothing_happens() {
        let mut looks = busy_at(0);
        assert_eq!(after(&mut looks, false, false, 10), 50);
        assert_eq!(after(&mut looks, true, false, 60), 1);
        assert_eq!(after(&mut looks, false, false, 900), 1);
        assert_eq!(after(&mut looks, false, false, 1_100), 50);
        assert_eq!(after(&mut looks, false, false, 2_100), 200);
        looks.note_request(at(2_200));
        assert_eq!(after(&mut looks, false, false, 2_300), 50);
    }

    #[test]
    fn where_changes_are_told_a_quiet_store_hardly_looks() {
        let mut looks = busy_at(0);
        assert!(!looks.is_quiet(at(999)));
        assert!(looks.is_quiet(at(1_000)));
        assert_eq!(after(&mut looks, false, true, 1_000), 1_000);
    }

    /// The pauses double up to that of a quiet store, which is no follow-up any more.
    #[test]
    fn follow_ups_end_where_a_quiet_store_begins() {
        let options =
            StoreOptions { alert_check_interval: Duration::from_millis(25), ..StoreOptions::default() };
        let mut looks = busy_at(0);
        looks.stirred(at(2_000), &options);
        let pauses = [2_000, 2_100, 2_200, 2_300].map(|millis| {
            looks.looked(false, true, at(millis), &options);
            looks.next().saturating_since(at(millis)).as_millis()
        });
        assert_eq!(pauses, [25, 50, 100, 1_000]);
    }

    #[test]
    fn what_has_begun_is_looked_for_until_it_must_be_there() {
        let mut looks = busy_at(0);
        after(&mut looks, false, true, 1_000);
        looks.stirred(at(1_500), &StoreOptions::default());
        assert!(looks.next() < at(1_500));
        let pauses: Vec<u64> = (0..10).map(|n| after(&mut looks, false, true, 1_500 + n)).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 1_000, 1_000]);
        looks.stirred(at(1_600), &StoreOptions::default());
        assert_eq!(after(&mut looks, true, true, 1_600), 1, "it is there");
        assert_eq!(after(&mut looks, false, true, 2_700), 50);
    }

    #[test]
    fn a_busy_store_does_not_look_because_of_what_it_writes_itself() {
        let mut looks = busy_at(0);
        after(&mut looks, false, false, 100);
        looks.stirred(at(110), &StoreOptions::default());
        assert_eq!(looks.next(), at(150));
    }
}
