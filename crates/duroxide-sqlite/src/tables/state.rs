//! Key-values and custom statuses.

pub(crate) mod custom_status;
pub(crate) mod key_values;

use duroxide_core::KvEntry;
use duroxide_provider::rules::{Rows, StateTable};

use super::SqliteTables;
use crate::{
    columns::upsert,
    db::{number, unsigned},
};

const DELETE_CHANGE: &str = "DELETE FROM kv_change WHERE instance = ?1 AND key = ?2";
const DELETE: &str = "DELETE FROM kv WHERE instance = ?1 AND key = ?2";
const HAS: &str = "SELECT 1 FROM kv WHERE instance = ?1 AND key = ?2";
const KEYS: &str = "SELECT key FROM kv WHERE instance = ?1 ORDER BY key";
const CUSTOM_STATUS_VERSION: &str = "SELECT version FROM custom_status WHERE instance = ?1";

impl StateTable for SqliteTables {
    fn set_kv_change(&mut self, instance: u64, key: &str, change: Option<&KvEntry>) -> Rows<()> {
        self.cache.kv_changed(instance);
        let written = upsert!(self.db, kv_change [instance: number(instance), key: key] {
            value: change.map(|entry| &entry.value),
            last_updated_at_ms: change.map_or(0, |entry| number(entry.last_updated_at_ms)),
        });
        written.map(|_| ())
    }

    fn delete_kv_change(&mut self, instance: u64, key: &str) -> Rows<()> {
        self.db.execute(DELETE_CHANGE, (number(instance), key)).map(|_| ())
    }

    fn kv_changes(&mut self, instance: u64) -> Rows<Vec<(String, Option<KvEntry>)>> {
        if self.cache.kv_is_unchanged(instance) {
            return Ok(Vec::new());
        }
        key_values::changes(&self.db, number(instance))
    }

    fn has_kv(&mut self, instance: u64, key: &str) -> Rows<bool> {
        self.db.exists(HAS, (number(instance), key))
    }

    fn kv_keys(&mut self, instance: u64) -> Rows<Vec<String>> {
        self.db.values(KEYS, [number(instance)])
    }

    fn set_kv(&mut self, instance: u64, key: &str, entry: &KvEntry) -> Rows<()> {
        let written = upsert!(self.db, kv [instance: number(instance), key: key] {
            value: &entry.value,
            last_updated_at_ms: number(entry.last_updated_at_ms),
        });
        written.map(|_| ())
    }

    fn delete_kv(&mut self, instance: u64, key: &str) -> Rows<()> {
        self.db.execute(DELETE, (number(instance), key)).map(|_| ())
    }

    fn custom_status_version(&mut self, instance: u64) -> Rows<u64> {
        if self.cache.custom_status_is_unset(instance) {
            return Ok(0);
        }
        let version = self.db.value(CUSTOM_STATUS_VERSION, [number(instance)])?;
        Ok(version.map(unsigned).unwrap_or_default())
    }

    fn set_custom_status(&mut self, instance: u64, status: Option<&str>, version: u64) -> Rows<()> {
        self.cache.custom_status_set(instance);
        let written = upsert!(self.db, custom_status [instance: number(instance)] {
            status: status,
            version: number(version),
        });
        written.map(|_| ())
    }

    fn custom_status_at_hand(&mut self, instance: u64) -> Option<Option<(Option<String>, u64)>> {
        self.cache.custom_status_is_unset(instance).then_some(None)
    }
}
