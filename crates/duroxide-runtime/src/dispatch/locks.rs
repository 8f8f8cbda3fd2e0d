//! The locks that a node holds, their renewal while work goes on, and calls under them (16.3 to 16.5).

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::pin,
    sync::{Arc, Mutex},
};

use duroxide_provider::ProviderError;
use futures_util::future::{Either, select};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::{
    node::{LeaseTerms, Node},
    provider_call,
    store_call::{Panicked, catch_panic},
    timing::{commit_backoff, renewal_backoff},
};
use crate::env::{BoxFuture, Moment, lock};

/// The kind of item that a lock token locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockKind {
    Instance,
    Activity,
}

/// The locks this node holds. A shutdown releases those that remain after all tasks have ended.
#[derive(Debug, Default)]
pub(crate) struct HeldLocks {
    tokens: Mutex<BTreeMap<String, LockKind>>,
}

impl HeldLocks {
    pub(crate) fn insert(&self, token: &str, kind: LockKind) {
        lock(&self.tokens).insert(token.to_owned(), kind);
    }

    /// Forgets a lock: the store has the result, or the lock is left to its lease.
    pub(crate) fn remove(&self, token: &str) {
        lock(&self.tokens).remove(token);
    }

    /// Removes and returns all locks except those in `keep`.
    pub(crate) fn take_except(&self, keep: &BTreeSet<String>) -> BTreeMap<String, LockKind> {
        let mut tokens = lock(&self.tokens);
        let (kept, taken) =
            std::mem::take(&mut *tokens).into_iter().partition(|(token, _)| keep.contains(token));
        *tokens = kept;
        taken
    }
}

/// How a lease ended while its work went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseEnd {
    /// The store reports that the lock has ended or that another worker holds it.
    Lost,
    /// The lease could not be renewed in time. Another worker may hold the lock.
    Expired,
}

/// A lock that is renewed while its holder waits through [`while_held`](Self::while_held),
/// [`renew_during`](Self::renew_during) or [`retry`](Self::retry). Dropping the lease stops the renewal and drops a renewal
/// call in flight.
pub(crate) struct Lease {
    node: Arc<Node>,
    terms: LeaseTerms,
    renewer: BoxFuture<LeaseEnd>,
    ended: Option<LeaseEnd>,
}

/// The outcome of a retried call.
#[derive(Debug)]
pub(crate) enum CallOutcome<T> {
    Done(T),
    /// The lock has ended.
    LockLost {
        /// An earlier try got no answer and may have succeeded.
        unanswered: bool,
    },
    /// The store was unavailable for one lock timeout.
    Unavailable {
        error: ProviderError,
        /// Whether the last try panicked. An outage is not charged as an attempt. A panic may be caused by the item, so
        /// it is charged, or the item would be retried forever (21.2, S1.31).
        panicked: bool,
    },
    /// The store refuses the call permanently.
    Refused(ProviderError),
}

impl Lease {
    /// A lease that was granted at `granted`. Fires `stop` when a renewal returns that the activity was asked to stop.
    pub(crate) fn new(
        node: Arc<Node>,
        kind: LockKind,
        token: String,
        granted: Moment,
        stop: Option<CancellationToken>,
    ) -> Self {
        let terms = node.lease_terms(kind);
        let renewer = Renewer { node: Arc::clone(&node), kind, token, terms, stop };
        Self { node, terms, renewer: Box::pin(renewer.keep(granted)), ended: None }
    }

    pub(crate) fn ended(&self) -> Option<LeaseEnd> {
        self.ended
    }

    /// Waits for `work` and renews the lease meanwhile. If the lease ends first, `work` is dropped.
    pub(crate) async fn while_held<T>(
        &mut self,
        work: impl Future<Output = T> + Unpin,
    ) -> Result<T, LeaseEnd> {
        if let Some(end) = self.ended {
            return Err(end);
        }
        match select(work, &mut self.renewer).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right((end, _)) => {
                self.ended = Some(end);
                Err(end)
            }
        }
    }

    /// Waits for `work` until it is done, and renews the lease meanwhile for as long as possible.
    pub(crate) async fn renew_during<T>(&mut self, work: impl Future<Output = T> + Unpin) -> T {
        if self.ended.is_some() {
            return work.await;
        }
        match select(work, &mut self.renewer).await {
            Either::Left((done, _)) => done,
            Either::Right((end, work)) => {
                self.ended = Some(end);
                work.await
            }
        }
    }

    /// Repeats a provider call while its errors are retryable, for up to one lock timeout, and renews the lock meanwhile
    /// (16.5).
    pub(crate) async fn retry<T, F>(
        &mut self,
        operation: &'static str,
        mut call: impl FnMut() -> F,
    ) -> CallOutcome<T>
    where
        F: Future<Output = Result<T, ProviderError>>,
    {
        let deadline = self.node.env.moment().after(self.terms.timeout);
        let mut retry = 0_u32;
        loop {
            let (error, panicked) = match self.renew_during(pin!(catch_panic(operation, call()))).await {
                Ok(Ok(done)) => return CallOutcome::Done(done),
                Ok(Err(error)) => (error, false),
                Err(Panicked(error)) => (error, true),
            };
            if !error.is_retryable() {
                let unanswered = retry > 0;
                return if error.is_lock_lost() {
                    CallOutcome::LockLost { unanswered }
                } else {
                    CallOutcome::Refused(error)
                };
            }
            if self.ended == Some(LeaseEnd::Lost) {
                return CallOutcome::LockLost { unanswered: true };
            }
            let next = self.node.env.moment().after(commit_backoff(retry));
            if next >= deadline {
                return CallOutcome::Unavailable { error, panicked };
            }
            debug!(target: "duroxide::runtime", operation, %error, retry, "store call failed, trying again");
            let pause = self.node.env.sleep_until(next);
            self.renew_during(pause).await;
            retry = retry.saturating_add(1);
        }
    }
}

struct Renewer {
    node: Arc<Node>,
    kind: LockKind,
    token: String,
    terms: LeaseTerms,
    stop: Option<CancellationToken>,
}

impl Renewer {
    async fn keep(self, mut granted: Moment) -> LeaseEnd {
        loop {
            let due = granted.after(self.terms.interval);
            self.node.env.sleep_until(due).await;
            let late = self.node.env.moment().since(due);
            if late > self.terms.interval / 4 {
                warn!(target: "duroxide::runtime", late_ms = late.as_millis() as u64, "a lock renewal started late");
            }
            match self.renew(granted.after(self.terms.timeout)).await {
                Ok(renewed) => granted = renewed,
                Err(end) => return end,
            }
        }
    }

    /// Renews until it succeeds, the store refuses, or the lease would have ended. A renewal that starts after that end
    /// still asks once, because the store decides.
    async fn renew(&self, lease_end: Moment) -> Result<Moment, LeaseEnd> {
        let env = &self.node.env;
        let give_up = lease_end.max(env.moment().after(self.terms.interval / 4));
        for retry in 0_u32.. {
            let asked = env.moment();
            let answer = match select(pin!(self.call()), env.sleep_until(give_up)).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => break,
            };
            match answer {
                Ok(()) => return Ok(asked),
                Err(error) if !error.is_retryable() => {
                    debug!(target: "duroxide::runtime", %error, "lock lost");
                    return Err(LeaseEnd::Lost);
                }
                Err(error) => {
                    debug!(target: "duroxide::runtime", %error, retry, "lock renewal failed, trying again");
                    let next = env.moment().after(renewal_backoff(retry, self.terms.interval));
                    if next >= give_up {
                        break;
                    }
                    env.sleep_until(next).await;
                }
            }
        }
        warn!(target: "duroxide::runtime", "a lock could not be renewed before its lease ended");
        Err(LeaseEnd::Expired)
    }

    async fn call(&self) -> Result<(), ProviderError> {
        let store = &self.node.store;
        match self.kind {
            LockKind::Instance => {
                let call = store.renew_orchestration_item_lock(&self.token, self.terms.timeout);
                provider_call("renew_orchestration_item_lock", call).await
            }
            LockKind::Activity => {
                let call = store.renew_work_item(&self.token, self.terms.timeout);
                let stop_requested = provider_call("renew_work_item_lock", call).await?.stop_requested;
                if let Some(stop) = self.stop.as_ref().filter(|_| stop_requested) {
                    stop.cancel();
                }
                Ok(())
            }
        }
    }
}
