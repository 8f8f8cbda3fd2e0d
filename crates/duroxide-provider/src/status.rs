//! [`StatusSnapshot`]: the status of an instance without its history.

use duroxide_core::Event;

/// The status of an instance, without its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusSnapshot {
    /// The current execution.
    pub execution_id: u64,
    /// Its Completed or Failed event; `None` while the instance runs, also between two executions.
    pub terminal_event: Option<Event>,
    /// The custom status, if the code has set one.
    pub custom_status: Option<String>,
    /// How often it was set.
    pub custom_status_version: u64,
}
