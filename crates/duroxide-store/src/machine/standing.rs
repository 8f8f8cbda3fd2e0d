//! Fetches that wait: standing orders for one queue.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::store::{FailureClass, Op, StoreFailure};

use super::refusals::Refusals;
use crate::{
    order::{FetchReply, Order},
    submit::{Delivery, Fetch},
};

/// How many filters are remembered as having found nothing. Fetches of one runtime all have the same.
const EXHAUSTED_MAX: usize = 8;

/// The fetches that wait for one queue, oldest first.
#[derive(Debug)]
pub(crate) struct StandingOrders<O: Order> {
    waiting: VecDeque<Standing<O>>,
    /// Orders that took all there was to take and for which nothing can have become ready since. A new fetch with
    /// the same filter need not ask the store.
    exhausted: Vec<Arc<O>>,
    refusals: Refusals<O>,
    next_number: u64,
}

/// One fetch that waits.
#[derive(Debug)]
struct Standing<O: Order> {
    /// What it asks for.
    order: Arc<O>,
    /// Until when it waits.
    deadline: Timestamp,
    reply: FetchReply<O>,
    number: u64,
    /// Whether the store was asked for it and nothing can have become ready since.
    tried: bool,
    /// Whether operations were handed in before it that the store had not carried out. What is known of the store does
    /// not count for it then.
    behind_ops: bool,
}

/// What a transaction has claimed for the standing orders of one queue. It becomes true with the commit.
#[derive(Debug)]
pub(crate) struct Served<O: Order> {
    /// Claims by order number; an order that got nothing is there with none.
    claims: Vec<(u64, Vec<O::Claim>)>,
    exhausted: Vec<Arc<O>>,
    /// Whether everything had to be looked at anew.
    refreshed: bool,
}

/// What the claim for one order took.
#[derive(Debug)]
pub(crate) struct Taken<O: Order> {
    pub(crate) claims: Vec<O::Claim>,
    /// Whether the engine says that nothing is left for it.
    pub(crate) was_all: bool,
}

impl<O: Order> Taken<O> {
    /// An order that got less than it asked for has emptied its queue, unless it may have been held up by its free
    /// slots: rows that were attempted before are left to orders with more of them.
    fn was_all(&self, order: &O) -> bool {
        let taken = self.claims.len();
        self.was_all || (taken < order.max() && taken < order.free_slots())
    }
}

impl<O: Order> Default for StandingOrders<O> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            exhausted: Vec::new(),
            refusals: Refusals::default(),
            next_number: 0,
        }
    }
}

impl<O: Order> StandingOrders<O> {
    /// Takes a fetch in. `behind_ops` says that operations wait which were handed in before it: it may get what they
    /// make ready.
    pub(crate) fn push(&mut self, fetch: Fetch<O>, behind_ops: bool) {
        let Fetch { order, deadline, reply } = fetch;
        let number = self.next_number;
        self.next_number += 1;
        let order = Arc::new(order);
        self.waiting.push_back(Standing { order, deadline, reply, number, tried: false, behind_ops });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.refusals.is_empty()
    }

    /// Something may have become ready: everyone is to be looked at anew.
    pub(crate) fn refresh(&mut self) {
        self.exhausted.clear();
        for standing in &mut self.waiting {
            standing.tried = false;
        }
    }

    /// Whether asking the store for someone may give something.
    pub(crate) fn wants_claim(&self) -> bool {
        self.waiting.iter().any(|standing| standing.wants_claim(&self.exhausted))
    }

    /// Whether someone's time is up. Nobody leaves before the store was asked once.
    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        self.refusals.next().is_some_and(|at| at <= now)
            || self.waiting.iter().any(|standing| standing.has_expired(now, &self.exhausted))
    }

    /// When the next one's time is up.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.waiting.iter().map(|standing| standing.deadline).chain(self.refusals.next()).min()
    }

    /// Answers those whose time is up with nothing, and forgets those whose caller has gone away.
    pub(crate) fn expire(&mut self, now: Timestamp) {
        self.refusals.tell(now);
        for standing in std::mem::take(&mut self.waiting) {
            if standing.has_expired(now, &self.exhausted) {
                let _ = standing.reply.send(Ok(Delivery::empty()));
            } else {
                self.waiting.push_back(standing);
            }
        }
    }

    /// The clock was set back; waits do not become longer by it.
    pub(crate) fn shift_back(&mut self, by: Duration) {
        for standing in &mut self.waiting {
            let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
            standing.deadline = Timestamp::from_micros(standing.deadline.as_micros().saturating_sub(micros));
        }
        self.refusals.tell_all();
    }

    /// Answers everyone with this failure.
    pub(crate) fn fail_all(&mut self, failure: &StoreFailure) {
        self.refusals.tell_all();
        for standing in self.waiting.drain(..) {
            let _ = standing.reply.send(Err(failure.clone()));
        }
    }

    /// Answers those the store was to be asked for with this failure.
    pub(crate) fn fail_wanting(&mut self, failure: &StoreFailure) {
        for standing in std::mem::take(&mut self.waiting) {
            if standing.wants_claim(&self.exhausted) {
                let _ = standing.reply.send(Err(failure.clone()));
            } else {
                self.waiting.push_back(standing);
            }
        }
    }

    /// Answers one order with this failure, at once if it may succeed when it is tried again. What fails for good is
    /// told after a pause that grows, at most when the order's time is up: its caller would only ask again.
    pub(crate) fn fail(&mut self, number: u64, failure: StoreFailure, now: Timestamp) {
        let Some(standing) = self.remove(number) else { return };
        if failure.class == FailureClass::Permanent {
            self.refusals.push(standing.order, standing.deadline, standing.reply, failure, now);
        } else {
            let _ = standing.reply.send(Err(failure));
        }
    }

    /// Why nothing is handed out from this queue: fetches fail for good, and none waits that could find it mended.
    pub(crate) fn damage(&self, now: Timestamp) -> Option<&StoreFailure> {
        self.refusals.damage(now).filter(|_| !self.wants_claim())
    }

    /// The transaction that claimed for these orders is committed: hands the claims over.
    pub(crate) fn settle(&mut self, served: Served<O>, deliver: impl Fn(Vec<O::Claim>) -> Delivery<O>) {
        if served.refreshed {
            self.refresh();
        }
        self.exhausted = served.exhausted;
        for (number, claims) in served.claims {
            self.refusals.end_streak(|| {
                let found = self.waiting.iter().find(|standing| standing.number == number);
                found.map(|standing| Arc::clone(&standing.order))
            });
            if claims.is_empty() {
                self.mark_tried(number);
            } else if let Some(standing) = self.remove(number) {
                // If the caller has gone away meanwhile, the delivery is dropped unread and releases its claims.
                let _ = standing.reply.send(Ok(deliver(claims)));
            }
        }
    }

    /// Operations that renew what was claimed for the orders with such leases.
    pub(crate) fn renewals<'a>(
        &'a self,
        served: &'a Served<O>,
        is_late: impl Fn(Duration) -> bool + 'a,
    ) -> impl Iterator<Item = Op> + 'a {
        let lease_of = |number: u64| {
            let found = self.waiting.iter().find(|standing| standing.number == number);
            found.map(|standing| standing.order.lock_timeout())
        };
        let late = served.claims.iter().filter_map(move |(number, claims)| {
            lease_of(*number).filter(|lease| is_late(*lease)).map(|lease| (lease, claims))
        });
        late.flat_map(|(lease, claims)| claims.iter().map(move |claim| O::renewal(claim, lease)))
    }

    /// Goes through the waiting orders, oldest first, and claims for each that may get something. `refreshed`
    /// says that the transaction itself may have made something ready.
    ///
    /// # Errors
    /// The number of the order whose claim failed.
    pub(crate) fn serve(
        &self,
        refreshed: bool,
        mut claim: impl FnMut(&O) -> Result<Taken<O>, StoreFailure>,
    ) -> Result<Served<O>, (u64, StoreFailure)> {
        let mut exhausted = if refreshed { Vec::new() } else { self.exhausted.clone() };
        let mut claims = Vec::new();
        for standing in &self.waiting {
            if standing.is_abandoned() || (standing.tried && !refreshed) {
                continue;
            }
            if covers(&exhausted, &standing.order) {
                claims.push((standing.number, Vec::new()));
                continue;
            }
            let taken = claim(&standing.order).map_err(|failure| (standing.number, failure))?;
            if taken.was_all(&standing.order) && exhausted.len() < EXHAUSTED_MAX {
                exhausted.push(Arc::clone(&standing.order));
            }
            claims.push((standing.number, taken.claims));
        }
        Ok(Served { claims, exhausted, refreshed })
    }

    fn mark_tried(&mut self, number: u64) {
        if let Some(standing) = self.waiting.iter_mut().find(|standing| standing.number == number) {
            standing.tried = true;
        }
    }

    fn remove(&mut self, number: u64) -> Option<Standing<O>> {
        let place = self.waiting.iter().position(|standing| standing.number == number)?;
        self.waiting.remove(place)
    }
}

impl<O: Order> Standing<O> {
    fn wants_claim(&self, exhausted: &[Arc<O>]) -> bool {
        let may_get_something = self.behind_ops || !covers(exhausted, &self.order);
        !self.tried && may_get_something && !self.is_abandoned()
    }

    fn has_expired(&self, now: Timestamp, exhausted: &[Arc<O>]) -> bool {
        self.is_abandoned() || (self.deadline <= now && !self.wants_claim(exhausted))
    }

    /// Whether the caller has gone away.
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }
}

impl<O: Order> Served<O> {
    /// How many claims it holds.
    pub(crate) fn len(&self) -> usize {
        self.claims.iter().map(|(_, claims)| claims.len()).sum()
    }

    /// The operations that give everything back, for when nobody knows whether the commit happened.
    pub(crate) fn releases(&self) -> impl Iterator<Item = Op> + '_ {
        self.claims.iter().flat_map(|(_, claims)| claims).map(O::release)
    }
}

/// Whether an order with this filter has been found to get nothing.
fn covers<O: Order>(exhausted: &[Arc<O>], order: &O) -> bool {
    exhausted.iter().any(|other| other.passes_the_same_as(order))
}
