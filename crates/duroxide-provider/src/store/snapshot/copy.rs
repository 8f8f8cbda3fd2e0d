//! A store whose whole content is copied elsewhere.

use super::StoreSnapshot;
use crate::{
    memory::record::{DeadLetterRecord, StoredInstance},
    store::{IntakeRow, StoreFailure},
};

/// A store whose whole content is copied elsewhere. No process writes to it while this value exists.
///
/// Leases are copied and end by themselves; the nodes that held them, and sessions, are not.
pub trait CopySource {
    /// Differs whenever something was written since: a copy that was interrupted goes on only if nothing was.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn state(&mut self) -> Result<String, StoreFailure>;

    /// How many instances and mailboxes there are.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn instance_count(&mut self) -> Result<u64, StoreFailure>;

    /// Instances with a higher number than this one, in the order of their numbers.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn instances_after(&mut self, number: u64, max: usize) -> Result<Vec<StoredInstance>, StoreFailure>;

    /// All dead letters.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn dead_letters(&mut self) -> Result<Vec<DeadLetterRecord>, StoreFailure>;

    /// The rows of the intake, oldest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn intake(&mut self) -> Result<Vec<IntakeRow>, StoreFailure>;

    /// A number that is higher than all in use.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn next_number(&mut self) -> Result<u64, StoreFailure>;

    /// The whole content as of time zero, so hidden rows stay hidden.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure>;
}
