//! Every limit of the engine, in one place.

/// Not used: every unread message is carried over continue-as-new. Kept for code that names it.
pub const MAX_CARRY_FORWARD_EVENTS: usize = 100;
/// Bytes of a custom status.
pub const MAX_CUSTOM_STATUS_BYTES: usize = 262_144;
/// Tags one worker may subscribe to.
pub const MAX_WORKER_TAGS: usize = 5;
/// Bytes of an activity's routing tag.
pub const MAX_TAG_NAME_BYTES: usize = 256;
/// Keys in an instance's key-value store.
pub const MAX_KV_KEYS: usize = 150;
/// Bytes of one value in the key-value store.
pub const MAX_KV_VALUE_BYTES: usize = 65_536;
/// Bytes of an instance id that a client starts, and of the name of an orchestration, event or queue that it names.
pub const MAX_NAME_BYTES: usize = 1_024;
/// Bytes of an instance id that a client sends a message to. Longer than what it may start, because the automatic id of a
/// child begins with the id of its parent.
pub const MAX_ADDRESSED_ID_BYTES: usize = 4_096;
const _: () = assert!(MAX_NAME_BYTES < MAX_ADDRESSED_ID_BYTES);
/// Times a future may wake itself in a row, with no event applied in between.
pub const MAX_SELF_WAKES: usize = 10_000;

/// Limits that a deployment may change. `None` switches one off.
///
/// The defaults are far above real use and far below what takes a process down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeLimits {
    /// Bytes of one input, output, event or message.
    pub max_payload_bytes: Option<usize>,
    /// Events in the history of one execution.
    pub max_history_events: Option<u64>,
    /// Events and queue messages that wait in the store for one instance.
    pub max_mailbox_messages: Option<u64>,
    /// Actions that code may emit in one turn.
    pub max_actions_per_turn: Option<usize>,
}

impl Default for RuntimeLimits {
    fn default() -> Self {
        Self {
            max_payload_bytes: Some(16 << 20),
            max_history_events: Some(1_000_000),
            max_mailbox_messages: Some(100_000),
            max_actions_per_turn: Some(100_000),
        }
    }
}
