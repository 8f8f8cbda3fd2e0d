//! Sessions: each is leased to one owner at a time.

use std::time::Duration;

use duroxide_core::Timestamp;

use super::ModelEngine;
use crate::{SessionFetchConfig, store::Answer};

#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) owner: String,
    pub(super) until: Timestamp,
    pub(super) length: Duration,
    pub(super) last_activity_at: Timestamp,
}

impl ModelEngine {
    /// Whether a fetch may take activities of this session: its owner holds the session, or the session is free.
    pub(super) fn admits(&self, session: Option<&String>, by: Option<&SessionFetchConfig>) -> bool {
        let Some(session) = session else { return true };
        let holder = self.sessions.get(session).filter(|session| session.until > self.now);
        by.is_some_and(|by| holder.is_none_or(|holder| holder.owner == by.owner_id))
    }

    pub(super) fn claim_session(&mut self, session: &str, by: &SessionFetchConfig) {
        let claimed = Session {
            owner: by.owner_id.clone(),
            until: self.now.saturating_add(by.lock_timeout),
            length: by.lock_timeout,
            last_activity_at: self.now,
        };
        self.sessions.insert(session.to_owned(), claimed);
    }

    /// An activity was renewed or acknowledged.
    pub(super) fn touch_session_of(&mut self, activity: u64) {
        let session = self.activities[&activity].row.session_id.as_ref();
        if let Some(session) = session.and_then(|session| self.sessions.get_mut(session)) {
            session.last_activity_at = self.now;
        }
    }

    pub(super) fn renew_sessions(
        &mut self,
        owners: &[String],
        extend_for: Duration,
        idle_timeout: Duration,
        handed_in: Timestamp,
    ) -> Answer {
        let mut renewed = 0;
        for session in self.sessions.values_mut() {
            let is_idle = session.last_activity_at.saturating_add(idle_timeout) <= self.now;
            if owners.contains(&session.owner) && handed_in < session.until && !is_idle {
                session.until = self.now.saturating_add(extend_for);
                session.length = extend_for;
                renewed += 1;
            }
        }
        Answer::Count(renewed)
    }

    /// Ends the live sessions of an owner.
    pub(super) fn end_sessions(&mut self, owner: &str) {
        for session in self.sessions.values_mut().filter(|session| session.owner == owner) {
            session.until = session.until.min(self.now);
        }
    }

    /// Forgets the ended sessions that have no queued activity.
    pub(super) fn clean_up_sessions(&mut self) -> Answer {
        let before = self.sessions.len();
        let is_needed =
            |id: &String| self.activities.values().any(|row| row.row.session_id.as_ref() == Some(id));
        self.sessions.retain(|id, session| session.until > self.now || is_needed(id));
        Answer::Count(before - self.sessions.len())
    }
}
