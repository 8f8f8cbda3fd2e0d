//! `MemoryProvider`: the memory engine as a provider, for tests.

use std::sync::Arc;

use duroxide_core::Clock;
use duroxide_provider::{
    ProviderError,
    memory::{MemoryEngine, MemoryOptions},
    store::StoreSnapshot,
};

use crate::{StoreBuilder, StoreOptions, StoreProvider, impl_provider_by_delegation};

/// A provider that keeps everything in memory. It is lost with its process: for tests, and for
/// `Runtime::start`.
#[derive(Debug)]
pub struct MemoryProvider {
    store: StoreProvider,
}

impl_provider_by_delegation!(MemoryProvider, store);

impl MemoryProvider {
    /// An empty store.
    ///
    /// # Panics
    /// If the system cannot start a thread, like [`std::thread::spawn`]. [`Self::start`] returns an error instead.
    #[expect(clippy::expect_used, reason = "documented; the same as std::thread::spawn")]
    pub fn new() -> Self {
        Self::serve(StoreProvider::builder(MemoryEngine::default()))
            .expect("a thread for the memory provider")
    }

    /// An empty store with these options and this clock.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(options: MemoryOptions, clock: Arc<dyn Clock>) -> Result<Self, ProviderError> {
        Self::serve(StoreProvider::builder(MemoryEngine::new(options)).with_clock(clock))
    }

    fn serve(builder: StoreBuilder) -> Result<Self, ProviderError> {
        let store = builder
            .named("memory", env!("CARGO_PKG_VERSION"))
            .with_options(StoreOptions { shared: false, ..StoreOptions::default() })
            .start()?;
        Ok(Self { store })
    }

    /// Everything in the store, for invariant checks and comparisons.
    ///
    /// # Errors
    /// If the store has ended.
    pub async fn snapshot(&self) -> Result<StoreSnapshot, ProviderError> {
        self.store.snapshot().await
    }
}

impl Default for MemoryProvider {
    fn default() -> Self {
        Self::new()
    }
}
