//! Instance rows.

use duroxide_core::Timestamp;

use crate::{
    InstanceFilter,
    rules::{Family, InstanceRow, Loaded, Rows},
};

/// Instance rows.
pub trait InstanceTable {
    /// The instance of this number.
    fn instance(&mut self, number: u64) -> Rows<Option<InstanceRow>>;

    /// The instances of these numbers, in this order; without those that do not exist.
    fn instances(&mut self, numbers: &[u64]) -> Rows<Vec<InstanceRow>> {
        numbers.iter().filter_map(|number| self.instance(*number).transpose()).collect()
    }

    /// The instance of this id.
    fn instance_named(&mut self, id: &str) -> Rows<Option<InstanceRow>>;

    /// The instance of this number with its current execution. A rule stores a loaded row again with [`Self::store`],
    /// or drops it unchanged.
    fn load(&mut self, number: u64) -> Rows<Option<Loaded>>;

    /// Writes an instance that was loaded. The execution was written by
    /// [`HistoryTable::write_execution`](super::HistoryTable::write_execution).
    fn store(&mut self, loaded: Loaded, change: InstanceChange) -> Rows<()>;

    /// Inserts an instance; returns whether its id was free.
    fn insert_instance(&mut self, row: &InstanceRow) -> Rows<bool>;

    /// Writes the columns of an instance that `change` names.
    fn update_instance(&mut self, row: &InstanceRow, change: InstanceChange) -> Rows<()>;

    /// Makes an instance ready that waited on its route for nothing but a message.
    fn wake_instance(&mut self, number: u64, ready: u64) -> Rows<()>;

    /// Does the same without reading the instance, if one write can check that it has this id, is running, unlocked and on its
    /// route, and waits: a shortcut of `rules/readiness.rs`. The caller inserts a message next that is visible at once, and
    /// neither a start nor a queue message. Returns whether it did. Tables without such a write return `false`.
    fn wake_if_waiting(&mut self, number: u64, id: &str, ready: u64) -> Rows<bool> {
        let _ = (number, id, ready);
        Ok(false)
    }

    /// Whether the next round of an instance that was loaded can be committed without reading anything else. If not, its turn
    /// does not run early: the transaction would stay open for the reads.
    fn is_at_hand(&mut self, number: u64) -> bool {
        let _ = number;
        true
    }

    /// Deletes the row of an instance, and nothing that belongs to it.
    fn delete_instance(&mut self, number: u64) -> Rows<()>;

    /// The instances of these numbers with their children, in this order; without those that do not exist. No instance of the answer
    /// gets another child in this transaction unless the rules make one.
    fn families(&mut self, numbers: &[u64]) -> Rows<Vec<Family>>;

    /// Instances that have a lock whose lease ends after this time, by number.
    fn leased_instances(&mut self, after: Timestamp) -> Rows<Vec<InstanceRow>>;

    /// Number and id of the instances that a bulk delete (ended roots) or, with `running_too`, a bulk prune visits, by
    /// number.
    fn bulk_selection(&mut self, filter: &InstanceFilter, running_too: bool) -> Rows<Vec<(u64, String)>>;
}

/// Which columns of an instance change besides its readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceChange {
    /// No other column.
    Readiness,
    /// The lock, the losses, and whether it may be poison.
    Lock,
    /// The columns of [`Self::Lock`], the current execution and the time of the last change.
    Round,
    /// The columns of [`Self::Round`], and the status.
    Status,
    /// All columns.
    Description,
}
