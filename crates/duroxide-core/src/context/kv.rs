//! The key-value store of the instance.

use std::collections::HashMap;

use serde::{Serialize, de::DeserializeOwned};

use super::{OrchestrationContext, activities::ActivityRequest, into_result};
use crate::{Action, DurableFuture, KvEntry, SYSCALL_GET_KV_VALUE, engine::Value};

/// # Key-value store
///
/// One store per instance, kept over continue-as-new. Changes take effect at the call.
impl OrchestrationContext {
    /// Sets a key.
    #[track_caller]
    pub fn set_kv_value(&self, key: impl Into<String>, value: impl Into<String>) {
        let (key, value) = (key.into(), value.into());
        let now = self.shared.clock.now().as_millis();
        let Some(mut state) = self.shared.lock_in_turn() else { return };
        // A set that repeats a recorded one takes the recorded time, so that pruning by age replays the same.
        let last_updated_at_ms = state.kv.recorded_times.pop_front().unwrap_or(now);
        state.kv.entries.insert(key.clone(), KvEntry { value: value.clone(), last_updated_at_ms });
        state.emit(Action::SetKeyValue { key, value, last_updated_at_ms });
    }

    /// Sets a key to the JSON of a value.
    ///
    /// # Panics
    /// If the value has no JSON form.
    #[expect(clippy::panic, reason = "the published contract of typed calls")]
    #[track_caller]
    pub fn set_kv_value_typed<T: Serialize>(&self, key: impl Into<String>, value: &T) {
        match serde_json::to_string(value) {
            Ok(json) => self.set_kv_value(key, json),
            Err(error) => panic!("encode: {error}"),
        }
    }

    /// The value of a key.
    pub fn get_kv_value(&self, key: &str) -> Option<String> {
        self.shared.lock().kv.entries.get(key).map(|entry| entry.value.clone())
    }

    /// The value of a key, decoded from JSON.
    ///
    /// # Errors
    /// If the value is not the JSON of a `T`.
    pub fn get_kv_value_typed<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, String> {
        decode_kv(key, &self.shared.identity.instance, self.get_kv_value(key))
    }

    /// All keys with their values.
    pub fn get_kv_all_values(&self) -> HashMap<String, String> {
        let state = self.shared.lock();
        state.kv.entries.iter().map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
    }

    /// All keys, sorted.
    pub fn get_kv_all_keys(&self) -> Vec<String> {
        self.shared.lock().kv.entries.keys().cloned().collect()
    }

    /// How many keys there are.
    pub fn get_kv_length(&self) -> usize {
        self.shared.lock().kv.entries.len()
    }

    /// Removes a key.
    #[track_caller]
    pub fn clear_kv_value(&self, key: impl Into<String>) {
        let key = key.into();
        let Some(mut state) = self.shared.lock_in_turn() else { return };
        state.kv.entries.remove(&key);
        state.emit(Action::ClearKeyValue { key });
    }

    /// Removes all keys.
    #[track_caller]
    pub fn clear_all_kv_values(&self) {
        let Some(mut state) = self.shared.lock_in_turn() else { return };
        state.kv.entries.clear();
        state.emit(Action::ClearKeyValues);
    }

    /// Removes the keys that were last set before this time, in key order. Returns how many.
    #[track_caller]
    pub fn prune_kv_values_updated_before(&self, updated_before_ms: u64) -> usize {
        let stale: Vec<String> = {
            let state = self.shared.lock();
            let stale = state.kv.entries.iter().filter(|(_, e)| e.last_updated_at_ms < updated_before_ms);
            stale.map(|(key, _)| key.clone()).collect()
        };
        let count = stale.len();
        for key in stale {
            self.clear_kv_value(key);
        }
        count
    }

    /// Reads a key of another instance. Recorded like an activity.
    #[track_caller]
    pub fn get_kv_value_from_instance(
        &self,
        instance: impl Into<String>,
        key: impl Into<String>,
    ) -> DurableFuture<Result<Option<String>, String>> {
        self.foreign_kv(&instance.into(), &key.into(), decode_foreign)
    }

    /// Reads a key of another instance, decoded from JSON. Recorded like an activity.
    #[track_caller]
    pub fn get_kv_value_from_instance_typed<T: DeserializeOwned + Send + 'static>(
        &self,
        instance: impl Into<String>,
        key: impl Into<String>,
    ) -> DurableFuture<Result<Option<T>, String>> {
        let key = key.into();
        let (instance, named) = (instance.into(), key.clone());
        let of = instance.clone();
        self.foreign_kv(&instance, &key, move |value| decode_kv(&named, &of, decode_foreign(value)?))
    }

    /// The request is a JSON object of instance and key, the answer the JSON of the optional value.
    #[track_caller]
    fn foreign_kv<T>(
        &self,
        instance: &str,
        key: &str,
        convert: impl FnOnce(Value) -> T + Send + 'static,
    ) -> DurableFuture<T> {
        let request = serde_json::json!({ "instance": instance, "key": key }).to_string();
        self.call_activity(ActivityRequest::new(SYSCALL_GET_KV_VALUE, request), convert)
    }
}

fn decode_kv<T: DeserializeOwned>(
    key: &str,
    instance: &str,
    value: Option<String>,
) -> Result<Option<T>, String> {
    let Some(json) = value else { return Ok(None) };
    serde_json::from_str(&json).map_err(|error| {
        let bytes = json.len();
        format!("KV deserialization error for key '{key}': {error} (instance '{instance}', {bytes} bytes)")
    })
}

fn decode_foreign(value: Value) -> Result<Option<String>, String> {
    let answer = into_result(value)?;
    serde_json::from_str(&answer).map_err(|error| error.to_string())
}
