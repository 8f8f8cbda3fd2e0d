//! [`InProgress`]: the user code that runs right now.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use crate::env::{lock, wait_for};

/// User code that runs right now, each piece with a description. A shutdown logs the code that it waits for.
#[derive(Debug)]
pub(crate) struct InProgress<T> {
    entries: Mutex<Entries<T>>,
    ended: Notify,
}

#[derive(Debug)]
struct Entries<T> {
    next: u64,
    descriptions: BTreeMap<u64, T>,
}

/// A piece of running user code. Dropping the guard removes its entry.
#[derive(Debug)]
pub(crate) struct InProgressGuard<T> {
    all: Arc<InProgress<T>>,
    number: u64,
}

impl<T> Default for InProgress<T> {
    fn default() -> Self {
        let entries = Entries { next: 0, descriptions: BTreeMap::new() };
        Self { entries: Mutex::new(entries), ended: Notify::new() }
    }
}

impl<T: Clone> InProgress<T> {
    pub(crate) fn begin(self: &Arc<Self>, description: T) -> InProgressGuard<T> {
        let mut entries = lock(&self.entries);
        let number = entries.next;
        entries.next += 1;
        entries.descriptions.insert(number, description);
        InProgressGuard { all: Arc::clone(self), number }
    }

    pub(crate) fn list(&self) -> Vec<T> {
        lock(&self.entries).descriptions.values().cloned().collect()
    }

    /// Resolves when nothing is in progress.
    pub(crate) async fn ended(&self) {
        wait_for(&self.ended, || lock(&self.entries).descriptions.is_empty()).await;
    }
}

impl<T> Drop for InProgressGuard<T> {
    fn drop(&mut self) {
        lock(&self.all.entries).descriptions.remove(&self.number);
        self.all.ended.notify_waiters();
    }
}
