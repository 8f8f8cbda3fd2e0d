//! What a connection is asked to do, so that tests can guard the number and the plans of statements.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{
    Connection,
    trace::{TraceEvent, TraceEventCodes},
};

use crate::engine::{BEGIN, COMMIT};

/// The statements that a connection ran since it was told to keep them. For tests and benchmarks: it grows.
#[derive(Debug, Default)]
pub struct StatementTrace {
    statements: Mutex<Vec<String>>,
}

impl StatementTrace {
    /// All statements in order, begin and commit included, without the values of their parameters.
    pub fn statements(&self) -> Vec<String> {
        self.kept().clone()
    }

    /// Transactions begun that may write.
    pub fn begins(&self) -> usize {
        self.count(BEGIN)
    }

    /// Transactions committed, empty ones included.
    pub fn commits(&self) -> usize {
        self.count(COMMIT)
    }

    /// Forgets what was kept.
    pub fn clear(&self) {
        self.kept().clear();
    }

    /// Starts to keep the statements of a connection.
    pub(crate) fn attach(self: &Arc<Self>, conn: &mut Connection) -> rusqlite::Result<()> {
        let trace = Arc::clone(self);
        conn.trace_v2(
            TraceEventCodes::SQLITE_TRACE_STMT,
            Some(move |event: TraceEvent<'_>| {
                // A trigger that runs shows itself as a comment; it is part of its statement.
                if let TraceEvent::Stmt(_, sql) = event
                    && !sql.starts_with("--")
                {
                    trace.kept().push(sql.to_owned());
                }
            }),
        )
    }

    fn count(&self, sql: &str) -> usize {
        self.kept().iter().filter(|statement| *statement == sql).count()
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
