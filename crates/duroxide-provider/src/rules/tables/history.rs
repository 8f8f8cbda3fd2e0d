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

    /// The id of the `nth` newest execution, counted from 1; `None` if there are fewer.
    fn nth_newest_execution(&mut self, instance: u64, nth: u32) -> Rows<Option<u64>>;

    /// Executions above `after` and below `below`, ascending, at most `limit`.
    fn executions_between(
        &mut self,
        instance: u64,
        after: u64,
        below: u64,
        limit: usize,
    ) -> Rows<Vec<ExecutionAge>>;

    /// Deletes the row of an execution, and nothing that belongs to it.
    fn delete_execution(&mut self, instance: u64, execution_id: u64) -> Rows<()>;
}
