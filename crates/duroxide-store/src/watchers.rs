//! Clients that wait for an instance to change.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use duroxide_provider::{InstanceWatch, StatusSnapshot, store::StoredStatus};
use tokio::sync::Notify;

use crate::decode::decode_status;

/// Who watches which instance. An entry lives exactly as long as its [`Watch`].
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    by_instance: Mutex<HashMap<String, Vec<Arc<Signal>>>>,
}

/// One client's watch of one instance.
#[derive(Debug)]
pub(crate) struct Watch {
    instance: String,
    signal: Arc<Signal>,
    watchers: Arc<Watchers>,
}

/// How a watch is told.
#[derive(Debug, Default)]
struct Signal {
    changed: Notify,
    /// How the instance has stood since the last change, if the one who told it knew.
    end: Mutex<Option<Arc<StoredStatus>>>,
}

impl Watchers {
    /// Registers a watch. Changes from now on are told, whether the client waits at that moment or not.
    pub(crate) fn watch(self: &Arc<Self>, instance: &str) -> Watch {
        let signal = Arc::new(Signal::default());
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
            signal.tell(None);
        }
    }

    /// Tells the watchers of one instance how it ended. Nothing is copied for nobody.
    pub(crate) fn tell_end(&self, instance: &str, status: impl FnOnce() -> StoredStatus) {
        if let Some(signals) = self.lock().get(instance) {
            let status = Arc::new(status());
            signals.iter().for_each(|signal| signal.tell(Some(Arc::clone(&status))));
        }
    }

    /// Tells everyone: nobody knows which instances changed.
    pub(crate) fn tell_all(&self) {
        for signal in self.lock().values().flatten() {
            signal.tell(None);
        }
    }

    fn forget(&self, instance: &str, signal: &Arc<Signal>) {
        let mut by_instance = self.lock();
        if let Some(signals) = by_instance.get_mut(instance) {
            signals.retain(|other| !Arc::ptr_eq(other, signal));
            if signals.is_empty() {
                by_instance.remove(instance);
            }
        }
    }

    /// The map is whole between any two statements, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Arc<Signal>>>> {
        self.by_instance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Signal {
    /// What was told before no longer counts: the instance may since have been deleted.
    fn tell(&self, end: Option<Arc<StoredStatus>>) {
        *self.end() = end;
        self.changed.notify_one();
    }

    fn end(&self) -> MutexGuard<'_, Option<Arc<StoredStatus>>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl InstanceWatch for Watch {
    async fn changed(&mut self) {
        // A `Notify` keeps one permit, so a change before this call counts.
        self.signal.changed.notified().await;
    }

    fn told(&mut self) -> Option<StatusSnapshot> {
        let end = self.signal.end().take()?;
        // What cannot be decoded is read again, and then it is an error.
        decode_status("told", Arc::unwrap_or_clone(end), &self.instance).ok()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watchers.forget(&self.instance, &self.signal);
    }
}

#[cfg(test)]
mod tests {
    use duroxide_core::{Event, EventKind};

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

    fn ended(custom_status: &str) -> StoredStatus {
        let kind = EventKind::OrchestrationCompleted { output: "done".to_owned() };
        let event = Event::with_event_id(3, "a", 1, None, kind);
        StoredStatus {
            execution_id: 1,
            terminal_event: Some(serde_json::to_string(&event).unwrap()),
            custom_status: Some(custom_status.to_owned()),
            custom_status_version: 2,
        }
    }

    #[test]
    fn an_end_is_told_once_to_each_who_watches() {
        let watchers = Arc::new(Watchers::default());
        let (mut one, mut other) = (watchers.watch("a"), watchers.watch("a"));
        assert_eq!(one.told(), None);
        watchers.tell_end("a", || ended("half"));
        for watch in [&mut one, &mut other] {
            let told = watch.told().unwrap();
            assert_eq!((told.execution_id, told.custom_status_version), (1, 2));
            assert_eq!(told.custom_status.as_deref(), Some("half"));
            assert!(matches!(told.terminal_event.unwrap().kind, EventKind::OrchestrationCompleted { .. }));
            assert_eq!(watch.told(), None);
        }
    }

    #[test]
    fn nothing_is_copied_for_an_instance_that_nobody_watches() {
        let watchers = Arc::new(Watchers::default());
        let _watch = watchers.watch("a");
        watchers.tell_end("b", || panic!("nobody watches it"));
    }

    /// After it, the instance may be another of the same id, or none.
    #[test]
    fn a_later_change_makes_what_was_told_void() {
        let watchers = Arc::new(Watchers::default());
        let mut watch = watchers.watch("a");
        for tell in [|watchers: &Watchers| watchers.tell("a"), Watchers::tell_all] {
            watchers.tell_end("a", || ended("half"));
            tell(&watchers);
            assert_eq!(watch.told(), None);
        }
    }

    #[test]
    fn an_end_that_cannot_be_decoded_is_left_to_a_read() {
        let watchers = Arc::new(Watchers::default());
        let mut watch = watchers.watch("a");
        watchers.tell_end("a", || StoredStatus { terminal_event: Some("{".to_owned()), ..ended("half") });
        assert_eq!(watch.told(), None);
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
