//! Records the statements of a connection, so that tests can guard their number and their plans.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use crate::tables::{BEGIN, COMMIT};

/// The statements that a connection ran since the trace began. For tests and benchmarks: the list grows.
#[derive(Debug, Default)]
pub struct StatementTrace {
    statements: Mutex<Vec<String>>,
    steps: AtomicU64,
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

    /// Instructions that SQLite carried out for the statements. They grow with the rows that a statement reads, and are
    /// the same on every machine.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Clears the trace.
    pub fn clear(&self) {
        self.kept().clear();
        self.steps.store(0, Ordering::Relaxed);
    }

    pub(crate) fn add_steps(&self, steps: i32) {
        self.steps.fetch_add(u64::try_from(steps).unwrap_or_default(), Ordering::Relaxed);
    }

    pub(crate) fn add(&self, sql: &str) {
        self.kept().push(sql.to_owned());
    }

    fn count(&self, sql: &str) -> usize {
        self.kept().iter().filter(|statement| *statement == sql).count()
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
