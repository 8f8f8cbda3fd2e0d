//! Provider calls: catches panics and resolves lost answers.

mod lost_answer;

pub(super) use lost_answer::{was_committed, was_recorded};

use std::{any::Any, future::Future, panic::AssertUnwindSafe};

use duroxide_provider::ProviderError;
use futures_util::FutureExt;
use tracing::error;

/// Makes a provider call and turns a panic into a retryable error. A provider is foreign code, whose panic must not end
/// a dispatch slot or a workflow (21.2).
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
