//! [`SystemStats`]: sizes of an instance as a store reports them.

use serde::{Deserialize, Serialize};

/// Sizes of one instance's current execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemStats {
    /// Events in the history.
    pub history_event_count: u64,
    /// Bytes of the history's stored form.
    pub history_size_bytes: u64,
    /// Queue messages carried into this execution.
    pub queue_pending_count: u64,
    /// Keys in the key-value store.
    pub kv_user_key_count: u64,
    /// Bytes of all values in the key-value store.
    pub kv_total_value_bytes: u64,
}
