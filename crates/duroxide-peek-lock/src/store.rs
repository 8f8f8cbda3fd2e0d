//! [`PeekLockStore`]: the trait that a store without transactions implements.

use duroxide_provider::{
    memory::record::{DeadLetterRecord, ExecutionRecord, InstanceRecord, Records},
    store::{EventRow, StoreFailure},
};

use crate::{QueueItem, QueueItemId, Step};

/// A store that writes one record at a time.
///
/// Every write is durable when it returns, and all or nothing, except that a crash may leave the first events of an append.
/// Every write may be repeated, and a repetition does only what is missing: after a crash the adapter does not know how far
/// it came. Nothing relates two writes to each other.
///
/// A failure is [`Retryable`](duroxide_provider::store::FailureClass::Retryable) or
/// [`Permanent`](duroxide_provider::store::FailureClass::Permanent) if the write has not happened, and
/// [`OutcomeUnknown`](duroxide_provider::store::FailureClass::OutcomeUnknown) if it may have.
pub trait PeekLockStore: Send + 'static {
    /// Reads everything.
    ///
    /// # Errors
    /// If the store cannot be read, or holds something that is not a record.
    fn load(&mut self) -> Result<Stored, StoreFailure>;

    /// Whether the store knows that whoever used it before is gone. If so, locks from before are void, and their items
    /// are delivered again at once, with the attempt counted. If not, they are delivered again after their deadline.
    fn former_user_is_gone(&self) -> bool {
        false
    }

    /// Writes down steps that are about to be carried out. Replaces an earlier note.
    ///
    /// # Errors
    /// If it cannot be written.
    fn note_unfinished(&mut self, steps: &[Step]) -> Result<(), StoreFailure>;

    /// Removes the note.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn clear_unfinished(&mut self) -> Result<(), StoreFailure>;

    /// Stores an instance, or replaces its record.
    ///
    /// # Errors
    /// If it cannot be written.
    fn put_instance(&mut self, record: &InstanceRecord) -> Result<(), StoreFailure>;

    /// Appends events to an execution, in order. Events whose id is stored are skipped. An execution without events begins,
    /// which makes a continue-as-new repeatable.
    ///
    /// # Errors
    /// If they cannot be written.
    fn append(&mut self, instance: &str, execution_id: u64, events: &[EventRow]) -> Result<(), StoreFailure>;

    /// Stores an execution, or replaces its record. Its events stay.
    ///
    /// # Errors
    /// If it cannot be written.
    fn put_execution(&mut self, record: &ExecutionRecord) -> Result<(), StoreFailure>;

    /// Adds an item to its queue. An item with this id is replaced, never doubled.
    ///
    /// # Errors
    /// If it cannot be written.
    fn enqueue(&mut self, item: &QueueItem) -> Result<(), StoreFailure>;

    /// Locks an item until a deadline, and counts the attempt. The deadline of a message is that of its instance's lock. An
    /// instance whose lock holds all visible messages is locked by its record alone ([`Self::put_instance`]).
    ///
    /// # Errors
    /// If it cannot be written.
    fn peek_lock(&mut self, item: &QueueItem) -> Result<(), StoreFailure>;

    /// Gives an item back, visible at the time it says.
    ///
    /// # Errors
    /// If it cannot be written.
    fn abandon(&mut self, item: &QueueItem) -> Result<(), StoreFailure>;

    /// Removes an item from its queue. One that is gone is no error.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn ack(&mut self, item: &QueueItemId) -> Result<(), StoreFailure>;

    /// Stores a dead letter.
    ///
    /// # Errors
    /// If it cannot be written.
    fn put_dead_letter(&mut self, record: &DeadLetterRecord) -> Result<(), StoreFailure>;

    /// Removes a dead letter. One that is gone is no error.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove_dead_letter(&mut self, number: u64) -> Result<(), StoreFailure>;

    /// Removes an execution with its events. One that is gone is no error.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove_execution(&mut self, instance: &str, execution_id: u64) -> Result<(), StoreFailure>;

    /// Removes an instance with its executions and queue items. One that is gone is no error.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove_instance(&mut self, instance: &str) -> Result<(), StoreFailure>;
}

/// Everything a store holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stored {
    /// The rows.
    pub records: Records,
    /// Steps that were written down and not cleared: some of them may not have been carried out.
    pub unfinished: Vec<Step>,
}
