//! Provider calls: catches panics, retries, and resolves lost answers.

mod lost_answer;

pub(super) use lost_answer::{was_committed, was_recorded};

use std::{any::Any, future::Future, panic::AssertUnwindSafe, pin::pin, time::Duration};

use duroxide_provider::ProviderError;
use futures_util::FutureExt;
use tracing::{debug, error};

use super::{
    locks::{Lease, LeaseEnd},
    node::Node,
    timing::commit_backoff,
};

/// Makes a provider call and turns a panic into a retryable error. A provider is foreign code, whose panic must not end
/// a dispatch slot or a workflow (semantics 21.2).
pub(crate) async fn provider_call<T>(
    operation: &'static str,
    call: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    catch_panic(operation, call).await.unwrap_or_else(|Panicked(error)| Err(error))
}

/// The error that a provider's panic is converted to.
#[derive(Debug)]
pub(crate) struct Panicked(pub ProviderError);

/// Makes a provider call and distinguishes a panic from an error.
pub(crate) async fn catch_panic<T>(
    operation: &'static str,
    call: impl Future<Output = Result<T, ProviderError>>,
) -> Result<Result<T, ProviderError>, Panicked> {
    AssertUnwindSafe(call).catch_unwind().await.map_err(|panic| {
        let panic = panic_text(panic.as_ref()).unwrap_or("not a text");
        error!(target: "duroxide::runtime", operation, panic, "provider panicked");
        Panicked(ProviderError::retryable(operation, format!("provider panicked: {panic}")))
    })
}

/// The text of a panic, if it has one.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> Option<&str> {
    panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}

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

/// Repeats a call while its errors are retryable, for up to one lock timeout, and renews the lock meanwhile (semantics
/// 16.5).
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
        let (error, panicked) = match lease.renew_during(pin!(catch_panic(operation, call()))).await {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_of_the_provider_is_an_error_that_may_be_retried() {
        let answer: Result<(), _> = provider_call("read", async { panic!("broken driver") }).await;
        let error = answer.unwrap_err();
        assert!(error.is_retryable());
        assert_eq!(error.to_string(), "read: provider panicked: broken driver");
    }
}
