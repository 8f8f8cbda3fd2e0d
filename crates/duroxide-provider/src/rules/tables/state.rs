//! Key-values and custom statuses.

use duroxide_core::KvEntry;

use crate::rules::Rows;

/// Key-values and custom statuses.
pub trait StateTable {
    /// Sets a change of the current execution; `None` marks a removed key.
    fn set_kv_change(&mut self, instance: u64, key: &str, change: Option<&KvEntry>) -> Rows<()>;

    /// Forgets a change of the current execution.
    fn delete_kv_change(&mut self, instance: u64, key: &str) -> Rows<()>;

    /// The changes of the current execution, by key.
    fn kv_changes(&mut self, instance: u64) -> Rows<Vec<(String, Option<KvEntry>)>>;

    /// Whether earlier executions left a value under this key.
    fn has_kv(&mut self, instance: u64, key: &str) -> Rows<bool>;

    /// The keys under which earlier executions left a value, ascending.
    fn kv_keys(&mut self, instance: u64) -> Rows<Vec<String>>;

    /// Sets a value that an execution leaves.
    fn set_kv(&mut self, instance: u64, key: &str, entry: &KvEntry) -> Rows<()>;

    /// Deletes a value that an execution left.
    fn delete_kv(&mut self, instance: u64, key: &str) -> Rows<()>;

    /// How often the custom status was set.
    fn custom_status_version(&mut self, instance: u64) -> Rows<u64>;

    /// Sets the custom status.
    fn set_custom_status(&mut self, instance: u64, status: Option<&str>, version: u64) -> Rows<()>;

    /// The custom status with its version, if that is known without reading it. `Some(None)`: never set.
    fn custom_status_at_hand(&mut self, instance: u64) -> Option<Option<(Option<String>, u64)>>;
}
