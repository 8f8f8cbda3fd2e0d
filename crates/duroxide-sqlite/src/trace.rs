//! Counts what a connection is asked to do, so that tests can guard the number of statements and commits.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rusqlite::{
    Connection,
    trace::{TraceEvent, TraceEventCodes},
};

/// Statements a connection ran since it was told to count.
#[derive(Debug, Default)]
pub struct StatementCounts {
    statements: AtomicU64,
    begins: AtomicU64,
    commits: AtomicU64,
}

impl StatementCounts {
    /// All statements, begin and commit included.
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Write transactions begun.
    pub fn begins(&self) -> u64 {
        self.begins.load(Ordering::Relaxed)
    }

    /// Transactions committed, empty ones included.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Starts counting on a connection.
    pub(crate) fn attach(self: &Arc<Self>, conn: &mut Connection) -> rusqlite::Result<()> {
        let counts = Arc::clone(self);
        conn.trace_v2(
            TraceEventCodes::SQLITE_TRACE_STMT,
            Some(move |event: TraceEvent<'_>| {
                if let TraceEvent::Stmt(_, sql) = event {
                    counts.add(sql);
                }
            }),
        )
    }

    fn add(&self, sql: &str) {
        self.statements.fetch_add(1, Ordering::Relaxed);
        match sql {
            crate::engine::BEGIN => self.begins.fetch_add(1, Ordering::Relaxed),
            crate::engine::COMMIT => self.commits.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
    }
}
