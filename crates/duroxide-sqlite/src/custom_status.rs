//! The custom status of an instance, in a table of its own: it may be large and changes seldom.

use duroxide_provider::store::{StateChange, StoreFailure};

use crate::{
    SqliteEngine,
    db::{Db, unsigned},
};

const SET: &str = "INSERT INTO custom_status (instance, status, version) VALUES (?1, ?2, 1)
    ON CONFLICT (instance) DO UPDATE SET status = ?2, version = version + 1";
const SELECT: &str = "SELECT status, version FROM custom_status WHERE instance = ?1";

impl SqliteEngine {
    /// The last status of a delta counts, and raises the version by one (12.1).
    pub(crate) fn change_custom_status(&self, id: i64, changes: &[StateChange]) -> Result<(), StoreFailure> {
        let last = changes.iter().rev().find_map(|change| match change {
            StateChange::CustomStatus(status) => Some(status),
            _ => None,
        });
        match last {
            Some(status) => self.db.execute(SET, (id, status)).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// The custom status and its version; `None` if it was never set.
pub(crate) fn read(db: &Db, id: i64) -> Result<Option<(Option<String>, u64)>, StoreFailure> {
    db.first(SELECT, [id], |row| Ok((row.get(0)?, unsigned(row.get(1)?))))
}
