//! Changes of custom status and key-values, taken out of events.

use duroxide_core::{Event, EventKind};

/// A change that an event makes beside the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateChange {
    /// The custom status.
    CustomStatus(Option<String>),
    /// A key was set.
    KvSet {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// When.
        last_updated_at_ms: u64,
    },
    /// A key was removed.
    KvClear {
        /// The key.
        key: String,
    },
    /// All keys were removed.
    KvClearAll,
}

impl StateChange {
    /// Whether the change concerns a key of the instance.
    pub fn is_of_keys(&self) -> bool {
        !matches!(self, Self::CustomStatus(_))
    }

    /// The changes of these events, in order.
    pub fn of(events: &[Event]) -> Vec<Self> {
        events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::CustomStatusUpdated { status } => Some(Self::CustomStatus(status.clone())),
                EventKind::KeyValueSet { key, value, last_updated_at_ms } => Some(Self::KvSet {
                    key: key.clone(),
                    value: value.clone(),
                    last_updated_at_ms: *last_updated_at_ms,
                }),
                EventKind::KeyValueCleared { key } => Some(Self::KvClear { key: key.clone() }),
                EventKind::KeyValuesCleared => Some(Self::KvClearAll),
                _ => None,
            })
            .collect()
    }
}
