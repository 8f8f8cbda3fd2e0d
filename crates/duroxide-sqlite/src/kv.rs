//! The key-value store of an instance: what earlier executions left, and apart from it the current one's changes, so
//! that a replay of the current execution starts from the state it started from the first time (11.2).

use std::collections::BTreeMap;

use duroxide_core::KvEntry;
use duroxide_provider::store::{StateChange, StoreFailure};

use crate::{
    SqliteEngine,
    db::{Db, number, unsigned},
};

const SET: &str = "INSERT INTO kv_change (instance, key, value, last_updated_at_ms) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (instance, key) DO UPDATE SET value = ?3, last_updated_at_ms = ?4";
const FORGET: &str = "DELETE FROM kv_change WHERE instance = ?1 AND key = ?2";
const FORGET_ALL: &str = "DELETE FROM kv_change WHERE instance = ?1";
/// Only a key that earlier executions left needs a mark that hides it.
const MARK_CLEARED: &str = "INSERT INTO kv_change (instance, key, value, last_updated_at_ms)
    SELECT instance, key, NULL, 0 FROM kv WHERE instance = ?1 AND key = ?2";
const MARK_ALL_CLEARED: &str = "INSERT INTO kv_change (instance, key, value, last_updated_at_ms)
    SELECT instance, key, NULL, 0 FROM kv WHERE instance = ?1";
const HAS_CHANGES: &str = "SELECT 1 FROM kv_change WHERE instance = ?1 LIMIT 1";
const MERGE_CLEARED: &str = "DELETE FROM kv
    WHERE instance = ?1 AND key IN (SELECT key FROM kv_change WHERE instance = ?1 AND value IS NULL)";
const MERGE_SET: &str = "INSERT INTO kv (instance, key, value, last_updated_at_ms)
    SELECT instance, key, value, last_updated_at_ms FROM kv_change WHERE instance = ?1 AND value IS NOT NULL
    ON CONFLICT (instance, key) DO UPDATE
        SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms";
const LEFT: &str = "SELECT key, value, last_updated_at_ms FROM kv WHERE instance = ?1";
const CHANGES: &str = "SELECT key, value, last_updated_at_ms FROM kv_change WHERE instance = ?1";
const CHANGE: &str = "SELECT value FROM kv_change WHERE instance = ?1 AND key = ?2";
const LEFT_VALUE: &str = "SELECT value FROM kv WHERE instance = ?1 AND key = ?2";

impl SqliteEngine {
    pub(crate) fn change_kv(&self, id: i64, changes: &[StateChange]) -> Result<(), StoreFailure> {
        for change in changes {
            match change {
                StateChange::CustomStatus(_) => {}
                StateChange::KvSet { key, value, last_updated_at_ms } => {
                    self.db.execute(SET, (id, key, value, number(*last_updated_at_ms)))?;
                }
                StateChange::KvClear { key } => {
                    self.db.execute(FORGET, (id, key))?;
                    self.db.execute(MARK_CLEARED, (id, key))?;
                }
                StateChange::KvClearAll => {
                    self.db.execute(FORGET_ALL, [id])?;
                    self.db.execute(MARK_ALL_CLEARED, [id])?;
                }
            }
        }
        Ok(())
    }

    /// The current execution ended: its changes become part of what it leaves.
    pub(crate) fn merge_kv(&self, id: i64) -> Result<(), StoreFailure> {
        if !self.db.exists(HAS_CHANGES, [id])? {
            return Ok(());
        }
        self.db.execute(MERGE_CLEARED, [id])?;
        self.db.execute(MERGE_SET, [id])?;
        self.db.execute(FORGET_ALL, [id]).map(|_| ())
    }
}

/// What earlier executions left.
pub(crate) fn left(db: &Db, id: i64) -> Result<BTreeMap<String, KvEntry>, StoreFailure> {
    let rows = db.all(LEFT, [id], |row| {
        Ok((row.get(0)?, KvEntry { value: row.get(1)?, last_updated_at_ms: unsigned(row.get(2)?) }))
    })?;
    Ok(rows.into_iter().collect())
}

/// What the current execution changed; `None` marks a removed key.
pub(crate) fn changes(db: &Db, id: i64) -> Result<BTreeMap<String, Option<KvEntry>>, StoreFailure> {
    let rows = db.all(CHANGES, [id], |row| {
        let last_updated_at_ms = unsigned(row.get(2)?);
        let value: Option<String> = row.get(1)?;
        Ok((row.get(0)?, value.map(|value| KvEntry { value, last_updated_at_ms })))
    })?;
    Ok(rows.into_iter().collect())
}

/// One value, changes included.
pub(crate) fn value(db: &Db, id: i64, key: &str) -> Result<Option<String>, StoreFailure> {
    let change: Option<Option<String>> = db.first(CHANGE, (id, key), |row| row.get(0))?;
    match change {
        Some(value) => Ok(value),
        None => db.first(LEFT_VALUE, (id, key), |row| row.get(0)),
    }
}

/// All values, changes included.
pub(crate) fn values(db: &Db, id: i64) -> Result<BTreeMap<String, String>, StoreFailure> {
    let mut values: BTreeMap<_, _> =
        left(db, id)?.into_iter().map(|(key, entry)| (key, entry.value)).collect();
    for (key, change) in changes(db, id)? {
        match change {
            Some(entry) => values.insert(key, entry.value),
            None => values.remove(&key),
        };
    }
    Ok(values)
}
