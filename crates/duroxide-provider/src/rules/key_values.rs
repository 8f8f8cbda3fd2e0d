//! The key-value store of an instance and its custom status.
//!
//! The values that earlier executions left and the changes of the current one are kept apart, so that a replay of the
//! current execution starts from the state it started from the first time (11.2).

use duroxide_core::KvEntry;

use super::{Rows, Rules, Tables};
use crate::store::StateChange;

impl<T: Tables> Rules<T> {
    pub(super) fn change_key_values(&mut self, instance: u64, changes: &[StateChange]) -> Rows<()> {
        for change in changes {
            match change {
                StateChange::CustomStatus(_) => {}
                StateChange::KvSet { key, value, last_updated_at_ms } => {
                    let entry = KvEntry { value: value.clone(), last_updated_at_ms: *last_updated_at_ms };
                    self.tables.set_kv_change(instance, key, Some(&entry))?;
                }
                StateChange::KvClear { key } => self.clear_key(instance, key)?,
                StateChange::KvClearAll => self.clear_all_keys(instance)?,
            }
        }
        Ok(())
    }

    /// Only a key that earlier executions left needs a mark that hides it.
    fn clear_key(&mut self, instance: u64, key: &str) -> Rows<()> {
        if self.tables.has_kv(instance, key)? {
            self.tables.set_kv_change(instance, key, None)
        } else {
            self.tables.delete_kv_change(instance, key)
        }
    }

    fn clear_all_keys(&mut self, instance: u64) -> Rows<()> {
        for (key, _) in self.tables.kv_changes(instance)? {
            self.tables.delete_kv_change(instance, &key)?;
        }
        for key in self.tables.kv_keys(instance)? {
            self.tables.set_kv_change(instance, &key, None)?;
        }
        Ok(())
    }

    /// The current execution ended: merges its changes into the values that executions leave.
    pub(super) fn merge_key_values(&mut self, instance: u64) -> Rows<()> {
        for (key, change) in self.tables.kv_changes(instance)? {
            match change {
                Some(entry) => self.tables.set_kv(instance, &key, &entry)?,
                None => self.tables.delete_kv(instance, &key)?,
            }
            self.tables.delete_kv_change(instance, &key)?;
        }
        Ok(())
    }

    /// The last status of a delta counts, and raises the version by one (12.1).
    pub(super) fn change_custom_status(&mut self, instance: u64, changes: &[StateChange]) -> Rows<()> {
        let last = changes.iter().rev().find_map(|change| match change {
            StateChange::CustomStatus(status) => Some(status),
            StateChange::KvSet { .. } | StateChange::KvClear { .. } | StateChange::KvClearAll => None,
        });
        let Some(status) = last else { return Ok(()) };
        let version = self.tables.custom_status_version(instance)?;
        self.tables.set_custom_status(instance, status.as_deref(), version + 1)
    }
}
