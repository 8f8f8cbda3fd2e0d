//! Bounds and intervals of a served store.

use std::time::Duration;

/// Bounds and intervals of a served store. The defaults are meant for production; tests make them small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// Operations in one transaction.
    pub batch_ops_max: usize,
    /// Payload bytes in one transaction. A larger operation gets a transaction of its own.
    pub batch_bytes_max: usize,
    /// Client enqueues that wait for the store. Further callers wait until one of them is done.
    pub enqueue_ops_max: usize,
    /// Payload bytes of client enqueues that wait for the store.
    pub enqueue_bytes_max: usize,
    /// Whether turns may run before the transaction that claimed their instances is committed, so that it commits their rounds,
    /// too: see [`EarlyTurns`](duroxide_provider::store::EarlyTurns). For engines whose commits are slow.
    pub early_turns: bool,
    /// Whether other processes may change the store. If not, the store does not poll for changes.
    pub shared: bool,
    /// How often to poll for changes by other processes, while a fetch or a client waits. After a second without requests and
    /// changes the interval is four times as long, or a second where the engine notifies of writes.
    pub check_interval: Duration,
    /// How often to poll during the second after such a change.
    pub alert_check_interval: Duration,
    /// The wait before the first attempt to reopen a store whose commit failed; doubles with every attempt.
    pub reopen_backoff_min: Duration,
    /// The longest wait between two attempts to reopen.
    pub reopen_backoff_max: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            batch_ops_max: 512,
            batch_bytes_max: 8 << 20,
            enqueue_ops_max: 4_096,
            enqueue_bytes_max: 64 << 20,
            early_turns: false,
            shared: true,
            check_interval: Duration::from_millis(50),
            alert_check_interval: Duration::from_millis(1),
            reopen_backoff_min: Duration::from_millis(10),
            reopen_backoff_max: Duration::from_secs(1),
        }
    }
}
