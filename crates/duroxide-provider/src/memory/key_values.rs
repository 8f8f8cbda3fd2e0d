//! Key-values of instances: what earlier executions left, and what the current one changed.

use std::collections::BTreeMap;

use duroxide_core::KvEntry;

use super::{MemoryTables, table::Table};

/// By instance and key.
pub(super) type KeyValues<V> = Table<(u64, String), V>;

impl<V: Clone> KeyValues<V> {
    pub(super) fn of(&self, instance: u64) -> impl Iterator<Item = (&String, &V)> {
        let of_instance =
            self.range((instance, String::new())..).take_while(move |(key, _)| key.0 == instance);
        of_instance.map(|((_, key), value)| (key, value))
    }

    pub(super) fn to_map(&self, instance: u64) -> BTreeMap<String, V> {
        self.of(instance).map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

impl MemoryTables {
    /// A value, changes of the current execution included.
    pub(super) fn kv_value(&self, instance: u64, key: &str) -> Option<&str> {
        let key = (instance, key.to_owned());
        let entry: Option<&KvEntry> = match self.kv_changes.get(&key) {
            Some(change) => change.as_ref(),
            None => self.kv.get(&key),
        };
        entry.map(|entry| entry.value.as_str())
    }

    /// All values, changes of the current execution included.
    pub(super) fn kv_values(&self, instance: u64) -> BTreeMap<String, String> {
        let keys = self.kv.of(instance).map(|(key, _)| key);
        let keys = keys.chain(self.kv_changes.of(instance).map(|(key, _)| key));
        keys.filter_map(|key| Some((key.clone(), self.kv_value(instance, key)?.to_owned()))).collect()
    }
}
