//! [`Step`]: one write to a store, as a value that may be repeated.

use duroxide_provider::{
    memory::record::{ActivityRecord, DeadLetterRecord, ExecutionRecord, InstanceRecord, MessageRecord},
    store::{EventRow, StoreFailure},
};
use serde::{Deserialize, Serialize};

use crate::PeekLockStore;

/// One write to a store. Repeating a step changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// [`PeekLockStore::put_instance`]
    PutInstance(InstanceRecord),
    /// [`PeekLockStore::append`]
    Append {
        /// The id of the instance.
        instance: String,
        /// The execution, which begins with its first events.
        execution_id: u64,
        /// The events to append, in order of their ids.
        events: Vec<EventRow>,
    },
    /// [`PeekLockStore::put_execution`]
    PutExecution(ExecutionRecord),
    /// [`PeekLockStore::enqueue`]
    Enqueue(QueueItem),
    /// [`PeekLockStore::peek_lock`]
    PeekLock(QueueItem),
    /// [`PeekLockStore::abandon`]
    Abandon(QueueItem),
    /// [`PeekLockStore::ack`]
    Ack(QueueItemId),
    /// [`PeekLockStore::put_dead_letter`]
    PutDeadLetter(DeadLetterRecord),
    /// [`PeekLockStore::remove_dead_letter`]
    RemoveDeadLetter(u64),
    /// [`PeekLockStore::remove_execution`]
    RemoveExecution {
        /// The id of the instance.
        instance: String,
        /// The number of the execution, from 1.
        execution_id: u64,
    },
    /// [`PeekLockStore::remove_instance`]
    RemoveInstance(String),
}

/// An item of one of the two queues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum QueueItem {
    /// A message to an instance, in the orchestrator queue.
    Message(MessageRecord),
    /// An activity, in the worker queue.
    Activity(ActivityRecord),
}

/// Identifies a queue item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct QueueItemId {
    /// The queue of the item.
    pub queue: WhichQueue,
    /// The instance that the item belongs to.
    pub instance: String,
    /// The number of the item, unique within its queue.
    pub number: u64,
}

/// One of the two queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WhichQueue {
    /// Messages to instances.
    Orchestrator,
    /// Activities.
    Worker,
}

impl QueueItem {
    /// The id of this item.
    pub fn id(&self) -> QueueItemId {
        let (queue, instance, number) = match self {
            Self::Message(message) => (WhichQueue::Orchestrator, &message.instance, message.row.number),
            Self::Activity(activity) => {
                (WhichQueue::Worker, &activity.activity.instance, activity.row.number)
            }
        };
        QueueItemId { queue, instance: instance.clone(), number }
    }

    /// Whether the item's own record names a lock. A message can be locked without that: most instance locks hold all
    /// messages that were visible at the fetch, and only the instance's record names the lock.
    pub fn is_locked(&self) -> bool {
        match self {
            Self::Message(message) => message.row.mark.is_some(),
            Self::Activity(activity) => activity.row.lock.is_some(),
        }
    }
}

impl Step {
    /// Carries the step out.
    ///
    /// # Errors
    /// The store's failure.
    pub fn run(&self, store: &mut (impl PeekLockStore + ?Sized)) -> Result<(), StoreFailure> {
        match self {
            Self::PutInstance(record) => store.put_instance(record),
            Self::Append { instance, execution_id, events } => store.append(instance, *execution_id, events),
            Self::PutExecution(record) => store.put_execution(record),
            Self::Enqueue(item) => store.enqueue(item),
            Self::PeekLock(item) => store.peek_lock(item),
            Self::Abandon(item) => store.abandon(item),
            Self::Ack(id) => store.ack(id),
            Self::PutDeadLetter(record) => store.put_dead_letter(record),
            Self::RemoveDeadLetter(number) => store.remove_dead_letter(*number),
            Self::RemoveExecution { instance, execution_id } => {
                store.remove_execution(instance, *execution_id)
            }
            Self::RemoveInstance(instance) => store.remove_instance(instance),
        }
    }
}
