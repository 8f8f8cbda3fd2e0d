//! The rows that deleting and pruning read.

use duroxide_core::Timestamp;

use super::InstanceRow;

/// Rows of a deleted instance or a pruned execution that are still to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removal {
    /// The deleted instance.
    pub instance: u64,
    /// Only this execution of it.
    pub execution_id: Option<u64>,
}

/// An instance with its children.
#[derive(Debug, Clone)]
pub struct Family {
    /// The instance.
    pub row: InstanceRow,
    /// The numbers of the instances whose parent it is, ascending.
    pub children: Vec<u64>,
}

/// An execution as pruning sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionAge {
    /// The instance.
    pub instance: u64,
    /// Its number.
    pub execution_id: u64,
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`.
    pub status: String,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
}
