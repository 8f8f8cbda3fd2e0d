//! Fetches that wait for something to become ready in one queue.

mod early;

use std::{borrow::Cow, collections::VecDeque, sync::Arc, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::store::{
    Claimed, DeadLetterNote, FailureClass, HeldBack, Op, StoreFailure, WaitingFetch, bounds,
};

use super::refusals::Refusals;
use crate::{
    fetch::{FetchReply, QueueFetch},
    submit::{Delivery, SubmittedFetch},
};

/// The fetches that wait for one queue, oldest first.
#[derive(Debug)]
pub(crate) struct WaitingFetches<F: QueueFetch> {
    waiting: VecDeque<Waiting<F>>,
    /// Filters of fetches that took every ready item, and for which nothing can have become ready since. A new fetch with the
    /// same filter need not ask the store.
    exhausted: Vec<Arc<F>>,
    refusals: Refusals<F>,
    next_number: u64,
    /// Fetches that were answered while the transaction that serves them is open.
    answered_early: Vec<(u64, Arc<F>)>,
    /// Whether the fetch of a dispatch loop was answered since the last transaction, and the loop has not made the next one.
    /// The next transaction waits for it a moment, and resets this.
    pub(super) awaits_next_fetch: bool,
}

/// A waiting fetch.
#[derive(Debug)]
struct Waiting<F: QueueFetch> {
    request: Arc<F>,
    /// When the fetch stops waiting.
    deadline: Timestamp,
    reply: FetchReply<F>,
    number: u64,
    /// A transaction has tried to serve this fetch, and nothing can have become ready since.
    tried: bool,
    /// Operations were queued before this fetch, so a cached "nothing is ready" does not apply to it.
    behind_ops: bool,
}

/// Whether a fetch can get something from the next transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prospect {
    Some,
    None,
    /// Unknown before that transaction; the fetch joins the one after it.
    Later,
}

/// A fetch in a batch.
#[derive(Debug)]
pub(crate) struct Asked<F> {
    request: Arc<F>,
    was_tried: bool,
}

impl<F: Clone> Asked<F> {
    /// The fetches as an engine takes them.
    pub(crate) fn waiting(fetches: &[Self]) -> Vec<WaitingFetch<'_, F>> {
        let requests = fetches.iter().map(|fetch| (Cow::Borrowed(&*fetch.request), fetch.was_tried));
        requests.map(|(request, was_tried)| WaitingFetch { request, was_tried }).collect()
    }
}

/// The numbers of the fetches in a batch.
#[derive(Debug, Default)]
pub(crate) struct FetchNumbers {
    /// In the order of the batch.
    asked: Vec<u64>,
    /// The fetches that are left out of the batch, and get nothing.
    skipped: Vec<u64>,
}

/// The claims of a committed transaction for the fetches of one queue.
#[derive(Debug)]
pub(crate) struct Served<F: QueueFetch> {
    /// By number of the fetch: empty if the fetch got nothing, `None` if the engine was not asked for it.
    claims: Vec<(u64, Option<Claimed<F::Claim>>)>,
    /// Whether the transaction may have made something ready.
    readied: bool,
}

impl FetchNumbers {
    /// The number of the fetch at this place of the batch.
    pub(crate) fn at(&self, index: usize) -> Option<u64> {
        self.asked.get(index).copied()
    }

    /// Assigns the claims of a transaction to these fetches.
    pub(crate) fn served<F: QueueFetch>(
        self,
        claims: Vec<Option<Claimed<F::Claim>>>,
        readied: bool,
    ) -> Served<F> {
        let skipped = self.skipped.into_iter().map(|number| (number, Some(Claimed::default())));
        Served { claims: self.asked.into_iter().zip(claims).chain(skipped).collect(), readied }
    }
}

impl<F: QueueFetch> Default for WaitingFetches<F> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            exhausted: Vec::new(),
            refusals: Refusals::default(),
            next_number: 0,
            answered_early: Vec::new(),
            awaits_next_fetch: false,
        }
    }
}

impl<F: QueueFetch> WaitingFetches<F> {
    /// Adds a fetch. With `behind_ops`, operations wait that were submitted before the fetch and may make items ready for it.
    pub(crate) fn push(&mut self, fetch: SubmittedFetch<F>, behind_ops: bool) {
        let SubmittedFetch { request, deadline, reply } = fetch;
        let number = self.next_number;
        self.next_number += 1;
        self.awaits_next_fetch &= request.demand().is_none();
        let request = Arc::new(request);
        self.waiting.push_back(Waiting { request, deadline, reply, number, tried: false, behind_ops });
    }

    /// This fetch is answered. A dispatch loop makes the next one at once; other callers may not.
    pub(super) fn await_fetch_after(&mut self, answered: &F) {
        self.awaits_next_fetch |= answered.demand().is_some();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.refusals.is_empty()
    }

    /// Asks the callers how many items they want now.
    pub(crate) fn ask_demands(&mut self) {
        self.waiting.iter_mut().for_each(Waiting::ask_demand);
    }

    /// Forgets which fetches found nothing, because items may have become ready.
    pub(crate) fn refresh(&mut self) {
        self.exhausted.clear();
        for fetch in &mut self.waiting {
            fetch.tried = false;
        }
    }

    /// Whether a transaction may claim something for a waiting fetch.
    pub(crate) fn wants_claim(&self) -> bool {
        self.waiting.iter().any(|fetch| fetch.wants_claim(&self.exhausted))
    }

    /// Whether the deadline of a fetch has passed. No fetch expires before the store was asked once.
    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        self.refusals.next().is_some_and(|at| at <= now)
            || self.waiting.iter().any(|fetch| fetch.has_expired(now, &self.exhausted))
    }

    /// The earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.waiting.iter().map(|fetch| fetch.deadline).chain(self.refusals.next()).min()
    }

    /// Answers fetches whose deadline has passed without items, and drops those whose caller was dropped.
    pub(crate) fn expire(&mut self, now: Timestamp) {
        self.refusals.tell(now);
        for fetch in std::mem::take(&mut self.waiting) {
            if fetch.has_expired(now, &self.exhausted) {
                let _ = fetch.reply.send(Ok(Delivery::empty()));
            } else {
                self.waiting.push_back(fetch);
            }
        }
    }

    /// The clock was set back; waits do not become longer by it.
    pub(crate) fn shift_back(&mut self, by: Duration) {
        for fetch in &mut self.waiting {
            let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
            fetch.deadline = Timestamp::from_micros(fetch.deadline.as_micros().saturating_sub(micros));
        }
        self.refusals.tell_all();
    }

    /// Answers all fetches with this failure.
    pub(crate) fn fail_all(&mut self, failure: &StoreFailure) {
        self.refusals.tell_all();
        for fetch in self.waiting.drain(..) {
            let _ = fetch.reply.send(Err(failure.clone()));
        }
    }

    /// Answers the fetches that the next transaction would have served with this failure.
    pub(crate) fn fail_wanting(&mut self, failure: &StoreFailure) {
        for fetch in std::mem::take(&mut self.waiting) {
            if fetch.wants_claim(&self.exhausted) {
                let _ = fetch.reply.send(Err(failure.clone()));
            } else {
                self.waiting.push_back(fetch);
            }
        }
    }

    /// Answers one fetch with this failure: at once if a retry may succeed. A permanent failure is sent after a growing pause,
    /// at the latest at the deadline of the fetch, because its caller would ask again at once.
    pub(crate) fn fail(&mut self, number: u64, failure: StoreFailure, now: Timestamp) {
        let Some(fetch) = self.remove(number) else { return };
        // Only asking the store again shows whether it works again.
        self.exhausted.clear();
        if failure.class == FailureClass::Permanent {
            self.refusals.push(fetch.request, fetch.deadline, fetch.reply, failure, now);
        } else {
            let _ = fetch.reply.send(Err(failure));
        }
    }

    /// Why no item of this queue is claimed: fetches fail permanently, and no waiting fetch will try again.
    pub(crate) fn damage(&self, now: Timestamp) -> Option<&StoreFailure> {
        self.refusals.damage(now).filter(|_| !self.wants_claim())
    }

    /// Whether a fetch waits for an item that no node can run, to end it.
    pub(crate) fn has_fetch_to_end(&self) -> bool {
        self.waiting.iter().any(|fetch| fetch.request.is_to_end())
    }

    /// All fetches whose caller waits, oldest first. `longer_by` extends their leases while transactions are slow, `prospect`
    /// selects the fetches that can get an item.
    pub(crate) fn requests(
        &self,
        longer_by: impl Fn(Duration) -> Option<Duration>,
        prospect: impl Fn(&F) -> Prospect,
    ) -> (Vec<Asked<F>>, FetchNumbers) {
        // A first push would reserve room for four: of activities, more than the allocator's per-thread cache serves.
        let mut fetches = Vec::with_capacity(self.waiting.len());
        let mut numbers = FetchNumbers { asked: Vec::with_capacity(self.waiting.len()), skipped: Vec::new() };
        let asks = |fetch: &&Waiting<F>| fetch.request.wanted().max > 0 && !fetch.is_abandoned();
        for fetch in self.waiting.iter().filter(asks) {
            match prospect(&fetch.request) {
                Prospect::Some => {}
                Prospect::None => {
                    numbers.skipped.push(fetch.number);
                    continue;
                }
                Prospect::Later => continue,
            }
            let request = match longer_by(fetch.request.lock_timeout()) {
                Some(by) => Arc::new(fetch.request.with_longer_leases(by)),
                None => Arc::clone(&fetch.request),
            };
            let was_tried = fetch.tried || covers(&self.exhausted, &fetch.request);
            fetches.push(Asked { request, was_tried });
            numbers.asked.push(fetch.number);
        }
        (fetches, numbers)
    }

    /// Answers the fetches whose claims are committed.
    pub(crate) fn deliver(&mut self, served: Served<F>, delivery: impl Fn(Vec<F::Claim>) -> Delivery<F>) {
        if served.readied {
            self.refresh();
        }
        let answered_early = std::mem::take(&mut self.answered_early);
        for (number, claimed) in served.claims {
            if let Some((_, request)) = answered_early.iter().find(|(answered, _)| *answered == number) {
                self.deliver_rest(request, claimed.unwrap_or_default(), &delivery);
                continue;
            }
            let Some(place) = self.waiting.iter().position(|fetch| fetch.number == number) else { continue };
            let Some(fetch) = self.waiting.get_mut(place) else { continue };
            fetch.tried = true;
            let Some(claimed) = claimed else { continue };
            let request = Arc::clone(&fetch.request);
            self.refusals.end_streak(|| Some(Arc::clone(&request)));
            if !claimed.items.is_empty()
                && let Some(fetch) = self.waiting.remove(place)
            {
                self.await_fetch_after(&fetch.request);
                // If the caller was dropped meanwhile, the delivery is dropped unread and releases its claims.
                let _ = fetch.reply.send(Ok(delivery(claimed.items)));
            }
            if claimed.took_all {
                self.note_exhausted(request);
            }
        }
    }

    fn note_exhausted(&mut self, request: Arc<F>) {
        if self.exhausted.len() < bounds::EXHAUSTED_FILTERS_MAX && !covers(&self.exhausted, &request) {
            self.exhausted.push(request);
        }
    }

    /// Operations that renew the claims whose leases `is_late` selects.
    pub(crate) fn renewals<'a>(
        &'a self,
        served: &'a Served<F>,
        is_late: impl Fn(Duration) -> bool + 'a,
    ) -> impl Iterator<Item = Op> + 'a {
        let lease_of = |number: u64| {
            let found = self.waiting.iter().find(|fetch| fetch.number == number);
            found.map(|fetch| fetch.request.lock_timeout())
        };
        let late = served.claims.iter().filter_map(move |(number, claimed)| {
            lease_of(*number).filter(|lease| is_late(*lease)).zip(claimed.as_ref())
        });
        late.flat_map(|(lease, claimed)| claimed.items.iter().map(move |claim| F::renewal(claim, lease)))
    }

    fn remove(&mut self, number: u64) -> Option<Waiting<F>> {
        let place = self.waiting.iter().position(|fetch| fetch.number == number)?;
        self.waiting.remove(place)
    }
}

impl<F: QueueFetch> Waiting<F> {
    fn ask_demand(&mut self) {
        let Some(wanted) = self.request.demand().map(|demand| demand.wanted()) else { return };
        let before = self.request.wanted();
        if wanted != before {
            // A claim skips messages that were attempted before if no slot is free.
            self.tried &= wanted.free_slots <= before.free_slots;
            Arc::make_mut(&mut self.request).set_wanted(wanted);
        }
    }

    fn wants_claim(&self, exhausted: &[Arc<F>]) -> bool {
        let may_get_something = self.behind_ops || !covers(exhausted, &self.request);
        !self.tried && may_get_something && self.request.wanted().max > 0 && !self.is_abandoned()
    }

    fn has_expired(&self, now: Timestamp, exhausted: &[Arc<F>]) -> bool {
        self.is_abandoned() || (self.deadline <= now && !self.wants_claim(exhausted))
    }

    /// Whether the caller was dropped.
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }
}

impl<F: QueueFetch> Served<F> {
    /// Takes out the dead letters that the claims made, and the counts of items that they skipped.
    pub(crate) fn take_notes(&mut self, dead_letters: &mut Vec<DeadLetterNote>, held_back: &mut HeldBack) {
        for claimed in self.claims.iter_mut().filter_map(|(_, claimed)| claimed.as_mut()) {
            dead_letters.append(&mut claimed.dead_letters);
            held_back.add(std::mem::take(&mut claimed.held_back));
        }
    }

    /// The number of claims.
    pub(crate) fn len(&self) -> usize {
        self.claimed().map(|claimed| claimed.items.len()).sum()
    }

    fn claimed(&self) -> impl Iterator<Item = &Claimed<F::Claim>> + '_ {
        self.claims.iter().filter_map(|(_, claimed)| claimed.as_ref())
    }

    /// The operations that release all claims, after a commit with unknown outcome.
    pub(crate) fn releases(&self) -> impl Iterator<Item = Op> + '_ {
        self.claimed().flat_map(|claimed| &claimed.items).map(F::release)
    }
}

/// Whether a fetch with this filter is known to get nothing.
fn covers<F: QueueFetch>(exhausted: &[Arc<F>], fetch: &F) -> bool {
    exhausted.iter().any(|other| other.passes_the_same_as(fetch))
}
