//! [`PeekLockProvider`]: a peek-lock store, served as a provider.

use std::time::Duration;

use duroxide_provider::{ProviderError, memory::MemoryOptions, store::StoreSnapshot};
use duroxide_store::{StoreBuilder, StoreOptions, StoreProvider, impl_provider_by_delegation};

use crate::{PeekLockEngine, PeekLockStore, engine::Reload};

/// How often the driver checks for a requested reload while a fetch waits.
const RELOAD_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A provider on a store without transactions.
#[derive(Debug)]
pub struct PeekLockProvider {
    store: StoreProvider,
    reload: Reload,
}

impl_provider_by_delegation!(PeekLockProvider, store);

impl PeekLockProvider {
    /// Opens a store and serves it. `name` and `version` are for logs.
    ///
    /// This reads the whole store, so an async program calls it on a thread that may block.
    ///
    /// # Errors
    /// If the store cannot be read or repaired, or a thread cannot be started.
    pub fn open(
        store: impl PeekLockStore,
        options: MemoryOptions,
        name: &str,
        version: &str,
    ) -> Result<Self, ProviderError> {
        let engine =
            PeekLockEngine::open(store, options).map_err(|failure| failure.into_provider_error("open"))?;
        let reload = engine.reload_handle();
        let options =
            StoreOptions { shared: true, check_interval: RELOAD_CHECK_INTERVAL, ..StoreOptions::default() };
        let store = StoreBuilder::new(engine).named(name, version).with_options(options).start()?;
        Ok(Self { store, reload })
    }

    /// Everything in the store, for invariant checks and comparisons.
    ///
    /// # Errors
    /// If the store has ended.
    pub async fn snapshot(&self) -> Result<StoreSnapshot, ProviderError> {
        self.store.snapshot().await
    }

    /// Reads the store again, after it was changed by hand while the provider was open. A change to an instance whose
    /// turn is running may be lost.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn reload(&self) -> Result<(), ProviderError> {
        self.reload.request();
        self.store.query("reload", |reader| reader.queue_depths()).await.map(drop)
    }
}
