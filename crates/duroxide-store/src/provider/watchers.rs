//! Clients that wait for an instance to change.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use duroxide_provider::{
    InstanceWatch, StatusSnapshot,
    store::{Answer, Op, StoredStatus, Watched},
};
use tokio::sync::Notify;

use super::decode::decode_status;

/// How many instances are remembered as begun. Beyond that, all are forgotten; a client that waits for one then reads its
/// status.
const BEGUN_MAX: usize = 16_384;

/// The watches of all clients, by instance.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    state: Mutex<WatcherState>,
}

#[derive(Debug, Default)]
struct WatcherState {
    /// An entry lives exactly as long as its [`Watch`].
    by_instance: HashMap<String, Vec<Arc<Signal>>>,
    /// Instances that this process has begun and that have not ended. Cleared when another process changes the store, because
    /// that process may have ended any of them.
    begun: HashSet<String>,
}

/// One client's watch of one instance.
#[derive(Debug)]
pub(crate) struct Watch {
    instance: String,
    has_not_ended: bool,
    signal: Arc<Signal>,
    watchers: Arc<Watchers>,
}

/// Notifies one watch.
#[derive(Debug, Default)]
struct Signal {
    changed: Notify,
    /// The status of the instance since the last change, if the change reported it.
    end: Mutex<Option<Arc<StoredStatus>>>,
}

impl Watchers {
    /// Registers a watch. It is notified of all changes from now on, whether the client waits at that moment or not.
    pub(crate) fn watch(self: &Arc<Self>, instance: &str) -> Watch {
        let signal = Arc::new(Signal::default());
        let mut state = self.lock();
        state.by_instance.entry(instance.to_owned()).or_default().push(Arc::clone(&signal));
        let has_not_ended = state.begun.contains(instance);
        Watch { instance: instance.to_owned(), has_not_ended, signal, watchers: Arc::clone(self) }
    }

    /// Notifies the watchers of the instances that a committed operation changed.
    pub(crate) fn tell_of(&self, op: &Op, answer: &Answer) {
        match op.profile().watched {
            Watched::Round(round) => {
                // Most rounds change nothing that a client can wait for, and each notified client reads the store.
                if let Answer::RoundCommitted { instance, ended } = answer
                    && round.is_worth_telling()
                {
                    self.tell(instance, || ended.as_ref().map(|ended| round.status_after(ended)));
                }
            }
            Watched::Begins(start) => {
                if matches!(answer, Answer::Begun) {
                    self.note_begun(&start.instance);
                }
            }
            Watched::Instance(instance) => self.tell(instance, || None),
            // These are rare.
            Watched::Unknown => self.tell_all(),
            Watched::Nothing => {}
        }
    }

    /// Recorded before the starter is answered, so the end cannot come first.
    fn note_begun(&self, instance: &str) {
        let begun = &mut self.lock().begun;
        if begun.len() >= BEGUN_MAX {
            begun.clear();
        }
        begun.insert(instance.to_owned());
    }

    /// Another process changed the store and may have ended any instance.
    pub(crate) fn forget_begun(&self) {
        self.lock().begun.clear();
    }

    /// How many instances are watched.
    pub(crate) fn count(&self) -> usize {
        self.lock().by_instance.len()
    }

    /// Whether any instance is watched.
    pub(crate) fn any(&self) -> bool {
        !self.lock().by_instance.is_empty()
    }

    /// Notifies the watchers of one instance, with its final status if it has ended. The status is copied only if there are
    /// watchers.
    fn tell(&self, instance: &str, end: impl FnOnce() -> Option<StoredStatus>) {
        let signals = self.signals_of(instance);
        if !signals.is_empty() {
            let end = end().map(Arc::new);
            signals.iter().for_each(|signal| signal.tell(end.clone()));
        }
    }

    /// The signals of an instance that has changed and may have ended. They are notified without the lock: a notified client
    /// drops its watch, and would wait for the lock.
    fn signals_of(&self, instance: &str) -> Vec<Arc<Signal>> {
        let mut state = self.lock();
        state.begun.remove(instance);
        state.by_instance.get(instance).cloned().unwrap_or_default()
    }

    /// Notifies all watchers, because the changed instances are unknown.
    pub(crate) fn tell_all(&self) {
        let mut state = self.lock();
        state.begun.clear();
        for signal in state.by_instance.values().flatten() {
            signal.tell(None);
        }
    }

    fn forget(&self, instance: &str, signal: &Arc<Signal>) {
        let by_instance = &mut self.lock().by_instance;
        if let Some(signals) = by_instance.get_mut(instance) {
            signals.retain(|other| !Arc::ptr_eq(other, signal));
            if signals.is_empty() {
                by_instance.remove(instance);
            }
        }
    }

    /// The maps are whole between any two statements, so a panic elsewhere does not spoil them.
    fn lock(&self) -> MutexGuard<'_, WatcherState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Signal {
    /// Notifies the watch. Replaces an end that was reported before: the instance may have been deleted since.
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
        // An end that cannot be decoded is read from the store, and that read fails.
        decode_status("told", Arc::unwrap_or_clone(end), &self.instance).ok()
    }

    fn has_not_ended(&self) -> bool {
        self.has_not_ended
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
        watchers.tell("a", || None);
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
    fn each_watch_gets_an_end_once() {
        let watchers = Arc::new(Watchers::default());
        let (mut one, mut other) = (watchers.watch("a"), watchers.watch("a"));
        assert_eq!(one.told(), None);
        watchers.tell("a", || Some(ended("half")));
        for watch in [&mut one, &mut other] {
            let told = watch.told().unwrap();
            assert_eq!((told.execution_id, told.custom_status_version), (1, 2));
            assert_eq!(told.custom_status.as_deref(), Some("half"));
            assert!(matches!(told.terminal_event.unwrap().kind, EventKind::OrchestrationCompleted { .. }));
            assert_eq!(watch.told(), None);
        }
    }

    #[test]
    fn nothing_is_copied_for_an_unwatched_instance() {
        let watchers = Arc::new(Watchers::default());
        let _watch = watchers.watch("a");
        watchers.tell("b", || panic!("nobody watches it"));
    }

    /// After it, the instance may be another of the same id, or none.
    #[test]
    fn a_later_change_replaces_an_unread_status() {
        let watchers = Arc::new(Watchers::default());
        let mut watch = watchers.watch("a");
        for tell in [|watchers: &Watchers| watchers.tell("a", || None), Watchers::tell_all] {
            watchers.tell("a", || Some(ended("half")));
            tell(&watchers);
            assert_eq!(watch.told(), None);
        }
    }

    #[test]
    fn an_end_that_cannot_be_decoded_is_left_to_a_read() {
        let watchers = Arc::new(Watchers::default());
        let mut watch = watchers.watch("a");
        let end = StoredStatus { terminal_event: Some("{".to_owned()), ..ended("half") };
        watchers.tell("a", || Some(end));
        assert_eq!(watch.told(), None);
    }

    #[test]
    fn an_instance_begun_here_counts_as_running_until_a_foreign_change() {
        let may_have_ended: [fn(&Watchers); 4] = [
            |watchers| watchers.tell("a", || Some(ended("half"))),
            |watchers| watchers.tell("a", || None),
            Watchers::tell_all,
            Watchers::forget_begun,
        ];
        for tell in may_have_ended {
            let watchers = Arc::new(Watchers::default());
            assert!(!watchers.watch("a").has_not_ended());
            watchers.note_begun("a");
            assert!(watchers.watch("a").has_not_ended());
            assert!(!watchers.watch("b").has_not_ended());
            tell(&watchers);
            assert!(!watchers.watch("a").has_not_ended());
        }
    }

    #[test]
    fn no_more_is_remembered_as_begun_than_fits() {
        let watchers = Arc::new(Watchers::default());
        for n in 0..=BEGUN_MAX {
            watchers.note_begun(&n.to_string());
        }
        assert_eq!(watchers.lock().begun.len(), 1);
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
