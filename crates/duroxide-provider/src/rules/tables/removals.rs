//! Rows of deleted instances and pruned executions that are still to be removed.

use duroxide_core::Timestamp;

use crate::rules::{Removal, Rows};

/// Rows of deleted instances and pruned executions that are still to be removed.
pub trait RemovalTable {
    /// Adds rows to remove to a task.
    fn insert_removal(&mut self, task: u64, removal: &Removal) -> Rows<()>;

    /// The first removal of a task.
    fn first_removal(&mut self, task: u64) -> Rows<Option<Removal>>;

    /// Ends a removal after its last row was removed.
    fn delete_removal(&mut self, removal: &Removal) -> Rows<()>;

    /// Inserts a task, or changes the time from which promotions may continue it.
    fn write_removal_task(&mut self, task: u64, remove_at: Timestamp) -> Rows<()>;

    /// Ends a task.
    fn delete_removal_task(&mut self, task: u64) -> Rows<()>;

    /// The task that has been due longest.
    fn due_removal_task(&mut self, now: Timestamp) -> Rows<Option<u64>>;

    /// Removes rows within a budget, in any fixed order.
    fn remove_rows(&mut self, removal: &Removal, budget: &mut RemovalBudget) -> Rows<RemovedRows>;
}

/// How many rows a step of a removal may still remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovalBudget {
    rows: usize,
    bytes: usize,
}

impl RemovalBudget {
    /// A budget.
    pub const fn new(rows: usize, bytes: usize) -> Self {
        Self { rows, bytes }
    }

    /// Whether nothing more may be removed.
    pub fn is_spent(self) -> bool {
        self.rows == 0 || self.bytes == 0
    }

    /// How many rows may be removed.
    pub fn rows(self) -> usize {
        self.rows
    }

    /// How many bytes may be removed.
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// Takes a row into the step, unless the step is full.
    pub fn spend(&mut self, bytes: usize) -> bool {
        if self.is_spent() {
            return false;
        }
        self.rows -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
        true
    }
}

/// The rows that a step of a removal removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemovedRows {
    /// The number of events.
    pub events: u64,
    /// The number of messages.
    pub messages: u64,
    /// The number of executions.
    pub executions: u64,
    /// Whether no row of the removal is left.
    pub is_done: bool,
}
