//! Key-values and custom statuses.

pub(crate) mod custom_status;
pub(crate) mod key_values;

use duroxide_core::KvEntry;
use duroxide_provider::rules::{Rows, StateTable};

use super::SqliteTables;
use crate::db::number;

impl StateTable for SqliteTables {
    fn set_kv_change(&mut self, instance: u64, key: &str, change: Option<&KvEntry>) -> Rows<()> {
        self.cache.kv_changed(instance);
        key_values::set_change(&self.db, instance, key, change)
    }

    fn delete_kv_change(&mut self, instance: u64, key: &str) -> Rows<()> {
        key_values::delete_change(&self.db, instance, key)
    }

    fn kv_changes(&mut self, instance: u64) -> Rows<Vec<(String, Option<KvEntry>)>> {
        if self.cache.kv_is_unchanged(instance) {
            return Ok(Vec::new());
        }
        key_values::changes(&self.db, number(instance))
    }

    fn has_kv(&mut self, instance: u64, key: &str) -> Rows<bool> {
        key_values::has(&self.db, instance, key)
    }

    fn kv_keys(&mut self, instance: u64) -> Rows<Vec<String>> {
        key_values::keys(&self.db, instance)
    }

    fn set_kv(&mut self, instance: u64, key: &str, entry: &KvEntry) -> Rows<()> {
        key_values::set(&self.db, instance, key, entry)
    }

    fn delete_kv(&mut self, instance: u64, key: &str) -> Rows<()> {
        key_values::delete(&self.db, instance, key)
    }

    fn custom_status_version(&mut self, instance: u64) -> Rows<u64> {
        if self.cache.custom_status_is_unset(instance) {
            return Ok(0);
        }
        custom_status::version(&self.db, instance)
    }

    fn set_custom_status(&mut self, instance: u64, status: Option<&str>, version: u64) -> Rows<()> {
        self.cache.custom_status_set(instance);
        custom_status::set(&self.db, instance, status, version)
    }

    fn custom_status_at_hand(&mut self, instance: u64) -> Option<Option<(Option<String>, u64)>> {
        self.cache.custom_status_is_unset(instance).then_some(None)
    }
}
