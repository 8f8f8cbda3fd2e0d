//! Key-values of instances: those that earlier executions left, and the changes of the current one.

use std::collections::BTreeMap;

use duroxide_core::KvEntry;

use super::{MemoryTables, table::Table};
use crate::rules::{Rows, StateTable};

/// By instance and key.
pub(in crate::memory) type KeyValues<V> = Table<(u64, String), V>;

impl<V: Clone> KeyValues<V> {
    pub(in crate::memory) fn of(&self, instance: u64) -> impl Iterator<Item = (&String, &V)> {
        let of_instance =
            self.range((instance, String::new())..).take_while(move |(key, _)| key.0 == instance);
        of_instance.map(|((_, key), value)| (key, value))
    }

    pub(in crate::memory) fn to_map(&self, instance: u64) -> BTreeMap<String, V> {
        self.of(instance).map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

impl MemoryTables {
    /// A value, changes of the current execution included.
    pub(in crate::memory) fn kv_value(&self, instance: u64, key: &str) -> Option<&str> {
        let key = (instance, key.to_owned());
        let entry: Option<&KvEntry> = match self.kv_changes.get(&key) {
            Some(change) => change.as_ref(),
            None => self.kv.get(&key),
        };
        entry.map(|entry| entry.value.as_str())
    }

    /// All values, changes of the current execution included.
    pub(in crate::memory) fn kv_values(&self, instance: u64) -> BTreeMap<String, String> {
        let keys = self.kv.of(instance).map(|(key, _)| key);
        let keys = keys.chain(self.kv_changes.of(instance).map(|(key, _)| key));
        keys.filter_map(|key| Some((key.clone(), self.kv_value(instance, key)?.to_owned()))).collect()
    }
}

impl StateTable for MemoryTables {
    fn set_kv_change(&mut self, instance: u64, key: &str, change: Option<&KvEntry>) -> Rows<()> {
        self.kv_changes.put((instance, key.to_owned()), change.cloned());
        Ok(())
    }

    fn delete_kv_change(&mut self, instance: u64, key: &str) -> Rows<()> {
        self.kv_changes.remove(&(instance, key.to_owned()));
        Ok(())
    }

    fn kv_changes(&mut self, instance: u64) -> Rows<Vec<(String, Option<KvEntry>)>> {
        Ok(self.kv_changes.of(instance).map(|(key, change)| (key.clone(), change.clone())).collect())
    }

    fn has_kv(&mut self, instance: u64, key: &str) -> Rows<bool> {
        Ok(self.kv.contains(&(instance, key.to_owned())))
    }

    fn kv_keys(&mut self, instance: u64) -> Rows<Vec<String>> {
        Ok(self.kv.of(instance).map(|(key, _)| key.clone()).collect())
    }

    fn set_kv(&mut self, instance: u64, key: &str, entry: &KvEntry) -> Rows<()> {
        self.kv.put((instance, key.to_owned()), entry.clone());
        Ok(())
    }

    fn delete_kv(&mut self, instance: u64, key: &str) -> Rows<()> {
        self.kv.remove(&(instance, key.to_owned()));
        Ok(())
    }

    fn custom_status_version(&mut self, instance: u64) -> Rows<u64> {
        Ok(self.custom_statuses.get(&instance).map_or(0, |(_, version)| *version))
    }

    fn set_custom_status(&mut self, instance: u64, status: Option<&str>, version: u64) -> Rows<()> {
        self.custom_statuses.put(instance, (status.map(str::to_owned), version));
        Ok(())
    }

    fn custom_status_at_hand(&mut self, instance: u64) -> Option<Option<(Option<String>, u64)>> {
        Some(self.custom_statuses.get(&instance).cloned())
    }
}
