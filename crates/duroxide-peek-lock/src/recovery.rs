//! Finishes operations that a crash or a failed write interrupted, when a store is opened.

use duroxide_core::Timestamp;
use duroxide_provider::{
    memory::record::{Lease, Records, StoredInstance},
    store::StoreFailure,
};

use crate::{PeekLockStore, QueueItemId, WhichQueue, already_recorded};

/// Reads a store and finishes operations that a crash or a failed write interrupted.
pub(crate) fn recover(store: &mut impl PeekLockStore) -> Result<Records, StoreFailure> {
    let mut stored = store.load()?;
    if !stored.unfinished.is_empty() {
        for step in &stored.unfinished {
            step.run(store)?;
        }
        store.clear_unfinished()?;
        stored = store.load()?;
    }
    for instance in &mut stored.records.instances {
        for item in already_recorded(instance) {
            store.ack(&item)?;
            remove(instance, &item);
        }
    }
    Ok(stored.records)
}

fn remove(stored: &mut StoredInstance, item: &QueueItemId) {
    match item.queue {
        WhichQueue::Orchestrator => stored.messages.retain(|message| message.row.number != item.number),
        WhichQueue::Worker => stored.activities.retain(|activity| activity.row.number != item.number),
    }
}

/// Ends locks that hold no message any more, because all of them were acknowledged.
pub(crate) fn end_empty_locks(records: &mut Records) {
    for StoredInstance { instance, messages, .. } in &mut records.instances {
        let lock = &mut instance.row.lock;
        if !lock.as_ref().is_some_and(|lock| messages.iter().any(|message| lock.extent.holds(&message.row))) {
            *lock = None;
        }
    }
}

/// Ends all locks. Their attempts stay counted, because a locked item may have crashed the process. For messages the
/// next claim counts the attempt, as after any lease that ended.
pub(crate) fn end_locks(records: &mut Records) {
    for stored in &mut records.instances {
        stored.instance.row.lock.iter_mut().for_each(|lock| end(&mut lock.lease));
        stored.activities.iter_mut().filter_map(|activity| activity.row.lock.as_mut()).for_each(end);
    }
}

fn end(lease: &mut Lease) {
    lease.until = Timestamp::ZERO;
}
