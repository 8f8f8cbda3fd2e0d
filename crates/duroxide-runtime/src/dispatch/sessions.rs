//! What a node knows of its sessions.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use crate::env::{Moment, lock};

/// Which slots may own sessions, each with the time by which their leases must have ended.
#[derive(Debug, Default)]
pub(super) struct SessionOwners {
    until: Mutex<BTreeMap<usize, Moment>>,
    finder: Mutex<Option<usize>>,
}

impl SessionOwners {
    /// The slot that looks for sessions which nobody owns. It stays the same while it is free; a new one is the last,
    /// because others are taken first.
    pub(super) fn finder(&self, free: &[usize]) -> Option<usize> {
        let mut finder = lock(&self.finder);
        *finder = finder.filter(|slot| free.contains(slot)).or(free.last().copied());
        *finder
    }

    /// A slot got an activity of a session, which nobody else gets before `until` unless it goes idle.
    pub(super) fn note(&self, slot: usize, until: Moment) {
        let mut owners = lock(&self.until);
        let noted = owners.entry(slot).or_insert(until);
        *noted = until.max(*noted);
    }

    /// Whether a slot may own a session. One whose leases have ended is forgotten.
    pub(super) fn may_own(&self, slot: usize, now: Moment) -> bool {
        let mut owners = lock(&self.until);
        let owns = owners.get(&slot).is_some_and(|until| now < *until);
        if !owns {
            owners.remove(&slot);
        }
        owns
    }
}

/// The sessions whose activities run here, each with how many of them.
#[derive(Debug, Default)]
pub(super) struct SessionsInFlight {
    running: Mutex<HashMap<String, usize>>,
}

impl SessionsInFlight {
    pub(super) fn count(&self) -> usize {
        lock(&self.running).len()
    }

    /// Enters an activity; `None` if its session would be one too many.
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

/// One of them.
pub(super) struct InFlight {
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
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_slot_looks_for_sessions_and_another_only_when_it_is_taken() {
        let owners = SessionOwners::default();
        assert_eq!(owners.finder(&[0, 1]), Some(1));
        assert_eq!(owners.finder(&[0, 1, 2]), Some(1));
        assert_eq!(owners.finder(&[0, 2]), Some(2));
        assert_eq!(owners.finder(&[]), None);
    }

    #[test]
    fn a_slot_owns_its_sessions_until_their_leases_can_have_ended() {
        let owners = SessionOwners::default();
        let at = |seconds| Moment::new(Duration::from_secs(seconds));
        owners.note(3, at(60));
        owners.note(3, at(50));
        assert!(owners.may_own(3, at(59)));
        assert!(!owners.may_own(2, at(59)));
        assert!(!owners.may_own(3, at(60)));
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
}
