//! Leases under a clock that was set: back, and they end later than they can; forward, and they end before their time.

use std::time::Duration;

use duroxide_provider::store::StoreFailure;

use crate::{SqliteEngine, db::micros};

/// Each lease is stored with its length, and none that was given before now can end later than that.
const CLAMP_INSTANCES: &str = "UPDATE instance SET lock_until = ?1 + lease, wake_at = ?1 + lease
    WHERE wake_at > ?1 AND wake_at = lock_until AND lock_until > ?1 + lease";
const CLAMP_ACTIVITIES: &str = "UPDATE activity SET lock_until = ?1 + lease, wake_at = ?1 + lease
    WHERE wake_at > ?1 AND wake_at = lock_until AND lock_until > ?1 + lease";
/// What can be claimed has a lease that ended. It must not live again.
const END_INSTANCES: &str = "UPDATE instance SET lock_until = ?1 WHERE ready IS NOT NULL AND lock_until > ?1";
const END_ACTIVITIES: &str = "UPDATE activity SET lock_until = ?1
    WHERE ready IS NOT NULL AND session_id IS NULL AND lock_until > ?1";
const END_SESSION_ACTIVITIES: &str = "UPDATE activity SET lock_until = ?1
    WHERE ready IS NOT NULL AND session_id IS NOT NULL AND lock_until > ?1";
const CLAMP_SESSIONS: &str = "UPDATE session
    SET lock_until = min(lock_until, ?1 + lease), last_activity_at = min(last_activity_at, ?1)
    WHERE lock_until > ?1 AND (lock_until > ?1 + lease OR last_activity_at > ?1)";

/// A lease that is live is what its row waits for. Of one that lasts for ages (`?3`) nobody misses some of it, and the sum
/// would be too large for an integer.
const MOVE_INSTANCES: &str = "UPDATE instance SET
        lock_until = min(lock_until + ?2, ?1 + lease), wake_at = min(lock_until + ?2, ?1 + lease)
    WHERE wake_at > ?1 - ?2 AND wake_at = lock_until AND max(lock_until, lease) < ?3";
const MOVE_ACTIVITIES: &str = "UPDATE activity SET
        lock_until = min(lock_until + ?2, ?1 + lease), wake_at = min(lock_until + ?2, ?1 + lease)
    WHERE wake_at > ?1 - ?2 AND wake_at = lock_until AND max(lock_until, lease) < ?3";
const MOVE_SESSIONS: &str = "UPDATE session SET
        lock_until = min(lock_until + ?2, ?1 + lease), last_activity_at = min(last_activity_at + ?2, ?1)
    WHERE lock_until > ?1 - ?2 AND max(lock_until, lease) < ?3";
const MOVE_NODES: &str = "UPDATE node SET seen_at = min(seen_at + ?2, ?1) WHERE seen_at < ?3";
/// A quarter of what an integer holds, in microseconds: the year 75,000.
const AGES: i64 = i64::MAX / 4;

impl SqliteEngine {
    /// Shortens such leases, so that a clock that was an hour ahead does not lock an hour of work away. Done once
    /// after the store was opened, and when the clock was set: it looks at everything that waits for a time.
    pub(crate) fn shorten_leases(&mut self) -> Result<(), StoreFailure> {
        self.forget_kept();
        for statement in [
            CLAMP_INSTANCES,
            CLAMP_ACTIVITIES,
            END_INSTANCES,
            END_ACTIVITIES,
            END_SESSION_ACTIVITIES,
            CLAMP_SESSIONS,
        ] {
            self.db.execute(statement, [micros(self.now)])?;
        }
        Ok(())
    }

    /// Lets the leases that were live before the clock was set forward end that much later, at most one lease from now.
    pub(crate) fn move_live_leases(&mut self, by: Duration) -> Result<(), StoreFailure> {
        self.forget_kept();
        let by = i64::try_from(by.as_micros()).unwrap_or(AGES).min(AGES);
        for statement in [MOVE_INSTANCES, MOVE_ACTIVITIES, MOVE_SESSIONS, MOVE_NODES] {
            self.db.execute(statement, (micros(self.now), by, AGES))?;
        }
        Ok(())
    }
}
