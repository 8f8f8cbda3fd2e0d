//! The dispatch loop of one queue.
//!
//! The loop keeps fetches waiting in the store while slots are free, runs the fetched items in a pool of tasks, and abandons
//! items that find no slot in time.

mod activities;
mod orchestrations;
mod sessions;
mod slot_guard;
mod slots;
mod task_pool;

pub(super) use activities::{Activities, ClaimedActivity, session_owners, worker_id};
pub(super) use orchestrations::{ClaimedInstance, Orchestrations};
pub(super) use sessions::InFlight;
pub(super) use slot_guard::SlotGuard;

use std::{
    collections::VecDeque,
    future::Future,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use duroxide_provider::{Demand, ProviderError, Wanted};
use futures_util::{FutureExt, StreamExt, future::join_all, stream::FuturesUnordered};
use tracing::{error, warn};

use super::{
    locks::LockKind,
    node::Node,
    timing::{fetch_backoff, unstarted_max},
};
use crate::env::{BoxFuture, Env, Moment};

use slot_guard::SharedSlots;
use slots::Slots;
use task_pool::TaskPool;

/// One of the two queues, as its dispatch loop sees it.
pub(crate) trait WorkQueue: Send + Sync + 'static {
    /// An item that this node has claimed.
    type Claim: Send + 'static;

    /// For logs.
    const NAME: &'static str;

    const LOCK: LockKind;

    fn lock_token(claim: &Self::Claim) -> &str;

    fn node(&self) -> &Arc<Node>;

    fn slots(&self) -> usize;

    /// Extra slots for quick items. Only for a queue whose user code has another bound than slots.
    fn extra_slots(&self) -> usize;

    /// Whether one fetch serves all slots that have no fetch of their own.
    fn has_shared_fetch(&self) -> bool;

    /// The free slots that have a fetch of their own, lowest first. While such a fetch waits, its slot is reserved for
    /// the items it returns.
    fn slots_with_own_fetch(&self, slots: &Slots) -> Vec<usize>;

    /// Whether a slot that is busy now gets a fetch of its own when it becomes free.
    fn lacks_own_fetch(&self, slots: &Slots) -> bool;

    /// Resolves when more may be fetched than before, for a reason other than a free slot.
    fn changed(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Fetches for one slot, or for all slots if `slot` is `None`; `demand` has the wanted number when the fetch is
    /// served.
    fn fetch(
        &self,
        slot: Option<usize>,
        wanted: Wanted,
        demand: Option<Arc<dyn Demand>>,
    ) -> BoxFuture<Result<Vec<Self::Claim>, ProviderError>>;

    /// Records that a fetch returned this claim. Returns the slot that must run the claim, if only one slot may.
    fn receive(&self, claim: &Self::Claim, fetched_for: Option<usize>) -> Option<usize>;

    /// Prepares a claim that is about to run, before more is fetched.
    fn start(&self, _claim: &mut Self::Claim) {}

    /// Processes a claim until it is committed, abandoned, or left to its lease.
    fn process(self: Arc<Self>, started: Started<Self::Claim>) -> impl Future<Output = ()> + Send + 'static;
}

/// A claim that has its slot.
pub(crate) struct Started<C> {
    claim: C,
    /// When its fetch was answered.
    received: Moment,
    slot: SlotGuard,
}

/// Starts the loop of a queue, and restarts it if it panics. The slots outlive the restart.
pub(crate) fn start<Q: WorkQueue>(queue: Q) {
    if queue.slots() == 0 {
        return;
    }
    let queue = Arc::new(queue);
    let node = Arc::clone(queue.node());
    let slots = SharedSlots::new(Slots::new(queue.slots(), queue.extra_slots()), &node.env);
    node.work.spawn(Q::NAME, async move {
        let node = queue.node();
        while AssertUnwindSafe(QueueLoop::new(Arc::clone(&queue), Arc::clone(&slots)).dispatch())
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
    tasks: TaskPool<Q>,
    queued: VecDeque<Queued<Q::Claim>>,
    /// At most one for each slot, and one for all slots together.
    fetches: FuturesUnordered<BoxFuture<Fetched<Q::Claim>>>,
    /// Consecutive failed fetches.
    failures: Arc<AtomicU32>,
}

struct Queued<C> {
    claim: C,
    received: Moment,
    bound: Option<usize>,
}

struct Fetched<C> {
    /// `None` for the shared fetch.
    slot: Option<usize>,
    claims: Vec<C>,
}

impl<Q: WorkQueue> QueueLoop<Q> {
    fn new(queue: Arc<Q>, slots: Arc<SharedSlots>) -> Self {
        slots.lock().end_all_fetches();
        let tasks = TaskPool::new(Arc::clone(&queue), queue.node().work.clone());
        Self {
            queue,
            slots,
            tasks,
            queued: VecDeque::new(),
            fetches: FuturesUnordered::new(),
            failures: Arc::default(),
        }
    }

    /// Runs until the node stops. Then drops the waiting fetches and abandons the items that have not started.
    async fn dispatch(mut self) {
        let node = Arc::clone(self.queue.node());
        let (queue, slots) = (Arc::clone(&self.queue), Arc::clone(&self.slots));
        loop {
            self.slots.lock().await_free_slot();
            self.start_queued();
            self.release_stale();
            self.start_fetches();
            let next_stale = self.next_stale();
            tokio::select! {
                biased;
                () = node.stopping.cancelled() => break,
                Some(fetched) = self.fetches.next(), if !self.fetches.is_empty() => {
                    self.receive(fetched);
                    // Polling the fetches once sends new ones to the store. Starting the received items takes time, in
                    // which the store should have a fetch to serve.
                    while let Some(Some(fetched)) = self.fetches.next().now_or_never() {
                        self.receive(fetched);
                    }
                }
                () = slots.changed() => {}
                () = queue.changed() => {}
                () = sleep_until(&node.env, next_stale), if next_stale.is_some() => {}
            }
        }
        self.fetches.clear();
        join_all(self.queued.drain(..).map(|queued| release::<Q>(Arc::clone(&node), queued.claim))).await;
    }

    /// Queues the items of a fetch, and starts the next shared fetch.
    fn receive(&mut self, fetched: Fetched<Q::Claim>) {
        let node = self.queue.node();
        let received = node.env.moment();
        for claim in fetched.claims {
            node.locks.insert(Q::lock_token(&claim), Q::LOCK);
            let bound = self.queue.receive(&claim, fetched.slot);
            let queued = Queued { claim, received, bound };
            // Its slot was free at the fetch, so the item need not wait behind items for other slots.
            if bound.is_some() { self.queued.push_front(queued) } else { self.queued.push_back(queued) }
        }
        let mut slots = self.slots.lock();
        slots.set_queued(self.queued.len());
        match fetched.slot {
            Some(slot) => slots.end_reservation(slot),
            None => slots.end_shared_fetch(),
        }
        self.start_shared_fetch(&mut slots);
    }

    /// Starts the queued items that get a slot. Items behind one that waits for its own slot may start before it.
    fn start_queued(&mut self) {
        let mut skipped = Vec::new();
        while let Some(bound) = self.queued.front().map(|queued| queued.bound) {
            let slot = self.slots.take(bound);
            if slot.is_none() && bound.is_none() {
                // No slot is free, and items bound to a slot are at the front. Scanning the rest of the queue for every
                // started item would cost quadratic time.
                break;
            }
            let Some(mut queued) = self.queued.pop_front() else { break };
            match slot {
                Some(slot) => {
                    self.queue.start(&mut queued.claim);
                    self.tasks.spawn(Started { claim: queued.claim, received: queued.received, slot });
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
            let node = self.queue.node();
            node.work.spawn(Q::NAME, release::<Q>(Arc::clone(node), queued.claim));
        }
    }

    /// When the item that has waited longest is abandoned.
    fn next_stale(&self) -> Option<Moment> {
        let keep = unstarted_max(self.queue.node().lease_terms(Q::LOCK).interval);
        self.queued.front().map(|queued| queued.received.after(keep))
    }

    /// Keeps a fetch waiting for every free slot, and prefetches.
    fn start_fetches(&self) {
        let now = self.queue.node().env.moment();
        let mut slots = self.slots.lock();
        slots.set_queued(self.queued.len());
        let Wanted { max, free_slots } = slots.wanted(now);
        let ahead = if self.queue.has_shared_fetch() { 0 } else { (max - free_slots) / slots.free().max(1) };
        let mut own = self.queue.slots_with_own_fetch(&slots);
        own.retain(|slot| !slots.is_reserved(*slot));
        for slot in own.into_iter().take(free_slots) {
            slots.reserve(slot);
            self.start_fetch(Some(slot), Wanted { max: 1 + ahead, free_slots: 1 });
        }
        self.start_shared_fetch(&mut slots);
        let lacks_own_fetch = self.queue.lacks_own_fetch(&slots);
        slots.sleep(lacks_own_fetch);
    }

    fn start_shared_fetch(&self, slots: &mut Slots) {
        if self.queue.has_shared_fetch()
            && let Some(wanted) = slots.begin_shared_fetch(self.queue.node().env.moment())
        {
            self.start_fetch(None, wanted);
        }
    }

    /// Starts a fetch. It sleeps after an error, and after an empty answer that came before the long poll ended.
    fn start_fetch(&self, slot: Option<usize>, wanted: Wanted) {
        // The items of a slot's own fetch may be for no other slot, so the release of another slot changes nothing.
        let demand = slot.is_none().then(|| Arc::clone(&self.slots) as Arc<dyn Demand>);
        let fetch = self.queue.fetch(slot, wanted, demand);
        let (node, failures) = (Arc::clone(self.queue.node()), Arc::clone(&self.failures));
        self.fetches.push(Box::pin(async move {
            let asked = node.env.moment();
            let claims = match fetch.await {
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
        }));
    }
}

/// Abandons a claim that never started, without charging an attempt.
async fn release<Q: WorkQueue>(node: Arc<Node>, claim: Q::Claim) {
    node.abandon(Q::LOCK, Q::lock_token(&claim), None, true).await;
}

async fn sleep_until(env: &Arc<dyn Env>, moment: Option<Moment>) {
    if let Some(moment) = moment {
        env.sleep_until(moment).await;
    }
}
