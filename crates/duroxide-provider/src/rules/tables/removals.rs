//! Rows of deleted instances and pruned executions that are still to be removed.

use duroxide_core::Timestamp;

use crate::rules::{Removal, Rows};

/// Rows of deleted instances and pruned executions that are still to be removed.
pub trait RemovalTable {
    /// Adds removals, each with its number, to a task.
    fn insert_removals(&mut self, task: u64, removals: &[(u64, Removal)]) -> Rows<()>;

    /// The first removals of a task, by number, at most `limit`.
    fn first_removals(&mut self, task: u64, limit: usize) -> Rows<Vec<(u64, Removal)>>;

    /// Ends removals after their last rows were removed.
    fn delete_removals(&mut self, numbers: &[u64]) -> Rows<()>;

    /// Inserts a task, or changes the time from which promotions may continue it.
    fn write_removal_task(&mut self, task: u64, remove_at: Timestamp) -> Rows<()>;

    /// Ends a task.
    fn delete_removal_task(&mut self, task: u64) -> Rows<()>;

    /// The task that has been due longest.
    fn due_removal_task(&mut self, now: Timestamp) -> Rows<Option<u64>>;

    /// Removes rows of these removals, one removal after the other, as long as the budget lasts: see [`RemovalBudget::visit`].
    /// The order of the rows of one removal is free.
    fn remove_rows(&mut self, removals: &[Removal], budget: &mut RemovalBudget) -> Rows<RemovedRows>;
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
        self.spend_all(1, bytes);
        true
    }

    /// Takes rows into the step that were chosen within this budget.
    pub fn spend_all(&mut self, rows: usize, bytes: usize) {
        self.rows = self.rows.saturating_sub(rows);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Visits removals as long as the budget lasts. A visit costs a row, because reading the tables of a removal has a cost even
    /// without rows. Once the budget is spent, the last visited removal may have more rows, so it does not count as done.
    ///
    /// # Errors
    /// If `remove`, which removes rows of one removal, returns an error.
    pub fn visit(
        &mut self,
        removals: &[Removal],
        mut remove: impl FnMut(&Removal, &mut Self) -> Rows<RemovedRows>,
    ) -> Rows<RemovedRows> {
        let mut all = RemovedRows::default();
        for removal in removals {
            if !self.spend(0) {
                break;
            }
            let removed = remove(removal, self)?;
            all.events += removed.events;
            all.messages += removed.messages;
            all.executions += removed.executions;
            all.done += usize::from(!self.is_spent());
        }
        Ok(all)
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
    /// How many of the first removals have no rows left.
    pub done: usize,
}
