//! Retries a provider call until the store has answered (semantics 16.5).

use std::{future::Future, time::Duration};

use duroxide_provider::ProviderError;
use tracing::debug;

use super::{Panicked, catch_panic};
use crate::dispatch::{
    locks::{Lease, LeaseEnd},
    node::Node,
    timing::commit_backoff,
};

/// The outcome of a retried call.
#[derive(Debug)]
pub(crate) enum CallOutcome<T> {
    Done(T),
    /// The lock is gone.
    LockLost {
        /// An earlier try got no answer and may have succeeded.
        unanswered: bool,
    },
    /// The store was unavailable for one lock timeout.
    Unavailable {
        error: ProviderError,
        /// Whether the last try panicked. An outage is not charged as an attempt. A panic may be caused by the item, so
        /// it is charged, or the item would be retried forever (semantics 21.2, S1.31).
        panicked: bool,
    },
    /// The store refuses the call permanently.
    Refused(ProviderError),
}

/// Repeats a call while its errors are retryable, for up to one lock timeout, and renews the lock meanwhile.
pub(crate) async fn retry_call<T, F>(
    node: &Node,
    lease: &mut Lease,
    lock_timeout: Duration,
    operation: &'static str,
    mut call: impl FnMut() -> F,
) -> CallOutcome<T>
where
    F: Future<Output = Result<T, ProviderError>>,
{
    let deadline = node.env.moment().after(lock_timeout);
    let mut retry = 0_u32;
    loop {
        let (error, panicked) = match lease.renew_during(catch_panic(operation, call())).await {
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
        if lease.ended() == Some(LeaseEnd::Lost) {
            return CallOutcome::LockLost { unanswered: true };
        }
        let next = node.env.moment().after(commit_backoff(retry));
        if next >= deadline {
            return CallOutcome::Unavailable { error, panicked };
        }
        debug!(target: "duroxide::runtime", operation, %error, retry, "store call failed, trying again");
        lease.renew_during(node.env.sleep_until(next)).await;
        retry = retry.saturating_add(1);
    }
}
