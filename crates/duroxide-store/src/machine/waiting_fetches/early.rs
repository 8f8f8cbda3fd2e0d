//! Fetches that are answered while the transaction that serves them is open.

use std::sync::Arc;

use duroxide_provider::store::Claimed;

use super::{Waiting, WaitingFetches};
use crate::{fetch::QueueFetch, submit::Delivery};

impl<F: QueueFetch> WaitingFetches<F> {
    /// Delivers the claims for a fetch that was answered early, without the claims already handed over, after the commit of
    /// its transaction. They go to the next fetch of the same caller; without one, the delivery is dropped and releases them.
    pub(super) fn deliver_rest(
        &mut self,
        request: &Arc<F>,
        claimed: Claimed<F::Claim>,
        delivery: impl Fn(Vec<F::Claim>) -> Delivery<F>,
    ) {
        if !claimed.items.is_empty() {
            let delivery = delivery(claimed.items);
            let next = self.waiting.iter().position(|fetch| fetch.comes_from_caller_of(request));
            if let Some(fetch) = next.and_then(|place| self.waiting.remove(place)) {
                self.await_fetch_after(&fetch.request);
                let _ = fetch.reply.send(Ok(delivery));
            }
        }
        if claimed.took_all {
            self.note_exhausted(Arc::clone(request));
        }
    }

    /// Answers a fetch while the transaction that claimed for it is open. Returns the claims if the caller was dropped, or is
    /// not a dispatch loop, because only dispatch loops expect this (24.12).
    pub(crate) fn hand_over_early(
        &mut self,
        number: u64,
        claims: Vec<F::Claim>,
        deliver: impl FnOnce(Vec<F::Claim>) -> Delivery<F>,
    ) -> Option<Vec<F::Claim>> {
        let is_asked = |fetch: &Waiting<F>| fetch.number == number && fetch.request.demand().is_some();
        let place = self.waiting.iter().position(is_asked);
        let Some(fetch) = place.and_then(|place| self.waiting.remove(place)) else { return Some(claims) };
        self.answered_early.push((number, fetch.request));
        let _ = fetch.reply.send(Ok(deliver(claims)));
        None
    }
}

impl<F: QueueFetch> Waiting<F> {
    /// Whether both fetches come from the same caller: they have the same filter and the same demand.
    fn comes_from_caller_of(&self, other: &F) -> bool {
        let demand = |fetch: &F| fetch.demand().map(Arc::as_ptr);
        let same = match (demand(&self.request), demand(other)) {
            (Some(here), Some(there)) => std::ptr::addr_eq(here, there),
            _ => false,
        };
        same && self.request.passes_the_same_as(other) && !self.is_abandoned()
    }
}
