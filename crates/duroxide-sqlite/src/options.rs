//! Settings of a store.

use std::time::Duration;

use duroxide_provider::store::bounds::ORPHAN_MESSAGE_TTL_DEFAULT;

/// How a store is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    /// When a commit is on disk.
    pub synchronous: SqliteSynchronous,
    /// How long a message waits for an instance that was never started before it becomes a dead letter.
    pub orphan_message_ttl: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { synchronous: SqliteSynchronous::Full, orphan_message_ttl: ORPHAN_MESSAGE_TTL_DEFAULT }
    }
}

/// When a commit is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SqliteSynchronous {
    /// Before the commit returns: acknowledged writes survive power loss.
    #[default]
    Full,
    /// At the next checkpoint: acknowledged writes survive a crash of the process, but power loss may undo the last
    /// commits. A transaction is never undone in part.
    Normal,
}
