//! The sessions of a node's worker slots.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use super::slots::Slots;
use crate::env::{Moment, lock};

/// The slots that may own sessions, each with the time by which the session leases must have ended.
#[derive(Debug, Default)]
pub(super) struct SessionOwners {
    until: Mutex<BTreeMap<usize, Moment>>,
    session_finder: Mutex<Option<usize>>,
}

impl SessionOwners {
    /// The slot that searches sessions without an owner. It stays the same while it is free. A new one is the highest
    /// free slot, because activities without a session take the lowest.
    pub(super) fn session_finder(&self, slots: &Slots) -> Option<usize> {
        let mut session_finder = lock(&self.session_finder);
        *session_finder =
            session_finder.filter(|slot| slots.is_free(*slot)).or_else(|| slots.free_ids().next_back());
        *session_finder
    }

    /// Records that a slot received an activity of a session. No other owner gets the session before `until`, unless it
    /// goes idle.
    pub(super) fn note(&self, slot: usize, until: Moment) {
        let mut owners = lock(&self.until);
        let noted = owners.entry(slot).or_insert(until);
        *noted = until.max(*noted);
    }

    /// The slots that may own a session. Forgets slots whose session leases have ended.
    pub(super) fn may_own(&self, now: Moment) -> BTreeSet<usize> {
        let mut owners = lock(&self.until);
        owners.retain(|_, until| now < *until);
        owners.keys().copied().collect()
    }

    /// Whether a slot that may own a session, or that searches sessions, has no fetch of its own.
    pub(super) fn lack_fetch(&self, slots: &Slots, now: Moment) -> bool {
        let Some(finder) = self.session_finder(slots) else { return true };
        self.may_own(now).into_iter().chain([finder]).any(|slot| !slots.is_reserved(slot))
    }
}

/// The sessions whose activities run here, each with the number of its activities.
#[derive(Debug, Default)]
pub(super) struct SessionsInFlight {
    running: Mutex<HashMap<String, usize>>,
    ended: Notify,
}

impl SessionsInFlight {
    /// Resolves when the last activity of a session has ended here.
    pub(super) async fn ended(&self) {
        self.ended.notified().await;
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.running).len()
    }

    /// Registers an activity. `None` if its session would be one too many.
    pub(super) fn enter(self: &Arc<Self>, session: Option<&str>, max: usize) -> Option<InFlight> {
        if let Some(session) = session {
            let mut running = lock(&self.running);
            if running.len() >= max && !running.contains_key(session) {
                return None;
            }
            *running.entry(session.to_owned()).or_default() += 1;
        }
        Some(InFlight { sessions: Arc::clone(self), session: session.map(str::to_owned) })
    }
}

/// A running activity. Dropping it deregisters the activity.
pub(crate) struct InFlight {
    sessions: Arc<SessionsInFlight>,
    session: Option<String>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Some(session) = &self.session else { return };
        let mut running = lock(&self.sessions.running);
        if let Some(count) = running.get_mut(session) {
            *count -= 1;
            if *count == 0 {
                running.remove(session);
                self.sessions.ended.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn one_slot_searches_sessions_and_another_only_when_it_is_taken() {
        let owners = SessionOwners::default();
        let mut slots = Slots::new(3, 0);
        let take = |slots: &mut Slots, slot| slots.take(Some(slot)).unwrap();
        let third = take(&mut slots, 2);
        assert_eq!(owners.session_finder(&slots), Some(1), "the last that is free");
        slots.release(third);
        assert_eq!(owners.session_finder(&slots), Some(1), "it stays the same");
        take(&mut slots, 1);
        assert_eq!(owners.session_finder(&slots), Some(2));
        take(&mut slots, 2);
        take(&mut slots, 0);
        assert_eq!(owners.session_finder(&slots), None);
    }

    #[test]
    fn a_slot_owns_its_sessions_until_their_leases_can_have_ended() {
        let owners = SessionOwners::default();
        let at = |seconds| Moment::new(Duration::from_secs(seconds));
        owners.note(3, at(60));
        owners.note(3, at(50));
        assert_eq!(owners.may_own(at(59)), BTreeSet::from([3]));
        assert_eq!(owners.may_own(at(60)), BTreeSet::new());
    }

    #[test]
    fn a_busy_slot_lacks_its_fetch_if_it_may_own_a_session_or_no_other_looks_for_sessions() {
        let owners = SessionOwners::default();
        let now = Moment::new(Duration::ZERO);
        let mut slots = Slots::new(3, 0);
        assert!(owners.lack_fetch(&slots, now), "nobody looks for sessions");
        slots.reserve(2);
        assert!(!owners.lack_fetch(&slots, now));
        slots.take(Some(0)).unwrap();
        assert!(!owners.lack_fetch(&slots, now), "it owns no session");
        owners.note(0, Moment::new(Duration::from_secs(60)));
        assert!(owners.lack_fetch(&slots, now));
        slots.take(Some(1)).unwrap();
        slots.take(Some(2)).unwrap();
        assert!(SessionOwners::default().lack_fetch(&slots, now), "all are busy");
    }

    /// 13.3
    #[test]
    fn no_more_distinct_sessions_run_than_allowed() {
        let sessions = Arc::new(SessionsInFlight::default());
        let first = sessions.enter(Some("a"), 1);
        assert!(first.is_some());
        assert!(sessions.enter(Some("a"), 1).is_some(), "the same session is not one more");
        assert!(sessions.enter(None, 1).is_some(), "no session needs no room");
        assert!(sessions.enter(Some("b"), 1).is_none());
        drop(first);
        assert!(sessions.enter(Some("b"), 1).is_some());
    }

    /// 13.3: a queue at its session limit is notified when a session ends.
    #[test]
    fn the_end_of_a_session_is_reported() {
        let sessions = Arc::new(SessionsInFlight::default());
        let has_ended = || sessions.ended().now_or_never().is_some();
        let (first, second) = (sessions.enter(Some("a"), 1), sessions.enter(Some("a"), 1));
        drop(first);
        assert!(!has_ended(), "another activity of it runs");
        drop(second);
        assert!(has_ended());
        drop(sessions.enter(None, 1));
        assert!(!has_ended(), "no session, no end");
    }
}
