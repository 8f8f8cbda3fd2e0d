//! Key-values and custom status.

use duroxide_core::KvEntry;

use super::record;
use crate::value::Columns;

/// A value that earlier executions left under a key.
#[derive(Debug, Clone)]
pub(crate) struct KeyValue {
    pub(crate) instance: u64,
    pub(crate) key: String,
    /// `None`: a value exists, and was not read.
    pub(crate) entry: Option<KvEntry>,
}

record!(KeyValue, "kv", |it| {
    Key instance: Int = it.instance;
    Key key: Text = &it.key;
    Mutable value: Text = it.entry.as_ref().map(|entry| entry.value.as_str());
    Mutable last_updated_at_ms: Int = it.entry.as_ref().map(|entry| entry.last_updated_at_ms);
}, |row| {
    let entry = KvEntry { value: row.column("value")?, last_updated_at_ms: row.number("last_updated_at_ms")? };
    Ok(KeyValue { instance: row.number("instance")?, key: row.column("key")?, entry: Some(entry) })
});

/// A change of the current execution under a key; without an entry the key was removed.
#[derive(Debug, Clone)]
pub(crate) struct KeyValueChange {
    pub(crate) instance: u64,
    pub(crate) key: String,
    pub(crate) entry: Option<KvEntry>,
}

record!(KeyValueChange, "kv_change", |it| {
    Key instance: Int = it.instance;
    Key key: Text = &it.key;
    Mutable value: Text = it.entry.as_ref().map(|entry| entry.value.as_str());
    // The column is not null. A removed key has no time, and the one that is stored is never read.
    Mutable last_updated_at_ms: Int = it.entry.as_ref().map_or(0, |entry| entry.last_updated_at_ms);
}, |row| {
    let last_updated_at_ms = row.number("last_updated_at_ms")?;
    let value: Option<String> = row.column("value")?;
    let entry = value.map(|value| KvEntry { value, last_updated_at_ms });
    Ok(KeyValueChange { instance: row.number("instance")?, key: row.column("key")?, entry })
});

/// The custom status of an instance.
#[derive(Debug, Clone)]
pub(crate) struct CustomStatus {
    pub(crate) instance: u64,
    pub(crate) status: Option<String>,
    pub(crate) version: u64,
}

record!(CustomStatus, "custom_status", |it| {
    Key instance: Int = it.instance;
    Mutable status: Text = &it.status;
    Mutable version: Int = it.version;
}, |row| {
    Ok(CustomStatus {
        instance: row.number("instance")?,
        status: row.column("status")?,
        version: row.number("version")?,
    })
});
