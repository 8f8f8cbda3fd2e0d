//! Key-values of an instance: what earlier executions left, and apart from it what the current one changed.

use std::collections::BTreeMap;

use duroxide_core::KvEntry;
use duroxide_provider::rules::Rows;

use crate::db::{Db, number, unsigned};

const SET_CHANGE: &str =
    "INSERT INTO kv_change (instance, key, value, last_updated_at_ms) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (instance, key) DO UPDATE SET value = ?3, last_updated_at_ms = ?4";
const DELETE_CHANGE: &str = "DELETE FROM kv_change WHERE instance = ?1 AND key = ?2";
const CHANGES: &str = "SELECT key, value, last_updated_at_ms FROM kv_change WHERE instance = ?1 ORDER BY key";
const CHANGE: &str = "SELECT value FROM kv_change WHERE instance = ?1 AND key = ?2";
const SET: &str = "INSERT INTO kv (instance, key, value, last_updated_at_ms) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (instance, key) DO UPDATE SET value = ?3, last_updated_at_ms = ?4";
const DELETE: &str = "DELETE FROM kv WHERE instance = ?1 AND key = ?2";
const HAS: &str = "SELECT 1 FROM kv WHERE instance = ?1 AND key = ?2";
const KEYS: &str = "SELECT key FROM kv WHERE instance = ?1 ORDER BY key";
const LEFT: &str = "SELECT key, value, last_updated_at_ms FROM kv WHERE instance = ?1";
const LEFT_VALUE: &str = "SELECT value FROM kv WHERE instance = ?1 AND key = ?2";

pub(super) fn set_change(db: &Db, instance: u64, key: &str, change: Option<&KvEntry>) -> Rows<()> {
    let at = change.map_or(0, |entry| number(entry.last_updated_at_ms));
    let columns = (number(instance), key, change.map(|entry| &entry.value), at);
    db.execute(SET_CHANGE, columns).map(|_| ())
}

pub(super) fn delete_change(db: &Db, instance: u64, key: &str) -> Rows<()> {
    db.execute(DELETE_CHANGE, (number(instance), key)).map(|_| ())
}

pub(super) fn set(db: &Db, instance: u64, key: &str, entry: &KvEntry) -> Rows<()> {
    let columns = (number(instance), key, &entry.value, number(entry.last_updated_at_ms));
    db.execute(SET, columns).map(|_| ())
}

pub(super) fn delete(db: &Db, instance: u64, key: &str) -> Rows<()> {
    db.execute(DELETE, (number(instance), key)).map(|_| ())
}

pub(super) fn has(db: &Db, instance: u64, key: &str) -> Rows<bool> {
    db.exists(HAS, (number(instance), key))
}

pub(super) fn keys(db: &Db, instance: u64) -> Rows<Vec<String>> {
    db.all(KEYS, [number(instance)], |row| row.get(0))
}

/// Values that earlier executions left.
pub(crate) fn left(db: &Db, id: i64) -> Rows<BTreeMap<String, KvEntry>> {
    let rows = db.all(LEFT, [id], |row| {
        Ok((row.get(0)?, KvEntry { value: row.get(1)?, last_updated_at_ms: unsigned(row.get(2)?) }))
    })?;
    Ok(rows.into_iter().collect())
}

/// Changes of the current execution, by key; `None` marks a removed key.
pub(crate) fn changes(db: &Db, id: i64) -> Rows<Vec<(String, Option<KvEntry>)>> {
    db.all(CHANGES, [id], |row| {
        let last_updated_at_ms = unsigned(row.get(2)?);
        let value: Option<String> = row.get(1)?;
        Ok((row.get(0)?, value.map(|value| KvEntry { value, last_updated_at_ms })))
    })
}

/// One value, changes included.
pub(crate) fn value(db: &Db, id: i64, key: &str) -> Rows<Option<String>> {
    let change: Option<Option<String>> = db.first(CHANGE, (id, key), |row| row.get(0))?;
    match change {
        Some(value) => Ok(value),
        None => db.first(LEFT_VALUE, (id, key), |row| row.get(0)),
    }
}

/// All values, changes included.
pub(crate) fn values(db: &Db, id: i64) -> Rows<BTreeMap<String, String>> {
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
