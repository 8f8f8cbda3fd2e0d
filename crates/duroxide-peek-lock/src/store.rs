//! [`PeekLockStore`]: the trait that a store without transactions implements.

use duroxide_provider::{
    memory::record::{DeadLetterRecord, ExecutionRecord, InstanceRecord, Records},
    store::{EventRow, StoreFailure},
};

use crate::{QueueItem, QueueItemId, Step};

/// A store that writes one record at a time.
///
/// Every write is durable when it returns, and all or nothing, except that a crash during an append may leave only its
/// first events. Every write may be repeated, and a repetition writes only the missing parts, because after a crash the
/// adapter does not know which writes happened. No write depends on another one.
///
/// A failure is [`Retryable`](duroxide_provider::store::FailureClass::Retryable) or
/// [`Permanent`](duroxide_provider::store::FailureClass::Permanent) if the write has not happened, and
/// [`OutcomeUnknown`](duroxide_provider::store::FailureClass::OutcomeUnknown) if it may have.
pub trait PeekLockStore: Send + 'static {
    /// Reads the whole store.
    ///
    /// # Errors
    /// If the store cannot be read, or holds something that is not a record.
    fn load(&mut self) -> Result<Stored, StoreFailure>;

    /// Whether the process that used the store before has certainly ended. If so, its locks are void: the items are
    /// delivered again at once, with the attempt counted. If not, they are delivered again after their deadline.
    fn former_user_is_gone(&self) -> bool {
        false
    }

    /// Records steps before they are carried out. Replaces an earlier record.
    ///
    /// # Errors
    /// If it cannot be written.
    fn note_unfinished(&mut self, steps: &[Step]) -> Result<(), StoreFailure>;

    /// Removes the recorded steps.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn clear_unfinished(&mut self) -> Result<(), StoreFailure>;

    /// Stores an instance, or replaces its record.
    ///
    /// # Errors
    /// If it cannot be written.
    fn put_instance(&mut self, record: &InstanceRecord) -> Result<(), StoreFailure>;

    /// Appends events to an execution, in order. Skips events whose id is already stored. Begins the execution if it
    /// has no events yet, which makes a continue-as-new repeatable.
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

    /// Returns an item to its queue, visible from the time in its record.
    ///
    /// # Errors
    /// If it cannot be written.
    fn abandon(&mut self, item: &QueueItem) -> Result<(), StoreFailure>;

    /// Removes an item from its queue. A missing item is not an error.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn ack(&mut self, item: &QueueItemId) -> Result<(), StoreFailure>;

    /// Stores a dead letter.
    ///
    /// # Errors
    /// If it cannot be written.
    fn put_dead_letter(&mut self, record: &DeadLetterRecord) -> Result<(), StoreFailure>;

    /// Removes a dead letter. A missing one is not an error.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove_dead_letter(&mut self, number: u64) -> Result<(), StoreFailure>;

    /// Removes an execution with its events. A missing one is not an error.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove_execution(&mut self, instance: &str, execution_id: u64) -> Result<(), StoreFailure>;

    /// Removes an instance with its executions and queue items. A missing one is not an error.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove_instance(&mut self, instance: &str) -> Result<(), StoreFailure>;
}

/// The content of a store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stored {
    /// The rows.
    pub records: Records,
    /// Recorded steps that were not removed. Some of them may not have been carried out.
    pub unfinished: Vec<Step>,
}
