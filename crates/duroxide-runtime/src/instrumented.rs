//! A provider that measures another one.

#[cfg(test)]
mod tests;

use std::{fmt, future::Future, sync::Arc};

use duroxide_provider::{Provider, ProviderError, ProviderLayer, impl_provider_for_layer, operation_of};
use tokio::time::Instant;

use crate::observability::MetricsProvider;

/// Forwards every call to another provider and records its duration and its errors.
///
/// Added methods are forwarded too, never answered by their default bodies: the inner provider's rounds, batches
/// and watches stay as they are.
#[derive(Clone)]
pub struct InstrumentedProvider {
    inner: Arc<dyn Provider>,
    metrics: Option<Arc<MetricsProvider>>,
}

impl InstrumentedProvider {
    /// Measures `inner`; without `metrics` it only forwards.
    pub fn new(inner: Arc<dyn Provider>, metrics: Option<Arc<MetricsProvider>>) -> Self {
        Self { inner, metrics }
    }

    async fn measured<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let Some(metrics) = &self.metrics else { return call.await };
        let started = Instant::now();
        let result = call.await;
        let status = if result.is_ok() { "success" } else { "error" };
        metrics.provider_call_returned(operation, started.elapsed(), status);
        if let Err(error) = &result {
            metrics.record_provider_error(operation, if error.retryable { "retryable" } else { "permanent" });
        }
        result
    }
}

impl_provider_for_layer!([] InstrumentedProvider);

impl ProviderLayer for InstrumentedProvider {
    fn inner(&self) -> &dyn Provider {
        &*self.inner
    }

    fn around<T: Send>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, ProviderError>> + Send,
    ) -> impl Future<Output = Result<T, ProviderError>> + Send {
        self.measured(operation_of(method), call)
    }
}

impl fmt::Debug for InstrumentedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstrumentedProvider").field("inner", &self.inner.name()).finish_non_exhaustive()
    }
}
