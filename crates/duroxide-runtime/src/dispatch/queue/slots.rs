//! [`Slots`]: which slots of a queue are free, and how many items to fetch for them.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use duroxide_provider::Wanted;

use crate::env::Moment;

/// Results that may be on their way to the store at the same time.
const COMMITTING_MAX: usize = 1_024;
/// Payload bytes of these results. A larger result goes alone.
const COMMITTING_BYTES_MAX: usize = 64 << 20;
/// Items fetched beyond the free slots, at most.
const PREFETCH_MAX: usize = 256;
/// The number of prefetched items follows the items finished in this time, or since the last fetch. The window is
/// longer than a slow disk takes to answer a fetch.
const PREFETCH_WINDOW: Duration = Duration::from_millis(25);
/// Nothing is prefetched after an item that ran longer than this.
const PREFETCH_RUN_TIME_MAX: Duration = Duration::from_millis(10);
/// Prefetches more items than were finished, so that the number grows while the store has work.
const PREFETCH_GROWTH: usize = 2;
/// Extra slots are used only after an item that ran at most this long.
const QUICK_MAX: Duration = Duration::from_millis(5);

/// The slots of one queue. A slot is the permission to run user code. It is free again as soon as the result is
/// submitted to the store, so that few slots can fill a group commit.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Free regular slots.
    free: BTreeSet<usize>,
    /// The number of regular slots. Extra slots have the numbers from here on.
    regular: usize,
    /// Free extra slots.
    free_extra: Vec<usize>,
    /// Slots with a waiting fetch of their own: its items run there.
    reserved: BTreeSet<usize>,
    /// Fetched items that wait for a slot.
    queued: usize,
    /// The demand that the waiting shared fetch knows; `None` if no shared fetch waits.
    asked: Option<Wanted>,
    /// Whether the dispatch loop has something to do when a slot becomes free.
    is_slot_awaited: bool,
    committing: usize,
    committing_bytes: usize,
    /// When items were finished, within the last window.
    finished: VecDeque<Moment>,
    /// Items finished since the last fetch. A slow disk must not make the window look empty.
    finished_since_fetch: usize,
    last_run_time: Duration,
}

impl Slots {
    pub(crate) fn new(regular: usize, extra: usize) -> Self {
        Self {
            free: (0..regular).collect(),
            regular,
            free_extra: (regular..regular + extra).rev().collect(),
            reserved: BTreeSet::new(),
            queued: 0,
            asked: None,
            is_slot_awaited: true,
            committing: 0,
            committing_bytes: 0,
            finished: VecDeque::new(),
            finished_since_fetch: 0,
            last_run_time: Duration::MAX,
        }
    }

    /// The number of free regular slots.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    pub(crate) fn is_free(&self, slot: usize) -> bool {
        self.free.contains(&slot)
    }

    /// The free regular slots, lowest first.
    pub(crate) fn free_ids(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.free.iter().copied()
    }

    pub(crate) fn is_reserved(&self, slot: usize) -> bool {
        self.reserved.contains(&slot)
    }

    /// Keeps this slot for the items of its own fetch, which has started.
    pub(crate) fn reserve(&mut self, slot: usize) {
        self.reserved.insert(slot);
        self.finished_since_fetch = 0;
    }

    /// The slot's own fetch has been answered.
    pub(crate) fn end_reservation(&mut self, slot: usize) {
        self.reserved.remove(&slot);
    }

    /// No fetch waits.
    pub(crate) fn end_all_fetches(&mut self) {
        self.reserved.clear();
        self.asked = None;
    }

    /// Takes the slot `bound`, or any free slot that is not reserved. `None` if there is none, or if too many results
    /// are on their way to the store.
    ///
    /// While items are quick, they also get extra slots: so they keep the turn threads busy without a round trip through
    /// the dispatch loop. Slow items wait for a regular slot, so that they can be abandoned.
    pub(crate) fn take(&mut self, bound: Option<usize>) -> Option<usize> {
        if self.is_waiting_for_the_store() {
            return None;
        }
        let unreserved = || self.free_ids().find(|slot| !self.is_reserved(*slot));
        match bound.or_else(unreserved) {
            Some(slot) => self.free.take(&slot),
            None if self.last_run_time <= QUICK_MAX => self.free_extra.pop(),
            None => None,
        }
    }

    pub(crate) fn is_extra(&self, slot: usize) -> bool {
        slot >= self.regular
    }

    fn is_waiting_for_the_store(&self) -> bool {
        self.committing >= COMMITTING_MAX || self.committing_bytes >= COMMITTING_BYTES_MAX
    }

    /// Frees a slot.
    pub(crate) fn release(&mut self, slot: usize) {
        if self.is_extra(slot) {
            self.free_extra.push(slot);
        } else {
            self.free.insert(slot);
        }
    }

    /// Records that the item's result was submitted to the store, and frees its slot.
    pub(crate) fn submit(&mut self, slot: usize, bytes: usize, took: Duration, now: Moment) {
        self.release(slot);
        self.committing += 1;
        self.committing_bytes = self.committing_bytes.saturating_add(bytes);
        self.last_run_time = took;
        self.finished.push_back(now);
        self.finished_since_fetch += 1;
        self.forget_before(now);
    }

    /// Records that the store has answered for a submitted result. Returns whether items may start again that waited
    /// for it.
    pub(crate) fn committed(&mut self, bytes: usize) -> bool {
        let was_waiting = self.is_waiting_for_the_store();
        self.committing = self.committing.saturating_sub(1);
        self.committing_bytes = self.committing_bytes.saturating_sub(bytes);
        was_waiting && !self.is_waiting_for_the_store()
    }

    /// The dispatch loop runs, and wants to know of slots that become free meanwhile.
    pub(crate) fn await_free_slot(&mut self) {
        self.is_slot_awaited = true;
    }

    /// The dispatch loop sleeps. While a shared fetch waits, the store asks for the demand itself, so that a free slot
    /// changes nothing for the loop unless items are queued for one, or a slot has yet to get a fetch of its own.
    pub(crate) fn sleep(&mut self, lacks_own_fetch: bool) {
        self.is_slot_awaited = lacks_own_fetch || self.queued > 0 || self.asked.is_none();
    }

    pub(crate) fn is_slot_awaited(&self) -> bool {
        self.is_slot_awaited
    }

    pub(crate) fn set_queued(&mut self, items: usize) {
        self.queued = items;
    }

    /// How many items to fetch for slots that are not reserved. Long-running work is never prefetched.
    pub(crate) fn wanted(&mut self, now: Moment) -> Wanted {
        let free = self.free.len() - self.reserved.iter().filter(|slot| self.free.contains(slot)).count();
        let max = (free + self.prefetch(now)).saturating_sub(self.queued);
        Wanted { max, free_slots: free.saturating_sub(self.queued) }
    }

    /// Begins the shared fetch and returns its demand. `None` if one waits already, or if nothing is wanted.
    pub(crate) fn begin_shared_fetch(&mut self, now: Moment) -> Option<Wanted> {
        let wanted = self.wanted(now);
        if self.asked.is_some() || wanted.max == 0 {
            return None;
        }
        self.finished_since_fetch = 0;
        self.asked = Some(wanted);
        self.asked
    }

    /// The demand of the waiting shared fetch when it is served.
    pub(crate) fn ask(&mut self, now: Moment) -> Wanted {
        let wanted = self.wanted(now);
        self.asked = self.asked.map(|_| wanted);
        wanted
    }

    /// The shared fetch has been answered.
    pub(crate) fn end_shared_fetch(&mut self) {
        self.asked = None;
    }

    /// Whether the waiting shared fetch would now get items, or could start them, although its last known demand is
    /// lower.
    pub(crate) fn demand_has_risen(&mut self, now: Moment) -> bool {
        let Some(asked) = self.asked.filter(|asked| asked.free_slots == 0) else { return false };
        let wanted = self.wanted(now);
        let rises = wanted.free_slots > 0 || (asked.max == 0 && wanted.max > 0);
        if rises {
            self.asked = Some(wanted);
        }
        rises
    }

    fn prefetch(&mut self, now: Moment) -> usize {
        self.forget_before(now);
        if self.last_run_time > PREFETCH_RUN_TIME_MAX {
            return 0;
        }
        let finished = self.finished.len().max(self.finished_since_fetch);
        finished.saturating_mul(PREFETCH_GROWTH).min(PREFETCH_MAX)
    }

    fn forget_before(&mut self, now: Moment) {
        while self.finished.front().is_some_and(|at| now.since(*at) > PREFETCH_WINDOW)
            || self.finished.len() > PREFETCH_MAX
        {
            self.finished.pop_front();
        }
    }
}
