//! Sessions: each is leased to one owner at a time (13.1, 13.2).

use std::{collections::BTreeSet, time::Duration};

use duroxide_core::Timestamp;

use super::{QueuedActivity, Rows, Rules, SessionRow, Tables};
use crate::SessionFetchConfig;

impl<T: Tables> Rules<T> {
    /// Whether this owner may take activities of a session: it holds the session, or the session is free.
    pub(super) fn session_admits(&mut self, session: &str, by: &SessionFetchConfig) -> Rows<bool> {
        let session = self.tables.session(session)?;
        Ok(session.is_none_or(|session| session.until <= self.now || session.owner == by.owner_id))
    }

    /// Leases a session to the owner that claimed one of its activities.
    pub(super) fn claim_session(&mut self, session: &str, by: &SessionFetchConfig) -> Rows<()> {
        self.tables.write_session(&SessionRow {
            id: session.to_owned(),
            owner: by.owner_id.clone(),
            until: self.now.saturating_add(by.lock_timeout),
            length: by.lock_timeout,
            last_activity_at: self.now,
        })
    }

    /// An activity of a session was renewed or acknowledged.
    pub(super) fn touch_session_of(&mut self, activity: &QueuedActivity) -> Rows<()> {
        match &activity.session_id {
            Some(session) => self.tables.touch_session(session, self.now),
            None => Ok(()),
        }
    }

    /// Extends the live sessions of these owners that are not idle; returns how many.
    pub(super) fn renew_sessions(
        &mut self,
        owners: &[String],
        extend_for: Duration,
        idle_timeout: Duration,
        handed_in: Timestamp,
    ) -> Rows<usize> {
        let mut renewed = 0;
        for owner in owners.iter().collect::<BTreeSet<_>>() {
            for mut session in self.tables.leased_sessions(Some(owner), handed_in)? {
                if session.last_activity_at.saturating_add(idle_timeout) > self.now {
                    session.until = self.now.saturating_add(extend_for);
                    session.length = extend_for;
                    self.tables.write_session(&session)?;
                    renewed += 1;
                }
            }
        }
        Ok(renewed)
    }

    /// Ends the live sessions of an owner.
    pub(super) fn end_sessions(&mut self, owner: &str) -> Rows<()> {
        for mut session in self.tables.leased_sessions(Some(owner), self.now)? {
            session.until = self.now;
            self.tables.write_session(&session)?;
        }
        Ok(())
    }
}
