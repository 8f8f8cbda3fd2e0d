//! Executions and their events.

use crate::{
    rules::{ExecutionAge, ExecutionRow, Rows},
    store::EventRow,
};

/// Executions and their events.
pub trait HistoryTable {
    /// Reads an execution.
    fn execution(&mut self, instance: u64, execution_id: u64) -> Rows<Option<ExecutionRow>>;

    /// Inserts or replaces an execution.
    fn write_execution(&mut self, instance: u64, execution_id: u64, execution: &ExecutionRow) -> Rows<()>;

    /// Whether an event is stored.
    fn has_event(&mut self, instance: u64, execution_id: u64, event_id: u64) -> Rows<bool>;

    /// Appends events.
    fn append_events(&mut self, instance: u64, execution_id: u64, events: &[EventRow]) -> Rows<()>;

    /// The first event of an execution.
    fn first_event(&mut self, instance: u64, execution_id: u64) -> Rows<Option<String>>;

    /// The executions of instances, in this order and ascending, without the `keep` newest of each, at most `limit`. Of the first
    /// instance only those above `after`.
    fn old_executions(
        &mut self,
        instances: &[u64],
        keep: u32,
        after: u64,
        limit: usize,
    ) -> Rows<Vec<ExecutionAge>>;

    /// Deletes the row of an execution, and nothing that belongs to it.
    fn delete_execution(&mut self, instance: u64, execution_id: u64) -> Rows<()>;
}
