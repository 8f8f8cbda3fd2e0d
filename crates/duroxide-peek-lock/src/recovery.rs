//! Finishes what a crash or a failed write left unfinished, when a store is opened.

use duroxide_core::Timestamp;
use duroxide_provider::{
    memory::record::{LockRecord, Records, StoredInstance},
    store::StoreFailure,
};

use crate::{PeekLockStore, QueueItemId, WhichQueue, already_recorded};

/// Reads a store and finishes what a crash or a failed write left unfinished.
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
        WhichQueue::Orchestrator => stored.messages.retain(|message| message.number != item.number),
        WhichQueue::Worker => stored.activities.retain(|activity| activity.number != item.number),
    }
}

/// Ends locks of which only a part was stored: a lock of an instance and the messages it holds are written one by one.
pub(crate) fn end_partial_locks(records: &mut Records) {
    for stored in &mut records.instances {
        if !stored.messages.iter().any(|message| message.locked) {
            stored.instance.lock = None;
        }
        if stored.instance.lock.is_none() {
            stored.messages.iter_mut().for_each(|message| message.locked = false);
        }
    }
}

/// Ends all locks. Attempts stay counted: a lock may have ended because of what it held.
pub(crate) fn end_locks(records: &mut Records) {
    for stored in &mut records.instances {
        end(&mut stored.instance.lock);
        stored.activities.iter_mut().for_each(|activity| end(&mut activity.lock));
    }
}

fn end(lock: &mut Option<LockRecord>) {
    if let Some(lock) = lock {
        lock.until = Timestamp::ZERO;
    }
}
