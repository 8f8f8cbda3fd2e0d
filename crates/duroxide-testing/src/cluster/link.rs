//! [`Link`]: passes the calls of a node to the store, or makes them fail.

use std::{future::Future, sync::Arc};

use duroxide_provider::{
    Provider, ProviderAdmin, ProviderError, ProviderLayer, impl_provider_for_layer, operation_of,
};
use duroxide_runtime::RuntimeOptions;
use duroxide_store::StoreProvider;
use tokio::{sync::watch, task::yield_now};

use super::fault::{Fate, Faults};

/// The store as one run of a node sees it.
pub(super) struct Link {
    store: Arc<StoreProvider>,
    faults: Arc<Faults>,
    gate: Arc<Gate>,
    sweeps: bool,
}

/// Keeps fetches out of the store while a node is frozen: the store must not hand work to a node that cannot take it.
#[derive(Debug)]
pub(super) struct Gate {
    closed: watch::Sender<bool>,
    /// The number of fetches that wait in the store.
    fetches: watch::Sender<usize>,
}

impl Gate {
    pub(super) fn open() -> Self {
        Self { closed: watch::Sender::new(false), fetches: watch::Sender::new(0) }
    }

    /// Ends the waiting fetches. Resolves when none of them is left.
    pub(super) async fn close(&self) {
        self.closed.send_replace(true);
        // The sender is `self`, so this cannot fail.
        let _ = self.fetches.subscribe().wait_for(|fetches| *fetches == 0).await;
    }

    pub(super) fn reopen(&self) {
        self.closed.send_replace(false);
    }

    /// Makes a fetch, which ends with an error when the gate is closed.
    async fn fetch<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let mut closed = self.closed.subscribe();
        let _waiting = WaitingFetch::new(&self.fetches);
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Err(ProviderError::retryable(method, "the node is frozen")),
            answer = call => answer,
        }
    }
}

/// Counts a fetch while it waits.
struct WaitingFetch<'a>(&'a watch::Sender<usize>);

impl<'a> WaitingFetch<'a> {
    fn new(fetches: &'a watch::Sender<usize>) -> Self {
        fetches.send_modify(|count| *count += 1);
        Self(fetches)
    }
}

impl Drop for WaitingFetch<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Link {
    pub(super) fn new(
        store: Arc<StoreProvider>,
        faults: Arc<Faults>,
        gate: Arc<Gate>,
        options: &RuntimeOptions,
    ) -> Self {
        let sweeps = options.sweep_unsupported_after.is_some() || options.cancel_only_fallback;
        Self { store, faults, gate, sweeps }
    }

    async fn call<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        // An await before the call: a node that is killed here dies before its call reaches the store.
        yield_now().await;
        if method.starts_with("fetch_") { self.gate.fetch(method, call).await } else { call.await }
    }
}

impl_provider_for_layer!([] Link);

impl ProviderLayer for Link {
    fn inner(&self) -> &dyn Provider {
        &*self.store
    }

    async fn around<T: Send>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, ProviderError>> + Send,
    ) -> Result<T, ProviderError> {
        match self.faults.fate(operation_of(method)) {
            Fate::Made => self.call(method, call).await,
            Fate::Refused(error) => Err(error),
            Fate::AnswerLost(error) => {
                let _answer = self.call(method, call).await?;
                Err(error)
            }
        }
    }

    /// Hides the management calls unless the node has to sweep: a sweep every 30 seconds would interrupt jumps in time.
    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.sweeps.then(|| self.store.as_management_capability()).flatten()
    }
}
