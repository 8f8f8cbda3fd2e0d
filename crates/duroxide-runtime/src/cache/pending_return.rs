//! Executions that return to the cache when their commit is answered.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use crate::env::{lock, wait_for};

/// The instances whose executions are in use while their rounds are committed.
#[derive(Default)]
pub(super) struct PendingReturns {
    /// The number of executions in use per instance: more than one only after a lock was lost.
    instances: Mutex<HashMap<Arc<str>, usize>>,
    ended: Notify,
}

/// An execution that is expected to return. Dropping this ends the expectation, whether it returned or not.
pub(crate) struct PendingReturn<'a> {
    all: &'a PendingReturns,
    instance: Arc<str>,
}

impl PendingReturns {
    pub(super) fn expect(&self, instance: &str) -> PendingReturn<'_> {
        let instance: Arc<str> = instance.into();
        *lock(&self.instances).entry(Arc::clone(&instance)).or_default() += 1;
        PendingReturn { all: self, instance }
    }

    /// Resolves when no execution of the instance is expected any more.
    pub(super) async fn returned(&self, instance: &str) {
        wait_for(&self.ended, || !lock(&self.instances).contains_key(instance)).await;
    }
}

impl Drop for PendingReturn<'_> {
    fn drop(&mut self) {
        let mut instances = lock(&self.all.instances);
        if let Some(out) = instances.get_mut(&self.instance) {
            *out -= 1;
            if *out == 0 {
                instances.remove(&self.instance);
            }
        }
        drop(instances);
        self.all.ended.notify_waiters();
    }
}
