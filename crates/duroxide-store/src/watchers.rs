//! Clients that wait for an instance to change.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use duroxide_provider::InstanceWatch;
use tokio::sync::Notify;

/// Who watches which instance. An entry lives exactly as long as its [`Watch`].
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    by_instance: Mutex<HashMap<String, Vec<Arc<Notify>>>>,
}

/// One client's watch of one instance.
#[derive(Debug)]
pub(crate) struct Watch {
    instance: String,
    signal: Arc<Notify>,
    watchers: Arc<Watchers>,
}

impl Watchers {
    /// Registers a watch. Changes from now on are told, whether the client waits at that moment or not.
    pub(crate) fn watch(self: &Arc<Self>, instance: &str) -> Watch {
        let signal = Arc::new(Notify::new());
        self.lock().entry(instance.to_owned()).or_default().push(Arc::clone(&signal));
        Watch { instance: instance.to_owned(), signal, watchers: Arc::clone(self) }
    }

    /// How many instances are watched.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Whether anyone watches anything.
    pub(crate) fn any(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Tells the watchers of one instance.
    pub(crate) fn tell(&self, instance: &str) {
        for signal in self.lock().get(instance).into_iter().flatten() {
            signal.notify_one();
        }
    }

    /// Tells everyone: nobody knows which instances changed.
    pub(crate) fn tell_all(&self) {
        for signal in self.lock().values().flatten() {
            signal.notify_one();
        }
    }

    fn forget(&self, instance: &str, signal: &Arc<Notify>) {
        let mut by_instance = self.lock();
        if let Some(signals) = by_instance.get_mut(instance) {
            signals.retain(|other| !Arc::ptr_eq(other, signal));
            if signals.is_empty() {
                by_instance.remove(instance);
            }
        }
    }

    /// The map is whole between any two statements, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Arc<Notify>>>> {
        self.by_instance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl InstanceWatch for Watch {
    async fn changed(&mut self) {
        // A `Notify` keeps one permit, so a change before this call counts.
        self.signal.notified().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watchers.forget(&self.instance, &self.signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_before_the_wait_counts() {
        let watchers = Arc::new(Watchers::default());
        let mut watch = watchers.watch("a");
        watchers.tell("a");
        watch.changed().await;
        watchers.tell_all();
        watch.changed().await;
    }

    #[test]
    fn a_dropped_watch_leaves_nothing_behind() {
        let watchers = Arc::new(Watchers::default());
        let first = watchers.watch("a");
        let second = watchers.watch("a");
        drop(first);
        assert!(watchers.any());
        drop(second);
        assert!(!watchers.any());
    }
}
