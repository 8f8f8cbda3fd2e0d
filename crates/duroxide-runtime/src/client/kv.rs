//! Reads the key-value store of an instance, and waits for values.

use std::{collections::HashMap, time::Duration};

use serde::de::DeserializeOwned;

use super::{Client, ClientError, status::PollInterval};

impl Client {
    /// A value of an instance's key-value store.
    ///
    /// # Errors
    /// The store's error.
    pub async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ClientError> {
        Ok(self.store.get_kv_value(instance, key).await?)
    }

    /// A typed value of an instance's key-value store.
    ///
    /// # Errors
    /// `InvalidInput` for a value that is not the JSON of a `T`; otherwise the store's error.
    pub async fn get_kv_value_typed<T: DeserializeOwned>(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<T>, ClientError> {
        self.get_kv_value(instance, key).await?.map(|value| decode(&value, instance, key)).transpose()
    }

    /// All values of an instance's key-value store.
    ///
    /// # Errors
    /// The store's error.
    pub async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ClientError> {
        Ok(self.store.get_kv_all_values(instance).await?)
    }

    /// Waits until an instance's key-value store has a value for `key`.
    ///
    /// # Errors
    /// `Timeout` if there is none in time; otherwise the store's error.
    pub async fn wait_for_kv_value(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<String, ClientError> {
        let check = |_| self.store.get_kv_value(instance, key);
        self.wait_until(instance, timeout, PollInterval::GROWING, check).await
    }

    /// Waits until an instance's key-value store has a value for `key`, and decodes it.
    ///
    /// # Errors
    /// As [`Self::wait_for_kv_value`], and `InvalidInput` for a value that is not the JSON of a `T`.
    pub async fn wait_for_kv_value_typed<T: DeserializeOwned>(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<T, ClientError> {
        decode(&self.wait_for_kv_value(instance, key, timeout).await?, instance, key)
    }
}

/// Values are plain JSON, as the typed calls of orchestration code write them.
fn decode<T: DeserializeOwned>(value: &str, instance: &str, key: &str) -> Result<T, ClientError> {
    serde_json::from_str(value).map_err(|error| {
        let bytes = value.len();
        ClientError::invalid_input(format!(
            "KV deserialization error: {error} (key '{key}' of instance '{instance}', {bytes} bytes)"
        ))
    })
}
