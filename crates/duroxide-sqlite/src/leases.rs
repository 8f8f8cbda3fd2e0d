//! Leases that end later than they can: the clock was set back while the store was closed.

use duroxide_provider::store::StoreFailure;

use crate::{SqliteEngine, db::micros};

/// Each lease is stored with its length, and none that was given before now can end later than that.
const CLAMP_INSTANCES: &str = "UPDATE instance SET lock_until = ?1 + lease, wake_at = ?1 + lease
    WHERE wake_at > ?1 AND lock_until > ?1 + lease";
const CLAMP_ACTIVITIES: &str = "UPDATE activity SET lock_until = ?1 + lease, wake_at = ?1 + lease
    WHERE wake_at > ?1 AND lock_until > ?1 + lease";

impl SqliteEngine {
    /// Shortens such leases, so that a clock that was an hour ahead does not lock an hour of work away. Done once
    /// after the store was opened: it looks at everything that waits for a time.
    pub(crate) fn clamp_leases(&self) -> Result<(), StoreFailure> {
        self.db.execute(CLAMP_INSTANCES, [micros(self.now)])?;
        self.db.execute(CLAMP_ACTIVITIES, [micros(self.now)])?;
        Ok(())
    }
}
