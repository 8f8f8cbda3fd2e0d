//! [`SlotGuard`]: the slot that a running item occupies.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use duroxide_provider::{Demand, TellOfDemand, Wanted};
use tokio::sync::Notify;

use super::slots::Slots;
use crate::{
    dispatch::timing::{UNSTARTED_IN_SLOT_MAX, UNSTARTED_MAX},
    env::{Env, Moment, lock},
};

/// The slots of a queue, shared by its loop and the running items.
pub(super) struct SharedSlots {
    slots: Mutex<Slots>,
    changed: Notify,
    /// Notifies the store that the demand of the waiting fetch rose.
    tell_of_demand: Mutex<Option<TellOfDemand>>,
    env: Arc<dyn Env>,
}

impl SharedSlots {
    pub(super) fn new(slots: Slots, env: &Arc<dyn Env>) -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::new(slots),
            changed: Notify::new(),
            tell_of_demand: Mutex::default(),
            env: Arc::clone(env),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Slots> {
        lock(&self.slots)
    }

    /// Resolves when a slot has become free, or when items may start again after waiting for the store.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes a slot for an item: see [`Slots::take`].
    pub(super) fn take(self: &Arc<Self>, bound: Option<usize>) -> Option<SlotGuard> {
        let mut slots = self.lock();
        let slot = slots.take(bound)?;
        let is_extra = slots.is_extra(slot);
        drop(slots);
        let taken = self.env.moment();
        Some(SlotGuard { slots: Arc::clone(self), slot, is_extra, taken, phase: SlotPhase::Running })
    }

    /// Notifies the loop that a slot may have become free if the loop waits for one, and the store if its waiting fetch
    /// knows of no free slot.
    fn tell_of_change(&self) {
        let now = self.env.moment();
        let (rises, is_awaited) = {
            let mut slots = self.lock();
            (slots.demand_has_risen(now), slots.is_slot_awaited())
        };
        if rises && let Some(tell) = &*lock(&self.tell_of_demand) {
            tell();
        }
        if is_awaited {
            self.changed.notify_one();
        }
    }
}

impl Demand for SharedSlots {
    fn wanted(&self) -> Wanted {
        let now = self.env.moment();
        self.lock().ask(now)
    }

    fn on_rise(&self, tell: TellOfDemand) {
        *lock(&self.tell_of_demand) = Some(tell);
    }
}

impl fmt::Debug for SharedSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSlots").finish_non_exhaustive()
    }
}

/// The slot of one item. Dropping the guard frees the slot.
pub(crate) struct SlotGuard {
    slots: Arc<SharedSlots>,
    slot: usize,
    is_extra: bool,
    taken: Moment,
    phase: SlotPhase,
}

#[derive(Debug, Clone, Copy)]
enum SlotPhase {
    Running,
    Committing { bytes: usize },
}

impl SlotGuard {
    /// A guard for an item outside of the queues that runs no user code.
    pub(crate) fn detached(env: &Arc<dyn Env>) -> Option<Self> {
        SharedSlots::new(Slots::new(1, 0), env).take(None)
    }

    /// The slot's number.
    pub(crate) fn number(&self) -> usize {
        self.slot
    }

    /// How long the item may wait for a thread.
    pub(crate) fn unstarted_max(&self) -> Duration {
        if self.is_extra { UNSTARTED_MAX } else { UNSTARTED_IN_SLOT_MAX }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.slots.env.moment().since(self.taken)
    }

    /// Frees the slot for the next item, because user code is done and the result goes to the store.
    pub(crate) fn submit(&mut self, bytes: usize) {
        if let SlotPhase::Running = self.phase {
            self.phase = SlotPhase::Committing { bytes };
            let now = self.slots.env.moment();
            self.slots.lock().submit(self.slot, bytes, now.since(self.taken), now);
            self.slots.tell_of_change();
        }
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut slots = self.slots.lock();
        let is_news = match self.phase {
            SlotPhase::Running => {
                slots.release(self.slot);
                true
            }
            // The slot has been free since the result was submitted.
            SlotPhase::Committing { bytes } => slots.committed(bytes),
        };
        drop(slots);
        if is_news {
            self.slots.tell_of_change();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::env::RealEnv;

    fn slots() -> Arc<SharedSlots> {
        let env: Arc<dyn Env> = Arc::new(RealEnv::new(1));
        SharedSlots::new(Slots::new(1, 0), &env)
    }

    fn has_changed(slots: &SharedSlots) -> bool {
        slots.changed().now_or_never().is_some()
    }

    #[tokio::test]
    async fn the_loop_is_notified_when_a_slot_becomes_free_and_not_again_when_the_store_answers() {
        let slots = slots();
        let mut slot = slots.take(None).unwrap();
        assert!(!has_changed(&slots));
        slot.submit(1);
        assert!(has_changed(&slots));
        drop(slot);
        assert!(!has_changed(&slots));
        drop(slots.take(None).unwrap());
        assert!(has_changed(&slots), "it ended without a result");
    }

    #[tokio::test]
    async fn the_loop_is_not_woken_for_a_slot_that_it_does_not_wait_for() {
        let slots = slots();
        slots.lock().begin_shared_fetch(Moment::new(Duration::ZERO)).unwrap();
        slots.lock().sleep(false);
        drop(slots.take(None).unwrap());
        assert!(!has_changed(&slots));
        slots.lock().await_free_slot();
        drop(slots.take(None).unwrap());
        assert!(has_changed(&slots));
    }

    #[tokio::test]
    async fn the_loop_is_notified_of_the_answer_that_everything_waited_for() {
        let slots = slots();
        let mut slot = slots.take(None).unwrap();
        slot.submit(usize::MAX);
        assert!(has_changed(&slots));
        assert!(slots.take(None).is_none());
        drop(slot);
        assert!(has_changed(&slots));
        assert!(slots.take(None).is_some());
    }
}
