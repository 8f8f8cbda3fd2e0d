//! Putting a served store together: engine, readers, clock, options, node locks.

use std::{fmt, sync::Arc, time::Duration};

use duroxide_core::{Clock, Timestamp};
use duroxide_provider::{
    ProviderError,
    store::{StoreEngine, StoreReader},
};

use crate::{
    StoreDriver, StoreOptions, StoreProvider, SystemClock,
    clock::steady_time,
    driver::{DriverParts, Nonces, SteadyClock},
    machine::Machine,
    nodes::NodeLocks,
    provider::{ProviderParts, Watchers},
    random_nonce,
    readers::{OpenReader, ReaderThreads},
    submit::{OnRequest, Submitter},
    thread,
};

/// Opens an engine, on the thread that is to use it.
type OpenEngine = Box<dyn FnOnce() -> Result<Box<dyn StoreEngine>, ProviderError> + Send>;

/// Puts a [`StoreProvider`] together.
pub struct StoreBuilder {
    engine: OpenEngine,
    readers: Vec<OpenReader>,
    clock: Arc<dyn Clock>,
    steady_clock: SteadyClock,
    recorded_clock: Option<Arc<dyn Clock>>,
    nonces: Nonces,
    name: String,
    version: String,
    options: StoreOptions,
    node_locks: Option<Arc<dyn NodeLocks>>,
    on_request: Option<OnRequest>,
}

impl StoreBuilder {
    /// A store over this engine, with the system's clock and randomness.
    pub fn new(engine: impl StoreEngine + Send) -> Self {
        Self::opening(move || Ok(engine))
    }

    /// A store over the engine that `open` opens, on the thread that is to use it: such an engine need not be able to
    /// move between threads. With the system's clock and randomness.
    pub fn opening<E: StoreEngine>(open: impl FnOnce() -> Result<E, ProviderError> + Send + 'static) -> Self {
        Self {
            engine: Box::new(|| Ok(Box::new(open()?))),
            readers: Vec::new(),
            clock: Arc::new(SystemClock),
            steady_clock: Box::new(steady_time),
            recorded_clock: None,
            nonces: Box::new(random_nonce),
            name: "store".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            options: StoreOptions::default(),
            node_locks: None,
            on_request: None,
        }
    }

    /// Sets the answers of [`Provider::name`](duroxide_provider::Provider::name) and
    /// [`Provider::version`](duroxide_provider::Provider::version). Log lines have the name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.name = name.into();
        self.version = version.into();
        self
    }

    /// Adds a reader, opened by `open` on a thread of its own once the engine is open. Without any, reads run on the
    /// store thread, between transactions.
    #[must_use]
    pub fn with_reader<R: StoreReader + 'static>(
        mut self,
        open: impl FnOnce() -> Result<R, ProviderError> + Send + 'static,
    ) -> Self {
        self.readers.push(Box::new(|| Ok(Box::new(open()?))));
        self
    }

    /// Sets the clock of leases, timers and waits. The store assumes that this clock is never set, unless
    /// [`Self::with_steady_clock`] gives another clock to compare it with.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Arc::clone(&clock);
        self.steady_clock = Box::new(move || clock.now().saturating_since(Timestamp::ZERO));
        self
    }

    /// Sets a clock that cannot be set back or forward, by which the store notices that the other clock was set.
    #[must_use]
    pub fn with_steady_clock(mut self, clock: impl Fn() -> Duration + Send + 'static) -> Self {
        self.steady_clock = Box::new(clock);
        self
    }

    /// Sets the clock that nodes take recorded times from, see [`Provider::clock`](duroxide_provider::Provider::clock): for an
    /// engine whose database has a clock that decides.
    #[must_use]
    pub fn with_recorded_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.recorded_clock = Some(clock);
        self
    }

    /// Sets the source of the random part of lock tokens. It must never repeat a number.
    #[must_use]
    pub fn with_nonces(mut self, nonces: impl FnMut() -> u128 + Send + 'static) -> Self {
        self.nonces = Box::new(nonces);
        self
    }

    /// Sets bounds and intervals.
    #[must_use]
    pub fn with_options(mut self, options: StoreOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the locks that show which nodes are alive. Without them a node ends only when its membership is dropped, which
    /// suffices for a store that no other process uses.
    #[must_use]
    pub fn with_node_locks(mut self, locks: impl NodeLocks) -> Self {
        self.node_locks = Some(Arc::new(locks));
        self
    }

    /// Calls `wake` whenever a caller has submitted a request. For the task that runs the driver of a [`Self::stepped`] store.
    #[must_use]
    pub fn on_request(mut self, wake: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_request = Some(Arc::new(wake));
        self
    }

    /// Starts the store's threads, and has them open engine and readers. They end when the provider is dropped.
    ///
    /// # Errors
    /// The error of `open` of the engine or of a reader, or of starting a thread. No thread is left then.
    pub fn start(self) -> Result<StoreProvider, ProviderError> {
        let Parts { mut provider, engine, readers, driver } = self.split();
        let serve = move |engine| StoreDriver::new(engine, driver).serve();
        provider.served_by(thread::spawn_opening("duroxide-store", engine, serve)?);
        if !readers.is_empty() {
            provider.read_by(ReaderThreads::start(readers)?);
        }
        Ok(provider)
    }

    /// A store without threads: nothing happens unless the driver is run. The engine is opened now. Readers are not;
    /// reads run in the driver.
    ///
    /// # Errors
    /// The error of `open` of the engine.
    pub fn stepped(self) -> Result<(StoreProvider, StoreDriver), ProviderError> {
        let Parts { provider, engine, driver, .. } = self.split();
        Ok((provider, StoreDriver::new(engine()?, driver)))
    }

    fn split(self) -> Parts {
        let (submitter, inbox) = Submitter::new(Arc::clone(&self.clock), self.on_request, &self.options);
        let watchers = Arc::new(Watchers::default());
        let name: Arc<str> = self.name.into();
        let provider = StoreProvider::new(ProviderParts {
            submitter: Arc::clone(&submitter),
            watchers: Arc::clone(&watchers),
            name: Arc::clone(&name),
            version: self.version,
            recorded_clock: self.recorded_clock,
            node_locks: self.node_locks.clone(),
        });
        let driver = DriverParts {
            machine: Machine::new(self.options),
            inbox,
            submitter,
            clock: self.clock,
            steady_clock: self.steady_clock,
            nonces: self.nonces,
            watchers,
            name,
            node_locks: self.node_locks,
        };
        Parts { provider, engine: self.engine, readers: self.readers, driver }
    }
}

/// The callers' side of a store, and the parts of the thread side.
struct Parts {
    provider: StoreProvider,
    engine: OpenEngine,
    readers: Vec<OpenReader>,
    driver: DriverParts,
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
