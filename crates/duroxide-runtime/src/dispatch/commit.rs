//! Insisting on a provider call until the store has answered (semantics 16.5).

use std::{future::Future, time::Duration};

use duroxide_provider::ProviderError;
use tracing::debug;

use super::{
    guarded,
    node::Node,
    plan::commit_backoff,
    renewal::{Lease, LeaseEnd},
};

/// What came of a call that was insisted on.
#[derive(Debug)]
pub(crate) enum Insisted<T> {
    /// It was done.
    Done(T),
    /// The lock is gone. If this was a repetition, an earlier try may have succeeded without its answer.
    LockLost,
    /// The store could not be reached for one lock timeout.
    Unavailable(ProviderError),
    /// The store will never take it.
    Refused(ProviderError),
}

/// Repeats a call while its errors are retryable, for up to one lock timeout, and keeps the lock meanwhile.
pub(crate) async fn insist<T, F>(
    node: &Node,
    lease: &mut Lease,
    lock_timeout: Duration,
    operation: &'static str,
    mut call: impl FnMut() -> F,
) -> Insisted<T>
where
    F: Future<Output = Result<T, ProviderError>>,
{
    let deadline = node.env.moment().after(lock_timeout);
    let mut retry = 0_u32;
    loop {
        let error = match lease.beside(guarded(operation, call())).await {
            Ok(done) => return Insisted::Done(done),
            Err(error) => error,
        };
        if !error.is_retryable() {
            return if error.is_lock_lost() { Insisted::LockLost } else { Insisted::Refused(error) };
        }
        if lease.ended() == Some(LeaseEnd::Lost) {
            return Insisted::LockLost;
        }
        let next = node.env.moment().after(commit_backoff(retry));
        if next >= deadline {
            return Insisted::Unavailable(error);
        }
        debug!(target: "duroxide::runtime", operation, %error, retry, "store call failed, trying again");
        lease.beside(node.env.sleep_until(next)).await;
        retry = retry.saturating_add(1);
    }
}
