//! Key-values and custom status.

use duroxide_core::KvEntry;

use super::{PostgresTables, load::Request};
use crate::{
    database_error::DatabaseError,
    record::{CustomStatus, KeyValue, KeyValueChange},
};

impl PostgresTables {
    pub(super) fn set_kv_change(
        &mut self,
        instance: u64,
        key: &str,
        entry: Option<&KvEntry>,
    ) -> Result<(), DatabaseError> {
        let change = KeyValueChange { instance, key: key.to_owned(), entry: entry.cloned() };
        self.set.key_value_changes.overwrite((instance, key.to_owned()), change);
        Ok(())
    }

    pub(super) fn delete_kv_change(&mut self, instance: u64, key: &str) -> Result<(), DatabaseError> {
        self.set.key_value_changes.delete(&(instance, key.to_owned()));
        Ok(())
    }

    pub(super) fn kv_changes(
        &mut self,
        instance: u64,
    ) -> Result<Vec<(String, Option<KvEntry>)>, DatabaseError> {
        if !self.set.whole_key_value_changes.contains(&instance) && !self.set.instances.is_new(&instance) {
            self.load(vec![Request::key_value_changes(&[instance].into())])?;
        }
        let changes =
            self.set.key_value_changes.range((instance, String::new())..(instance + 1, String::new()));
        Ok(changes.map(|change| (change.key.clone(), change.entry.clone())).collect())
    }

    pub(super) fn has_kv(&mut self, instance: u64, key: &str) -> Result<bool, DatabaseError> {
        self.load_settings(instance)?;
        Ok(self.set.key_values.get(&(instance, key.to_owned())).is_some())
    }

    pub(super) fn kv_keys(&mut self, instance: u64) -> Result<Vec<String>, DatabaseError> {
        self.load_settings(instance)?;
        let key_values = self.set.key_values.range((instance, String::new())..(instance + 1, String::new()));
        Ok(key_values.map(|key_value| key_value.key.clone()).collect())
    }

    /// Callers only ask whether a value exists.
    fn load_settings(&mut self, instance: u64) -> Result<(), DatabaseError> {
        if !self.set.whole_key_values.contains(&instance) && !self.set.instances.is_new(&instance) {
            self.load(vec![Request::key_value_keys(&[instance].into())])?;
        }
        Ok(())
    }

    pub(super) fn set_kv(&mut self, instance: u64, key: &str, entry: &KvEntry) -> Result<(), DatabaseError> {
        let key_value = KeyValue { instance, key: key.to_owned(), entry: Some(entry.clone()) };
        self.set.key_values.overwrite((instance, key.to_owned()), key_value);
        Ok(())
    }

    pub(super) fn delete_kv(&mut self, instance: u64, key: &str) -> Result<(), DatabaseError> {
        self.set.key_values.delete(&(instance, key.to_owned()));
        Ok(())
    }

    pub(super) fn custom_status_version(&mut self, instance: u64) -> Result<u64, DatabaseError> {
        if !self.set.custom_status.knows(&instance) && !self.set.instances.is_new(&instance) {
            self.load(vec![Request::custom_status(&[instance].into())])?;
        }
        Ok(self.set.custom_status.get(&instance).map_or(0, |status| status.version))
    }

    pub(super) fn set_custom_status(
        &mut self,
        instance: u64,
        status: Option<&str>,
        version: u64,
    ) -> Result<(), DatabaseError> {
        let status = CustomStatus { instance, status: status.map(str::to_owned), version };
        self.set.custom_status.put(instance, status);
        Ok(())
    }

    pub(super) fn known_custom_status(&self, instance: u64) -> Option<Option<(Option<String>, u64)>> {
        let is_known = self.set.custom_status.knows(&instance) || self.set.instances.is_new(&instance);
        let status = || self.set.custom_status.get(&instance);
        is_known.then(|| status().map(|status| (status.status.clone(), status.version)))
    }
}
