//! Changes of custom status and key-values, taken out of events.

use duroxide_core::{Event, EventRole, KeyValueChange};

/// A change of state that an event makes besides its entry in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateChange {
    /// The new custom status; `None` clears it.
    CustomStatus(Option<String>),
    /// A key was set.
    KvSet {
        /// The name of the key.
        key: String,
        /// The text of the value.
        value: String,
        /// The time, in milliseconds since the epoch.
        last_updated_at_ms: u64,
    },
    /// A key was removed.
    KvClear {
        /// The name of the key.
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
            .filter_map(|event| match event.kind.role() {
                EventRole::CustomStatus(status) => Some(Self::CustomStatus(status.map(str::to_owned))),
                EventRole::KeyValues(change) => Some(Self::of_keys(change)),
                EventRole::Start
                | EventRole::End
                | EventRole::CancelRequest
                | EventRole::Call(_)
                | EventRole::Completion(_)
                | EventRole::GivenUp { .. }
                | EventRole::Message
                | EventRole::DetachedStart => None,
            })
            .collect()
    }

    fn of_keys(change: KeyValueChange<'_>) -> Self {
        match change {
            KeyValueChange::Set { key, value, last_updated_at_ms } => {
                Self::KvSet { key: key.to_owned(), value: value.to_owned(), last_updated_at_ms }
            }
            KeyValueChange::Clear { key } => Self::KvClear { key: key.to_owned() },
            KeyValueChange::ClearAll => Self::KvClearAll,
        }
    }
}
