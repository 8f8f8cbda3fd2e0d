//! Sessions: each is leased to one owner at a time (13.1, 13.2).

use std::time::Duration;

use duroxide_core::Timestamp;
use duroxide_provider::{SessionFetchConfig, store::StoreFailure};

use crate::{SqliteEngine, db::micros, instances::lease};

const OWNER: &str = "SELECT owner FROM session WHERE session_id = ?1 AND lock_until > ?2";
const CLAIM: &str =
    "INSERT INTO session (session_id, owner, lock_until, lease, last_activity_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (session_id) DO UPDATE SET owner = ?2, lock_until = ?3, lease = ?4, last_activity_at = ?5";
const TOUCH: &str = "UPDATE session SET last_activity_at = ?2 WHERE session_id = ?1";
const RENEW: &str = "UPDATE session SET lock_until = ?2, lease = ?3
    WHERE owner = ?1 AND lock_until > ?4 AND last_activity_at > ?5";
const CLEAN_UP: &str = "DELETE FROM session WHERE lock_until <= ?1
    AND NOT EXISTS (SELECT 1 FROM activity WHERE activity.session_id = session.session_id)";

impl SqliteEngine {
    /// Whether this owner may take activities of a session: it holds the session, or nobody does.
    pub(crate) fn session_admits(
        &self,
        session: &str,
        by: &SessionFetchConfig,
    ) -> Result<bool, StoreFailure> {
        let owner: Option<String> = self.db.first(OWNER, (session, micros(self.now)), |row| row.get(0))?;
        Ok(owner.is_none_or(|owner| owner == by.owner_id))
    }

    /// Leases a session to whoever fetched one of its activities.
    pub(crate) fn claim_session(&self, session: &str, by: &SessionFetchConfig) -> Result<(), StoreFailure> {
        let until = micros(self.now.saturating_add(by.lock_timeout));
        let row = (session, &by.owner_id, until, lease(by.lock_timeout), micros(self.now));
        self.db.execute(CLAIM, row).map(|_| ())
    }

    /// An activity of the session was renewed or acked.
    pub(crate) fn touch_session(&self, session: Option<&str>) -> Result<(), StoreFailure> {
        match session {
            Some(session) => self.db.execute(TOUCH, (session, micros(self.now))).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Extends the live sessions of these owners that are not idle; returns how many.
    pub(crate) fn renew_sessions(
        &self,
        owners: &[String],
        extend_for: Duration,
        idle_timeout: Duration,
        handed_in: Timestamp,
    ) -> Result<usize, StoreFailure> {
        let until = micros(self.now.saturating_add(extend_for));
        let idle = i64::try_from(idle_timeout.as_micros()).unwrap_or(i64::MAX);
        let active_since = micros(self.now).saturating_sub(idle);
        let owners: std::collections::BTreeSet<_> = owners.iter().collect();
        let mut renewed = 0;
        for owner in owners {
            renewed +=
                self.db.execute(RENEW, (owner, until, lease(extend_for), micros(handed_in), active_since))?;
        }
        Ok(renewed)
    }

    /// Deletes ended sessions that no queued activity needs; returns how many.
    pub(crate) fn clean_up_sessions(&self) -> Result<usize, StoreFailure> {
        self.db.execute(CLEAN_UP, [micros(self.now)])
    }
}
