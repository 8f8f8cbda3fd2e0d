//! [`TestCluster`]: nodes on one store, on one thread, in virtual time.

mod builder;
mod env;
mod fault;
mod link;
mod process;
mod store;
mod time;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use duroxide_core::{Clock, Event};
use duroxide_provider::{Provider, ProviderAdmin, store::StoreSnapshot};
use duroxide_runtime::{
    ActivityRegistry, Client, OrchestrationRegistry, Runtime, RuntimeOptions, typed::Handlers,
};
use duroxide_store::StoreProvider;

pub use builder::ClusterBuilder;
pub use fault::StoreFault;
pub(crate) use process::CrashPlan;

use self::{
    env::VirtualEnv,
    fault::Faults,
    link::{Gate, Link},
    process::{Process, World},
    time::VirtualTime,
};

/// A cluster inside a test: the real runtime and engine on a real store, on one thread, in virtual time.
///
/// Virtual time stands still while any task can run, and jumps to the next timer when none can. So a test of a deadline
/// in two minutes, or of a loop over 30 days, takes milliseconds, and always the same number of steps. All random
/// numbers come from the seed: the same test with the same seed makes the same histories, to the byte.
///
/// A cluster lives in [`ClusterBuilder::run`], which works in a plain `#[test]`. Clones are handles of the same cluster.
///
/// ```
/// # use std::time::Duration;
/// # use duroxide_runtime::{OrchestrationRegistry, typed::Handlers};
/// # use duroxide_testing::TestCluster;
/// let reminders = OrchestrationRegistry::builder()
///     .register("Remind", |ctx, _input| async move {
///         ctx.schedule_timer(Duration::from_secs(30 * 86_400)).await;
///         Ok("a month later".to_owned())
///     })
///     .build();
/// TestCluster::builder().handlers(Handlers::new().orchestrations(reminders)).run(async |cluster| {
///     cluster.client().start_orchestration("r-1", "Remind", "").await.unwrap();
///     let ended: Result<String, String> =
///         cluster.client().wait_for_orchestration_typed("r-1", Duration::MAX).await.unwrap();
///     assert_eq!(ended.unwrap(), "a month later");
///     assert_eq!(cluster.elapsed().as_secs(), 30 * 86_400);
/// });
/// ```
#[derive(Clone)]
pub struct TestCluster {
    shared: Arc<Shared>,
}

struct Shared {
    seed: u64,
    store: Arc<StoreProvider>,
    time: VirtualTime,
    world: Arc<World>,
    faults: Arc<Faults>,
    options: RuntimeOptions,
    mocks: ActivityRegistry,
    nodes: Mutex<BTreeMap<usize, Node>>,
}

/// A node: its handlers, and its process while it runs.
struct Node {
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
    running: Option<Running>,
    /// Number of starts so far.
    starts: u64,
}

struct Running {
    process: Arc<Process>,
    gate: Arc<Gate>,
    runtime: Arc<Runtime>,
}

impl TestCluster {
    /// A cluster without nodes on a store in memory, with seed 0. [`ClusterBuilder::handlers`] adds nodes.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::new()
    }

    /// A client of the cluster. Store faults do not affect it.
    pub fn client(&self) -> Client {
        Client::new(self.store()).with_timer(Arc::new(self.shared.time.clone()))
    }

    /// The store, for code that makes its own client.
    pub fn store(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.shared.store) as Arc<dyn Provider>
    }

    /// The virtual wall clock, which begins at 2030-01-01 00:00:00 UTC.
    pub fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(self.shared.time.now().as_micros())
    }

    /// The virtual time since the cluster began.
    pub fn elapsed(&self) -> Duration {
        self.shared.time.elapsed()
    }

    /// Lets this much virtual time pass.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// The seed of the cluster.
    pub fn seed(&self) -> u64 {
        self.shared.seed
    }

    /// The number of awaits so far at which a task of a node had to wait. A node can crash at each of them.
    pub fn awaits(&self) -> u64 {
        self.shared.world.awaits()
    }

    /// The history of an instance's current execution.
    ///
    /// # Panics
    /// If the instance is unknown.
    pub async fn history(&self, instance: &str) -> Vec<Event> {
        let history = self.shared.store.read_history(instance).await;
        history.unwrap_or_else(|error| fail(&format!("cannot read the history of '{instance}': {error}")))
    }

    /// Everything in the store, for comparisons and invariant checks.
    ///
    /// # Panics
    /// If the store cannot be read.
    pub async fn snapshot(&self) -> StoreSnapshot {
        let snapshot = self.shared.store.snapshot().await;
        snapshot.unwrap_or_else(|error| fail(&format!("cannot read the store: {error}")))
    }

    /// Makes store calls of the nodes fail.
    pub fn store_fails(&self, fault: StoreFault) {
        self.shared.faults.add(fault);
    }

    /// Starts one more node with these handlers, and returns its number. The first node of a cluster has number 0.
    ///
    /// # Panics
    /// If the handlers cannot be registered together.
    pub async fn add_node(&self, handlers: Handlers) -> usize {
        let node = Node::of(handlers);
        let number = {
            let mut nodes = self.nodes();
            let number = nodes.last_key_value().map_or(0, |(last, _)| last + 1);
            nodes.insert(number, node);
            number
        };
        self.restart(number).await;
        number
    }

    /// Ends a node at once, as if its process had been killed: every task is dropped where it awaits. Calls that have
    /// reached the store are carried out, and their answers are lost. The other nodes take over the work that the node
    /// held.
    ///
    /// # Panics
    /// If there is no such node. A node that does not run is left as it is.
    pub fn crash(&self, node: usize) {
        let running = self.with_node(node, |node| node.running.take());
        if let Some(running) = running {
            running.process.kill();
        }
    }

    /// Starts a node that has crashed or was shut down, with the handlers it had. A node that runs is left as it is.
    ///
    /// # Panics
    /// If there is no such node.
    pub async fn restart(&self, node: usize) {
        let start = self.with_node(node, |found| {
            if found.is_running() {
                return None;
            }
            found.starts += 1;
            Some((found.activities.clone(), found.orchestrations.clone(), found.starts))
        });
        let Some((activities, orchestrations, starts)) = start else { return };
        let Shared { world, time, faults, store, options, mocks, seed, .. } = &*self.shared;
        let process = Process::new(node, Arc::clone(world));
        let env = VirtualEnv::new(Arc::clone(&process), time.clone(), *seed, starts);
        let gate = Arc::new(Gate::open());
        let link = Link::new(Arc::clone(store), Arc::clone(faults), Arc::clone(&gate), options);
        // The first registration of a name wins, so mocks come first.
        let activities = ActivityRegistry::builder_from(mocks).merge(activities).build();
        let runtime =
            Runtime::start_in(Arc::new(env), Arc::new(link), activities, orchestrations, options.clone())
                .await;
        self.with_node(node, |node| node.running = Some(Running { process, gate, runtime }));
    }

    /// Ends a node in an orderly way: running work may finish within a second of virtual time.
    ///
    /// # Panics
    /// If there is no such node.
    pub async fn shutdown(&self, node: usize) {
        let running = self.with_node(node, |node| node.running.take());
        if let Some(running) = running {
            running.runtime.shutdown(None).await;
            running.process.kill();
        }
    }

    /// Replaces the code of a node as a deployment does: shuts the node down and starts it with other handlers.
    ///
    /// # Panics
    /// If there is no such node, or if the handlers cannot be registered together.
    pub async fn upgrade(&self, node: usize, handlers: Handlers) {
        self.shutdown(node).await;
        let next = Node::of(handlers);
        self.with_node(node, |node| *node = Node { starts: node.starts, ..next });
        self.restart(node).await;
    }

    /// Freezes a node: none of its code runs, and it renews no locks, until [`Self::resume`].
    ///
    /// # Panics
    /// If there is no such node.
    pub async fn pause(&self, node: usize) {
        if let Some((process, gate)) = self.process(node) {
            gate.close().await;
            process.pause();
        }
    }

    /// Lets a frozen node go on.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn resume(&self, node: usize) {
        if let Some((process, gate)) = self.process(node) {
            gate.reopen();
            process.resume();
        }
    }

    fn process(&self, node: usize) -> Option<(Arc<Process>, Arc<Gate>)> {
        self.with_node(node, |node| {
            let Running { process, gate, .. } = node.running.as_ref()?;
            Some((Arc::clone(process), Arc::clone(gate)))
        })
    }

    fn with_node<T>(&self, node: usize, then: impl FnOnce(&mut Node) -> T) -> T {
        let mut nodes = self.nodes();
        match nodes.get_mut(&node) {
            Some(node) => then(node),
            None => fail(&format!("the cluster has no node {node}: it has {:?}", nodes.keys())),
        }
    }

    /// Locks the map. Every statement leaves it consistent, so a panic elsewhere does not damage it.
    fn nodes(&self) -> MutexGuard<'_, BTreeMap<usize, Node>> {
        self.shared.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    fn of(handlers: Handlers) -> Self {
        let (activities, orchestrations) = handlers.build().unwrap_or_else(|error| fail(&error.to_string()));
        Self { activities, orchestrations, running: None, starts: 0 }
    }

    fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.process.is_alive())
    }
}

impl fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestCluster").field("seed", &self.shared.seed).finish_non_exhaustive()
    }
}

/// Fails the test by a panic.
#[expect(clippy::panic, reason = "a failed test")]
#[track_caller]
pub(crate) fn fail(message: &str) -> ! {
    panic!("{message}")
}
