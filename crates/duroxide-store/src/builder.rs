use std::{fmt, sync::Arc, time::Duration};

use duroxide_core::{Clock, Timestamp};
use duroxide_provider::store::{StoreEngine, StoreReader};

use crate::{
    StoreDriver, StoreError, StoreOptions, StoreProvider, SystemClock,
    clock::steady_time,
    driver::{DriverParts, Nonces, SteadyClock},
    machine::Machine,
    nodes::NodeLocks,
    provider::ProviderParts,
    random_nonce,
    readers::Readers,
    submit::Submitter,
    thread,
    watchers::Watchers,
};

/// Puts a [`StoreProvider`] together.
pub struct StoreBuilder {
    engine: Box<dyn StoreEngine>,
    readers: Vec<Box<dyn StoreReader>>,
    clock: Arc<dyn Clock>,
    steady_clock: SteadyClock,
    nonces: Nonces,
    name: String,
    version: String,
    options: StoreOptions,
    node_locks: Option<Arc<dyn NodeLocks>>,
}

impl StoreBuilder {
    /// A store over this engine, with the system's clock and randomness.
    pub fn new(engine: impl StoreEngine) -> Self {
        Self {
            engine: Box::new(engine),
            readers: Vec::new(),
            clock: Arc::new(SystemClock),
            steady_clock: Box::new(steady_time),
            nonces: Box::new(random_nonce),
            name: "store".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            options: StoreOptions::default(),
            node_locks: None,
        }
    }

    /// What [`Provider::name`](duroxide_provider::Provider::name) and
    /// [`Provider::version`](duroxide_provider::Provider::version) say, and the logs.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.name = name.into();
        self.version = version.into();
        self
    }

    /// Readers, each with a thread of its own. Without any, reads run on the store thread, between transactions.
    #[must_use]
    pub fn with_readers(mut self, readers: Vec<Box<dyn StoreReader>>) -> Self {
        self.readers = readers;
        self
    }

    /// The clock of leases, timers and waits. It is taken for one that nobody sets, unless
    /// [`Self::with_steady_clock`] gives another to hold it against.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Arc::clone(&clock);
        self.steady_clock = Box::new(move || clock.now().saturating_since(Timestamp::ZERO));
        self
    }

    /// A clock that only ever runs, by which the store notices that somebody set the other one.
    #[must_use]
    pub fn with_steady_clock(mut self, clock: impl Fn() -> Duration + Send + 'static) -> Self {
        self.steady_clock = Box::new(clock);
        self
    }

    /// Where the random part of lock tokens comes from. It must never repeat.
    #[must_use]
    pub fn with_nonces(mut self, nonces: impl FnMut() -> u128 + Send + 'static) -> Self {
        self.nonces = Box::new(nonces);
        self
    }

    /// Bounds and intervals.
    #[must_use]
    pub fn with_options(mut self, options: StoreOptions) -> Self {
        self.options = options;
        self
    }

    /// Locks by which nodes show that they live. Without them only a membership that is dropped says that a node is gone,
    /// which is all there can be in a store that no other process uses.
    #[must_use]
    pub fn with_node_locks(mut self, locks: impl NodeLocks) -> Self {
        self.node_locks = Some(Arc::new(locks));
        self
    }

    /// Starts the store's threads. They end when the provider is dropped.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub fn start(mut self) -> Result<StoreProvider, StoreError> {
        let readers = std::mem::take(&mut self.readers);
        let (mut provider, driver) = self.split(|submitter| Readers::start(readers, submitter))?;
        provider.served_by(thread::spawn("duroxide-store", move || thread::run(driver))?);
        Ok(provider)
    }

    /// A store without threads: nothing happens unless the driver is run. Given readers are not used; reads run
    /// in the driver.
    pub fn stepped(self) -> (StoreProvider, StoreDriver) {
        let store_thread = |submitter| Ok::<_, std::convert::Infallible>(Readers::StoreThread(submitter));
        match self.split(store_thread) {
            Ok(parts) => parts,
            Err(never) => match never {},
        }
    }

    fn split<E>(
        self,
        readers: impl FnOnce(Submitter) -> Result<Readers, E>,
    ) -> Result<(StoreProvider, StoreDriver), E> {
        let (submitter, inbox) = Submitter::new(Arc::clone(&self.clock));
        let watchers = Arc::new(Watchers::default());
        let name: Arc<str> = self.name.into();
        let provider = StoreProvider::new(ProviderParts {
            submitter: submitter.clone(),
            readers: readers(submitter.clone())?,
            watchers: Arc::clone(&watchers),
            options: &self.options,
            name: Arc::clone(&name),
            version: self.version,
            node_locks: self.node_locks.clone(),
        });
        let driver = StoreDriver::new(DriverParts {
            engine: self.engine,
            machine: Machine::new(self.options),
            inbox,
            submitter,
            clock: self.clock,
            steady_clock: self.steady_clock,
            nonces: self.nonces,
            watchers,
            name,
            node_locks: self.node_locks,
        });
        Ok((provider, driver))
    }
}

impl fmt::Debug for StoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreBuilder")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
