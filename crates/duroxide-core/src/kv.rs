//! [`KvEntry`]: a value of the key-value store as a store reports it.

use serde::{Deserialize, Serialize};

/// A value of the key-value store with the time it was set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KvEntry {
    /// The value.
    pub value: String,
    /// When it was last set, in milliseconds since the epoch.
    pub last_updated_at_ms: u64,
}
