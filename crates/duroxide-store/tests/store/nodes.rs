//! Nodes: a dead one is found by its lock, in virtual time, with locks that a test releases.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use duroxide_core::{Clock, Timestamp};
use duroxide_provider::{
    DispatcherCapabilityFilter, NodeAnnouncement, NodeCapability, NodeId, NodeMembership, OrchestrationClaim,
    OrchestrationFetch, Provider,
    memory::MemoryEngine,
    store::{Answer, FailureClass, InstanceFetch, MessageRow, NodeRow, Op, StoreFailure, TransactionSteps},
};
use duroxide_store::{Idle, NodeLock, NodeLocks, StoreDriver, StoreProvider};

use crate::support::*;

/// Locks of processes that a test can let die.
#[derive(Debug, Clone, Default)]
struct Processes(Arc<Mutex<BTreeMap<String, Held>>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Yes,
    /// Its process died.
    No,
}

/// A lock that is released when dropped.
struct Lock(Processes, String);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.set(&self.1, Held::No);
    }
}

impl Processes {
    fn set(&self, node: &str, held: Held) {
        self.0.lock().unwrap().insert(node.to_owned(), held);
    }

    fn get(&self, node: &str) -> Option<Held> {
        self.0.lock().unwrap().get(node).copied()
    }
}

impl NodeLocks for Processes {
    fn hold(&self, node: &str) -> Result<NodeLock, StoreFailure> {
        if self.get(node) == Some(Held::Yes) {
            return Err(StoreFailure::new(FailureClass::Retryable, "another has that name"));
        }
        self.set(node, Held::Yes);
        Ok(NodeLock::new(Lock(self.clone(), node.to_owned())))
    }

    fn take_over(&self, node: &str) -> Option<NodeLock> {
        (self.get(node)? == Held::No).then(|| {
            self.set(node, Held::Yes);
            NodeLock::new(Lock(self.clone(), node.to_owned()))
        })
    }

    fn discard(&self, node: &str, lock: NodeLock) {
        drop(lock);
        self.0.lock().unwrap().remove(node);
    }

    fn has_joining_node(&self, joined: &BTreeSet<String>, _within: Duration) -> bool {
        let held = self.0.lock().unwrap();
        held.iter().any(|(node, held)| *held == Held::Yes && !joined.contains(node))
    }
}

/// A store and the locks of its nodes.
struct Shared {
    provider: StoreProvider,
    store: StoreDriver,
    clock: Arc<ManualClock>,
    plan: Plan,
    processes: Processes,
}

fn serve(engine: MemoryEngine) -> Shared {
    let (processes, plan, clock) = (Processes::default(), Plan::default(), Arc::new(ManualClock::new()));
    let mut nonce = 100;
    let (provider, store) = StoreProvider::builder(ScriptedEngine::over(engine, plan.clone()))
        .with_clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .with_nonces(move || {
            nonce += 1;
            nonce
        })
        .with_node_locks(processes.clone())
        .stepped()
        .unwrap();
    Shared { provider, store, clock, plan, processes }
}

/// A store in which a node of another process has claimed the instance `a`.
fn with_claim_of_another_process() -> Shared {
    let mut engine = MemoryEngine::default();
    engine.rules().begin(ManualClock::new().now()).unwrap();
    let row = NodeRow::new(&named("other"));
    let joined = engine.rules().apply(&Op::JoinNode(row), Timestamp::ZERO).unwrap();
    let Answer::Joined(node) = joined else { panic!("{joined:?}") };
    let message = MessageRow::new(start("a"), None).unwrap();
    engine.rules().apply(&Op::EnqueueMessage(message), Timestamp::ZERO).unwrap();
    let request = OrchestrationFetch::new(LOCK, Duration::ZERO).with_node(Some(node));
    assert_eq!(engine.rules().claim_instances(&InstanceFetch::new(&request), 1).unwrap().items.len(), 1);
    engine.rules().commit().unwrap();
    let shared = serve(engine);
    shared.processes.set("other", Held::Yes);
    shared
}

fn named(name: &str) -> NodeAnnouncement {
    NodeAnnouncement { name: name.to_owned(), ..NodeAnnouncement::default() }
}

impl Shared {
    fn join(&mut self, name: &str) -> Box<dyn NodeMembership> {
        complete(&mut self.store, self.provider.join_node(&named(name))).unwrap().unwrap()
    }

    fn fetch(&mut self, node: Option<NodeId>) -> Vec<OrchestrationClaim> {
        let request = OrchestrationFetch::new(LOCK, Duration::ZERO).with_node(node);
        complete(&mut self.store, self.provider.fetch_orchestration_items(&request)).unwrap()
    }

    fn stranded(&mut self) -> Vec<String> {
        let admin = self.provider.as_management_capability().unwrap();
        let found = complete(&mut self.store, admin.list_stranded_work(10)).unwrap();
        found.into_iter().map(|work| work.instance).collect()
    }

    fn nodes(&mut self) -> Vec<String> {
        let nodes = complete(&mut self.store, self.provider.query("nodes", |reader| reader.nodes())).unwrap();
        nodes.into_iter().map(|node| node.name).collect()
    }
}

/// D10: a waiting fetch gets the items of a dead node within a second, in one transaction.
#[test]
fn items_of_a_dead_process_go_to_a_waiting_fetch() {
    let mut shared = with_claim_of_another_process();
    let _own = shared.join("own");
    let Shared { provider, mut store, clock, plan, processes } = shared;
    let mut fetch = pin!(fetch_instances(&provider, 1));
    hand_in(&mut fetch);
    store.run();
    clock.advance(Duration::from_secs(3));
    store.run();
    assert!(poll(&mut fetch).is_pending(), "a process that is only stopped keeps its lease");

    let transactions = plan.count(Point::Begin);
    processes.set("other", Held::No);
    clock.advance(Duration::from_secs(1));
    store.run();
    let taken = answer(&mut fetch).remove(0);
    assert_eq!((taken.instance.as_str(), taken.attempt_count), ("a", 2));
    assert_eq!(plan.count(Point::Begin), transactions + 1);
    let left = complete(&mut store, provider.query("nodes", |reader| reader.nodes())).unwrap();
    assert_eq!(left.into_iter().map(|node| node.name).collect::<Vec<_>>(), ["own"]);
    assert_eq!(processes.get("other"), None, "its traces are gone");
}

/// A node that starts after a crash does not wait for the next check.
#[test]
fn the_first_node_to_join_finds_the_dead_at_once() {
    let mut shared = with_claim_of_another_process();
    shared.processes.set("other", Held::No);
    assert!(shared.fetch(None).is_empty(), "nobody looks before");
    let own = shared.join("own");
    assert_eq!(shared.fetch(Some(own.node())).len(), 1);
    assert_eq!(shared.nodes(), ["own"]);
}

/// D10: if it is unknown whether a process lives, its leases decide.
#[test]
fn a_node_without_a_lock_is_left_to_its_lease() {
    let mut shared = with_claim_of_another_process();
    shared.processes.0.lock().unwrap().clear();
    let own = shared.join("own");
    assert!(shared.fetch(Some(own.node())).is_empty());
    shared.clock.advance(LOCK);
    shared.store.run();
    assert_eq!(shared.fetch(Some(own.node())).len(), 1);
}

#[test]
fn a_node_that_leaves_frees_what_it_holds() {
    let mut shared = serve(MemoryEngine::default());
    let (first, second) = (shared.join("first"), shared.join("second"));
    complete(&mut shared.store, shared.provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    assert_eq!(shared.fetch(Some(first.node())).len(), 1);
    drop(first);
    let taken = shared.fetch(Some(second.node())).remove(0);
    assert_eq!((taken.instance.as_str(), taken.attempt_count), ("a", 2));
    assert_eq!(shared.nodes(), ["second"]);
    assert_eq!(shared.processes.get("first"), None);
    complete(&mut shared.store, shared.provider.commit_round(&taken.lock_token, first_round("a"))).unwrap();
    drop(second);
    assert_eq!(shared.store.run(), Idle::UntilRequest, "without nodes nobody looks after them");
}

/// The future of `join_node` may be dropped at any await; a node that has joined by then ends, too.
#[test]
fn a_dropped_join_leaves_no_node() {
    let mut shared = serve(MemoryEngine::default());
    {
        let announcement = named("impatient");
        let mut join = pin!(shared.provider.join_node(&announcement));
        hand_in(&mut join);
    }
    shared.store.run();
    assert!(shared.nodes().is_empty());
    assert_eq!(shared.processes.get("impatient"), None);
}

/// Until the end is committed the lock stays taken; if that fails, the next check tries again.
#[test]
fn a_node_that_could_not_be_ended_is_ended_later() {
    let mut shared = with_claim_of_another_process();
    let own = shared.join("own");
    shared.store.run();
    shared.processes.set("other", Held::No);
    shared.plan.fail_next(Point::Commit, FailureClass::Retryable);
    shared.clock.advance(Duration::from_secs(1));
    shared.store.run();
    assert_eq!(shared.processes.get("other"), Some(Held::No), "others may try too");
    shared.clock.advance(Duration::from_secs(1));
    assert_eq!(shared.fetch(Some(own.node())).len(), 1);
}

/// Nodes send heartbeats, for processes that cannot see their locks: one commit in ten seconds.
#[test]
fn nodes_are_renewed_now_and_then() {
    let mut shared = serve(MemoryEngine::default());
    let _own = shared.join("own");
    let commits = shared.plan.count(Point::Commit);
    for _ in 0..60 {
        shared.clock.advance(Duration::from_millis(500));
        shared.store.run();
    }
    assert_eq!(shared.plan.count(Point::Commit) - commits, 3);
    let nodes = complete(&mut shared.store, shared.provider.query("nodes", |reader| reader.nodes())).unwrap();
    assert_eq!(nodes[0].seen_at, shared.clock.now());
}

#[test]
fn a_lock_that_cannot_be_had_is_an_error() {
    let mut shared = serve(MemoryEngine::default());
    let _own = shared.join("own");
    let again = complete(&mut shared.store, shared.provider.join_node(&named("own"))).unwrap_err();
    assert!(again.is_retryable(), "{again}");
    assert_eq!(shared.nodes(), ["own"]);
}

/// A node that could not join runs all the same. Its lock shows that until it has joined, also if no node can be ended in
/// the store, and an earlier try does not block it.
#[test]
fn a_node_that_could_not_join_keeps_its_lock_and_joins_later() {
    let mut shared = serve(MemoryEngine::default());
    for class in [FailureClass::Retryable, FailureClass::Permanent, FailureClass::OutcomeUnknown] {
        // The join, and the operations after it.
        shared.plan.fail_next(Point::Commit, class);
        shared.plan.fail_next(Point::Commit, class);
        complete(&mut shared.store, shared.provider.join_node(&named("own"))).unwrap_err();
        shared.store.run();
        assert_eq!(shared.processes.get("own"), Some(Held::Yes), "{class:?}");
        shared.plan.forgive_all();
        shared.clock.advance(Duration::from_secs(1));
        shared.store.run();
        let own = shared.join("own");
        assert_eq!(shared.nodes(), ["own"]);
        drop(own);
        shared.store.run();
        assert_eq!((shared.nodes().len(), shared.processes.get("own")), (0, None));
    }
}

/// A node that gives up joining leaves no lock when its provider is dropped.
#[test]
fn a_node_that_never_joined_leaves_nothing() {
    let mut shared = serve(MemoryEngine::default());
    shared.plan.fail_next(Point::Commit, FailureClass::Retryable);
    complete(&mut shared.store, shared.provider.join_node(&named("own"))).unwrap_err();
    let Shared { provider, mut store, processes, .. } = shared;
    drop(provider);
    assert_eq!(store.run(), Idle::Closed);
    assert_eq!(processes.get("own"), None);
}

/// S3.48: a node that could not join yet takes work, of unknown kinds, so nothing counts as stranded.
#[test]
fn nothing_is_stranded_while_a_node_tries_to_join() {
    let mut shared = serve(MemoryEngine::default());
    let announcement = NodeAnnouncement {
        capability: NodeCapability { asks_for_registered_only: true, ..NodeCapability::default() },
        ..named("own")
    };
    let _own = complete(&mut shared.store, shared.provider.join_node(&announcement)).unwrap();
    complete(&mut shared.store, shared.provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    assert_eq!(shared.stranded(), ["a"]);

    shared.processes.set("joining", Held::Yes);
    assert!(shared.stranded().is_empty());
    shared.processes.set("joining", Held::No);
    assert_eq!(shared.stranded(), ["a"], "its process died");
}

/// S3.48: a node that ends in the transaction that searches stranded work does not count, although its lock is still
/// held.
#[test]
fn a_node_that_ends_is_not_taken_for_one_that_joins() {
    let mut shared = serve(MemoryEngine::default());
    let weak = NodeAnnouncement {
        capability: NodeCapability { asks_for_registered_only: true, ..NodeCapability::default() },
        ..named("weak")
    };
    let _weak = complete(&mut shared.store, shared.provider.join_node(&weak)).unwrap();
    let DispatcherCapabilityFilter { supported_duroxide_versions: replay_versions } =
        DispatcherCapabilityFilter::default_for_current_build();
    let able = NodeAnnouncement {
        capability: NodeCapability { replay_versions, ..NodeCapability::default() },
        ..named("able")
    };
    let able = complete(&mut shared.store, shared.provider.join_node(&able)).unwrap();
    complete(&mut shared.store, shared.provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    let to_end = OrchestrationFetch::new(LOCK, Duration::ZERO).with_only("a");
    let fetched = complete(&mut shared.store, shared.provider.fetch_orchestration_items(&to_end)).unwrap();
    assert!(fetched.is_empty(), "the other node takes it");

    drop(able);
    let fetched = complete(&mut shared.store, shared.provider.fetch_orchestration_items(&to_end)).unwrap();
    assert_eq!(fetched.len(), 1);
}
