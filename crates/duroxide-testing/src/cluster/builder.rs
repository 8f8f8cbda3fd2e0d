//! [`ClusterBuilder`]: configures a cluster, and runs a test in it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use duroxide_core::typed::Activity;
use duroxide_provider::{InstanceQuery, ProviderAdmin};
use duroxide_runtime::{
    ActivityRegistry, AuditAction, AuditOptions, RuntimeOptions, registry::ActivityRegistryBuilder,
    typed::Handlers,
};
use tokio::{sync::mpsc, task::LocalSet};

use super::{
    CrashPlan, Shared, TestCluster, fail,
    fault::Faults,
    process::World,
    store::{self, StoreKind},
    time::{RARELY, VirtualTime},
};
use crate::{Mock, TextMock, dice::Dice};

/// The default of [`ClusterBuilder::time_limit`].
const TIME_LIMIT: Duration = Duration::from_secs(20 * 365 * 86_400);
/// The longest time until a node that a crash plan has killed is restarted.
const RESTART_MAX_MS: u64 = 10_000;
/// Maximum number of open instances that the message of a timed-out test names.
const NAMED_MAX: u32 = 5;

/// Configures a [`TestCluster`], and runs a test in it.
#[must_use = "nothing happens until `run`"]
pub struct ClusterBuilder {
    seed: u64,
    plan: Option<CrashPlan>,
    /// Receives the number of awaits when the test has ended.
    awaits: Arc<Mutex<u64>>,
    handlers: Vec<Handlers>,
    mocks: ActivityRegistryBuilder,
    options: RuntimeOptions,
    store: StoreKind,
    time_limit: Duration,
}

impl ClusterBuilder {
    pub(super) fn new() -> Self {
        Self {
            seed: 0,
            plan: None,
            awaits: Arc::default(),
            handlers: Vec::new(),
            mocks: ActivityRegistry::builder(),
            options: quiet_options(),
            store: StoreKind::Memory,
            time_limit: TIME_LIMIT,
        }
    }

    /// A builder for one run of [`for_seeds`](crate::for_seeds).
    pub(crate) fn planned(seed: u64, plan: Option<CrashPlan>, awaits: Arc<Mutex<u64>>) -> Self {
        Self { seed, plan, awaits, ..Self::new() }
    }

    /// Adds a node with these handlers. The first node has number 0.
    pub fn handlers(mut self, handlers: Handlers) -> Self {
        self.handlers.push(handlers);
        self
    }

    /// Replaces the activity `A` by the mock, on every node.
    pub fn mock<A: Activity>(mut self, mock: &Mock<A>) -> Self {
        self.mocks = mock.register(self.mocks);
        self
    }

    /// Replaces the activity of the mock's name by the mock, on every node.
    pub fn mock_text(mut self, mock: &TextMock) -> Self {
        self.mocks = mock.register(self.mocks);
        self
    }

    /// The seed of all random numbers in the cluster. Seed 0 runs tasks in the order in which they become ready; other
    /// seeds try other orders.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Changes the options of all nodes. The defaults differ from those of a real node: the intervals of background
    /// work that no test waits for are a year, because each run would interrupt a jump in time, and every turn is
    /// audited ([`RuntimeOptions::audit`]). An audit replays the turn from scratch and compares, so nondeterministic
    /// code fails.
    pub fn options(mut self, change: impl FnOnce(&mut RuntimeOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Stores everything in a new SQLite file in this folder, instead of in memory.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(mut self, folder: impl Into<std::path::PathBuf>) -> Self {
        self.store = StoreKind::SqliteIn(folder.into());
        self
    }

    /// Fails the test when this much virtual time has passed: 20 years, unless set.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Starts the nodes, runs the test, and ends the cluster.
    ///
    /// # Panics
    /// If the test panics, handlers cannot be registered together, the store cannot be opened, the time limit has
    /// passed, or the caller is already inside a tokio runtime.
    pub fn run<T>(self, test: impl AsyncFnOnce(TestCluster) -> T) -> T {
        let executor = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let executor = executor.unwrap_or_else(|error| fail(&format!("no tokio runtime: {error}")));
        // Destructors read the clock, which must be the virtual one.
        let _entered = executor.enter();
        executor.block_on(LocalSet::new().run_until(self.run_here(test)))
    }

    async fn run_here<T>(self, test: impl AsyncFnOnce(TestCluster) -> T) -> T {
        let time = VirtualTime::default();
        let opened = store::open(&self.store, self.seed, &time);
        let (provider, driver, requested) =
            opened.unwrap_or_else(|error| fail(&format!("cannot open the store: {error}")));
        tokio::task::spawn_local(store::drive(driver, requested, time.clone()));
        let (tell_crash, crashed) = mpsc::unbounded_channel();
        let world = Arc::new(World::new(self.seed, self.plan, tell_crash));
        let shared = Shared {
            seed: self.seed,
            store: Arc::new(provider),
            time,
            world: Arc::clone(&world),
            faults: Arc::new(Faults::default()),
            options: self.options,
            mocks: self.mocks.build(),
            nodes: Mutex::new(BTreeMap::new()),
        };
        let cluster = TestCluster { shared: Arc::new(shared) };
        for handlers in self.handlers {
            cluster.add_node(handlers).await;
        }
        let result = tokio::select! {
            biased;
            result = test(cluster.clone()) => result,
            () = restart_crashed(&cluster, crashed) => fail("the cluster has ended before the test"),
            () = tokio::time::sleep(self.time_limit) => fail(&report_open(&cluster, self.time_limit).await),
        };
        if let Ok(mut awaits) = self.awaits.lock() {
            *awaits = world.awaits();
        }
        cluster
            .nodes()
            .values_mut()
            .filter_map(|node| node.running.take())
            .for_each(|node| node.process.kill());
        result
    }
}

/// Options with which every turn is audited, and no short interval interrupts a jump in time.
fn quiet_options() -> RuntimeOptions {
    let mut options = RuntimeOptions {
        dispatcher_long_poll_timeout: RARELY,
        session_lock_timeout: RARELY,
        session_cleanup_interval: RARELY,
        audit: AuditOptions { fraction: 1.0, action: AuditAction::Fail },
        ..RuntimeOptions::default()
    };
    options.observability.gauge_poll_interval = RARELY;
    options
}

/// Restarts each node that the crash plan has killed, a random time later.
async fn restart_crashed(cluster: &TestCluster, mut crashed: mpsc::UnboundedReceiver<usize>) {
    let mut dice = Dice::new(cluster.seed(), 2);
    while let Some(node) = crashed.recv().await {
        cluster.sleep(Duration::from_millis(dice.below(RESTART_MAX_MS))).await;
        cluster.restart(node).await;
    }
}

async fn report_open(cluster: &TestCluster, limit: Duration) -> String {
    let query = InstanceQuery::default().status("Running").limit(NAMED_MAX);
    let open = cluster.shared.store.query_instances(&query).await.unwrap_or_default();
    let ids: Vec<String> = open.instances.into_iter().map(|instance| instance.instance_id).collect();
    format!(
        "the test has not ended within {} days of virtual time; open instances: {ids:?}",
        limit.as_secs() / 86_400
    )
}

impl fmt::Debug for ClusterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterBuilder")
            .field("seed", &self.seed)
            .field("plan", &self.plan)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
