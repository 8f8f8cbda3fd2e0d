//! The dispatch loop of one queue.
//!
//! The loop keeps fetches waiting in the store while slots are free, runs each fetched item in a task of its own, and
//! abandons items that find no slot in time.

mod activities;
mod orchestrations;
mod sessions;
mod slot_guard;
mod slots;

pub(super) use activities::{Activities, ClaimedActivity, session_owners, worker_id};
pub(super) use orchestrations::{ClaimedInstance, Orchestrations};
pub(super) use sessions::InFlight;
pub(super) use slot_guard::SlotGuard;

use std::{
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    future::Future,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use duroxide_provider::ProviderError;
use futures_util::{FutureExt, StreamExt, future::join_all, stream::FuturesUnordered};
use tracing::{error, warn};

use super::{
    locks::LockKind,
    node::Node,
    timing::{fetch_backoff, unstarted_max},
};
use crate::env::{BoxFuture, Env, Moment};

use slot_guard::SharedSlots;
use slots::{Slots, Wanted};

/// One of the two queues, as its dispatch loop sees it.
pub(crate) trait WorkQueue: Send + Sync + 'static {
    /// An item that this node has claimed.
    type Claim: Send + 'static;

    /// For logs.
    const NAME: &'static str;

    const LOCK: LockKind;

    fn lock_token(claim: &Self::Claim) -> &str;

    /// Whether the item was claimed before without being finished.
    fn was_attempted(claim: &Self::Claim) -> bool;

    fn node(&self) -> &Arc<Node>;

    fn slots(&self) -> usize;

    /// How many items may run without a slot while items are quick. Only for a queue whose user code is bounded by
    /// something else than slots.
    fn overflow_max(&self) -> usize;

    /// Whether one fetch serves all slots that have no fetch of their own.
    fn has_shared_fetch(&self) -> bool;

    /// The free slots that have a fetch of their own, lowest first. While such a fetch waits, its slot is reserved for
    /// the items it returns.
    fn slots_with_own_fetch(&self, slots: &Slots) -> Vec<usize>;

    /// Resolves when more may be fetched than before, for a reason other than a free slot.
    fn changed(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Fetches for one slot, or for all slots if `slot` is `None`.
    fn fetch(
        &self,
        slot: Option<usize>,
        wanted: Wanted,
    ) -> BoxFuture<Result<Vec<Self::Claim>, ProviderError>>;

    /// Records that a fetch returned this claim. Returns the slot that must run the claim, if only one slot may.
    fn receive(&self, claim: &Self::Claim, fetched_for: Option<usize>) -> Option<usize>;

    /// Prepares a claim that is about to run, before more is fetched.
    fn start(&self, _claim: &mut Self::Claim) {}

    /// Processes a claim that was fetched at `received`.
    fn run(
        self: Arc<Self>,
        claim: Self::Claim,
        received: Moment,
        slot: SlotGuard,
    ) -> impl Future<Output = ()> + Send + 'static;
}

/// Starts the loop of a queue, and restarts it if it panics. The slots outlive the restart.
pub(crate) fn start<Q: WorkQueue>(queue: Q) {
    if queue.slots() == 0 {
        return;
    }
    let queue = Arc::new(queue);
    let node = Arc::clone(queue.node());
    let slots = SharedSlots::new(Slots::new(queue.slots(), queue.overflow_max()), &node.env);
    node.work.spawn(Q::NAME, async move {
        let node = queue.node();
        while AssertUnwindSafe(QueueLoop::new(Arc::clone(&queue), Arc::clone(&slots)).run())
            .catch_unwind()
            .await
            .is_err()
        {
            error!(target: "duroxide::runtime", queue = Q::NAME, "a dispatch loop panicked; restarting it");
            node.env.sleep(fetch_backoff(1, true)).await;
        }
    });
}

struct QueueLoop<Q: WorkQueue> {
    queue: Arc<Q>,
    slots: Arc<SharedSlots>,
    queued: VecDeque<Queued<Q::Claim>>,
    /// The fetches of single slots.
    fetches: FuturesUnordered<BoxFuture<Fetched<Q::Claim>>>,
    shared_fetch: Option<BoxFuture<Fetched<Q::Claim>>>,
    /// For slots that became free while the shared fetch was waiting.
    extra_fetch: Option<BoxFuture<Fetched<Q::Claim>>>,
    /// The slots with a waiting fetch, and how many items each fetch could start at once. `None` is the shared fetch.
    fetching: BTreeMap<Option<usize>, usize>,
    /// Consecutive failed fetches.
    failures: Arc<AtomicU32>,
}

struct Queued<C> {
    claim: C,
    received: Moment,
    bound: Option<usize>,
}

struct Fetched<C> {
    slot: Option<usize>,
    claims: Vec<C>,
}

impl<Q: WorkQueue> QueueLoop<Q> {
    fn new(queue: Arc<Q>, slots: Arc<SharedSlots>) -> Self {
        Self {
            queue,
            slots,
            queued: VecDeque::new(),
            fetches: FuturesUnordered::new(),
            shared_fetch: None,
            extra_fetch: None,
            fetching: BTreeMap::new(),
            failures: Arc::default(),
        }
    }

    /// Runs until the node stops. Then drops the waiting fetches and abandons the items that have not started.
    async fn run(mut self) {
        let node = Arc::clone(self.queue.node());
        let (queue, slots) = (Arc::clone(&self.queue), Arc::clone(&self.slots));
        loop {
            self.start_queued();
            self.release_stale();
            self.start_fetches();
            let next_stale = self.next_stale();
            tokio::select! {
                biased;
                () = node.stopping.cancelled() => break,
                Some(fetched) = self.fetches.next(), if !self.fetches.is_empty() => self.receive(fetched),
                fetched = ready(&mut self.shared_fetch), if self.shared_fetch.is_some() => {
                    self.shared_fetch = None;
                    self.receive(fetched);
                }
                fetched = ready(&mut self.extra_fetch), if self.extra_fetch.is_some() => {
                    self.extra_fetch = None;
                    self.receive_extra(fetched.claims);
                }
                () = slots.changed() => {}
                () = queue.changed() => {}
                () = sleep_until(&node.env, next_stale), if next_stale.is_some() => {}
            }
        }
        self.fetches.clear();
        self.shared_fetch = None;
        self.extra_fetch = None;
        join_all(self.queued.drain(..).map(|queued| release::<Q>(Arc::clone(&node), queued.claim))).await;
    }

    fn receive(&mut self, fetched: Fetched<Q::Claim>) {
        self.fetching.remove(&fetched.slot);
        self.enqueue(fetched.claims, fetched.slot);
    }

    /// Enqueues the claims that still find a free slot: slots may have been taken while the fetch waited.
    fn receive_extra(&mut self, claims: Vec<Q::Claim>) {
        let free = self.slots.lock().free().saturating_sub(self.queued.len());
        let (kept, released) = split_by_free_slots(free, claims, Q::was_attempted);
        self.enqueue(kept, None);
        released.into_iter().for_each(|claim| self.release(claim));
    }

    fn enqueue(&mut self, claims: Vec<Q::Claim>, slot: Option<usize>) {
        let node = self.queue.node();
        let received = node.env.moment();
        for claim in claims {
            node.locks.insert(Q::lock_token(&claim), Q::LOCK);
            let bound = self.queue.receive(&claim, slot);
            let queued = Queued { claim, received, bound };
            // Its slot was free at the fetch, so the item need not wait behind items for other slots.
            if bound.is_some() { self.queued.push_front(queued) } else { self.queued.push_back(queued) }
        }
    }

    /// Starts the queued items that get a slot. Items behind one that waits for its own slot may start before it.
    fn start_queued(&mut self) {
        let mut skipped = Vec::new();
        while let Some(bound) = self.queued.front().map(|queued| queued.bound) {
            let slot = self.slots.take(bound, |slot| self.fetching.contains_key(&Some(slot)));
            if slot.is_none() && bound.is_none() {
                // No slot is free, and items bound to a slot are at the front. Scanning the rest of the queue for every
                // started item would cost quadratic time.
                break;
            }
            let Some(mut queued) = self.queued.pop_front() else { break };
            match slot {
                Some(slot) => {
                    self.queue.start(&mut queued.claim);
                    let item = Arc::clone(&self.queue).run(queued.claim, queued.received, slot);
                    self.queue.node().work.spawn(Q::NAME, item);
                }
                None => skipped.push(queued),
            }
        }
        skipped.into_iter().rev().for_each(|queued| self.queued.push_front(queued));
    }

    /// Abandons prefetched items that found no slot in time.
    fn release_stale(&mut self) {
        let now = self.queue.node().env.moment();
        while self.next_stale().is_some_and(|stale| stale <= now)
            && let Some(queued) = self.queued.pop_front()
        {
            self.release(queued.claim);
        }
    }

    fn release(&self, claim: Q::Claim) {
        let node = self.queue.node();
        node.work.spawn(Q::NAME, release::<Q>(Arc::clone(node), claim));
    }

    /// When the item that has waited longest is abandoned.
    fn next_stale(&self) -> Option<Moment> {
        let keep = unstarted_max(self.queue.node().lease_terms(Q::LOCK).interval);
        self.queued.front().map(|queued| queued.received.after(keep))
    }

    /// Keeps a fetch waiting for every free slot, and prefetches.
    fn start_fetches(&mut self) {
        let now = self.queue.node().env.moment();
        let (wanted, free, slots_with_own_fetch) = {
            let mut slots = self.slots.lock();
            let wanted = slots.wanted(self.queued.len(), now);
            if wanted.max == 0 {
                return;
            }
            (wanted, slots.free(), self.queue.slots_with_own_fetch(&slots))
        };
        let shared = self.queue.has_shared_fetch();
        let ahead = if shared { 0 } else { (wanted.max - wanted.free) / free.max(1) };
        for slot in slots_with_own_fetch.into_iter().take(wanted.free) {
            self.fetch(Some(slot), Wanted { max: 1 + ahead, free: 1 });
        }
        if shared {
            let own = self.free_slots_with_a_fetch();
            self.shared_fetch(Wanted {
                max: wanted.max.saturating_sub(own),
                free: wanted.free.saturating_sub(own),
            });
        }
    }

    fn free_slots_with_a_fetch(&self) -> usize {
        let slots = self.slots.lock();
        self.fetching.keys().flatten().filter(|slot| slots.is_free(**slot)).count()
    }

    fn shared_fetch(&mut self, wanted: Wanted) {
        if wanted.free > 0 && self.fetching.get(&None) == Some(&0) {
            // The waiting shared fetch only prefetches, and a store never hands out items that were attempted before to
            // a prefetch: such an item could wait forever beside a free slot. The shared fetch is not cancelled,
            // because it may have been answered already, and everything it returns would have to be abandoned.
            self.extra_fetch(wanted.free);
        } else if wanted.max > 0 {
            self.fetch(None, wanted);
        }
    }

    fn extra_fetch(&mut self, free: usize) {
        if self.extra_fetch.is_none() {
            let wanted = Wanted { max: free, free };
            let fetch = fetch_with_backoff(Arc::clone(&self.queue), Arc::clone(&self.failures), None, wanted);
            self.extra_fetch = Some(Box::pin(fetch));
        }
    }

    fn fetch(&mut self, slot: Option<usize>, wanted: Wanted) {
        if let Entry::Vacant(vacant) = self.fetching.entry(slot) {
            vacant.insert(wanted.free);
            self.slots.lock().fetched();
            let fetch = fetch_with_backoff(Arc::clone(&self.queue), Arc::clone(&self.failures), slot, wanted);
            match slot {
                Some(_) => self.fetches.push(Box::pin(fetch)),
                None => self.shared_fetch = Some(Box::pin(fetch)),
            }
        }
    }
}

/// Splits claims into those to enqueue and those to abandon. An item that was attempted before does not wait for a
/// slot: it may crash the process, and must not be charged another attempt without having run.
fn split_by_free_slots<C>(
    mut free: usize,
    claims: Vec<C>,
    was_attempted: impl Fn(&C) -> bool,
) -> (Vec<C>, Vec<C>) {
    claims.into_iter().partition(|claim| {
        let stays = free > 0 || !was_attempted(claim);
        free = free.saturating_sub(usize::from(stays));
        stays
    })
}

/// Fetches, and sleeps after an error and after an empty answer that came before the long poll ended.
async fn fetch_with_backoff<Q: WorkQueue>(
    queue: Arc<Q>,
    failures: Arc<AtomicU32>,
    slot: Option<usize>,
    wanted: Wanted,
) -> Fetched<Q::Claim> {
    let node = queue.node();
    let asked = node.env.moment();
    let claims = match queue.fetch(slot, wanted).await {
        Ok(claims) => {
            failures.store(0, Ordering::Relaxed);
            let early = node.env.moment().since(asked) < node.options.dispatcher_long_poll_timeout;
            if claims.is_empty() && early {
                node.env.sleep(node.options.dispatcher_min_poll_interval).await;
            }
            claims
        }
        Err(error) => {
            let failures = failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
            let pause = fetch_backoff(failures, error.is_retryable());
            warn!(target: "duroxide::runtime", queue = Q::NAME, %error, failures, "fetch failed");
            node.env.sleep(pause).await;
            Vec::new()
        }
    };
    Fetched { slot, claims }
}

/// Abandons a claim that never started, without charging an attempt.
async fn release<Q: WorkQueue>(node: Arc<Node>, claim: Q::Claim) {
    node.abandon(Q::LOCK, Q::lock_token(&claim), None, true).await;
}

/// Waits for the future, or forever if there is none.
async fn ready<T>(future: &mut Option<BoxFuture<T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(env: &Arc<dyn Env>, moment: Option<Moment>) {
    if let Some(moment) = moment {
        env.sleep_until(moment).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_attempted_before_stays_only_beside_a_free_slot() {
        let was_attempted = |attempts: &u32| *attempts > 1;
        assert_eq!(split_by_free_slots(2, vec![2, 1, 3], was_attempted), (vec![2, 1], vec![3]));
        assert_eq!(split_by_free_slots(3, vec![2, 1, 3], was_attempted), (vec![2, 1, 3], vec![]));
        assert_eq!(split_by_free_slots(0, vec![1, 2, 1], was_attempted), (vec![1, 1], vec![2]));
    }
}
