//! Key-values of an instance: those that earlier executions left, and, apart from them, the changes of the current one.

use std::collections::BTreeMap;

use duroxide_core::KvEntry;
use duroxide_provider::rules::Rows;

use crate::{
    columns::columns,
    db::{Db, unsigned},
};

columns!(kv as kv_columns: key, value, last_updated_at_ms);
columns!(kv_change as kv_change_columns: key, value, last_updated_at_ms);

const CHANGES: &str =
    concat!("SELECT ", kv_change_columns!(), " FROM kv_change WHERE instance = ?1 ORDER BY key");
const CHANGE: &str = "SELECT value FROM kv_change WHERE instance = ?1 AND key = ?2";
const LEFT: &str = concat!("SELECT ", kv_columns!(), " FROM kv WHERE instance = ?1");
const LEFT_VALUE: &str = "SELECT value FROM kv WHERE instance = ?1 AND key = ?2";

/// Values that earlier executions left.
pub(crate) fn left(db: &Db, id: i64) -> Rows<BTreeMap<String, KvEntry>> {
    let rows = db.all(LEFT, [id], |row| {
        let last_updated_at_ms = unsigned(row.get(kv::last_updated_at_ms)?);
        Ok((row.get(kv::key)?, KvEntry { value: row.get(kv::value)?, last_updated_at_ms }))
    })?;
    Ok(rows.into_iter().collect())
}

/// Changes of the current execution, by key; `None` marks a removed key.
pub(crate) fn changes(db: &Db, id: i64) -> Rows<Vec<(String, Option<KvEntry>)>> {
    db.all(CHANGES, [id], |row| {
        let last_updated_at_ms = unsigned(row.get(kv_change::last_updated_at_ms)?);
        let value: Option<String> = row.get(kv_change::value)?;
        Ok((row.get(kv_change::key)?, value.map(|value| KvEntry { value, last_updated_at_ms })))
    })
}

/// One value, changes included.
pub(crate) fn value(db: &Db, id: i64, key: &str) -> Rows<Option<String>> {
    let change: Option<Option<String>> = db.value(CHANGE, (id, key))?;
    match change {
        Some(value) => Ok(value),
        None => db.value(LEFT_VALUE, (id, key)),
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
