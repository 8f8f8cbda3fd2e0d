use serde::{Deserialize, Serialize};

/// Severity of an orchestration trace.
#[derive(Debug, Clone)]
pub enum LogLevel {
    /// Information.
    Info,
    /// A warning.
    Warn,
    /// An error.
    Error,
}

/// What a [`DurableFuture`](crate::DurableFuture) waits for.
#[derive(Debug, Clone)]
pub enum ScheduleKind {
    /// An activity.
    Activity {
        /// Its name.
        name: String,
    },
    /// A timer.
    Timer,
    /// An external event.
    ExternalWait {
        /// Its name.
        event_name: String,
    },
    /// A message of an event queue.
    QueueDequeue {
        /// The queue's name.
        event_name: String,
    },
    /// A child.
    SubOrchestration {
        /// The position of the call among all calls of the execution.
        token: u64,
    },
}

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
