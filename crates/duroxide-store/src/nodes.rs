//! Nodes of a served store. Each node holds a lock that ends with its process; other processes notice that, and release the
//! claims of the dead node.

pub(crate) mod stranded;

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use duroxide_provider::{ClaimToken, NodeId, NodeMembership, store::StoreFailure};

use crate::submit::{GoneNode, Request, Submitter};

/// How often to check for dead nodes, where nodes hold locks.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Heartbeat interval. Where nodes hold locks, the heartbeat serves readers that cannot see the locks.
pub(crate) const RENEW_INTERVAL: Duration = Duration::from_secs(10);

/// Locks that show which nodes are alive, one per node, by name. A lock ends with the process that holds it, also if that
/// process is killed, and stays while the process is only stopped.
pub trait NodeLocks: fmt::Debug + Send + Sync + 'static {
    /// Takes the lock of a node that is about to join. Remains of an earlier attempt to join must not prevent it.
    ///
    /// # Errors
    /// If the name cannot be used, or another process holds the lock.
    fn hold(&self, node: &str) -> Result<NodeLock, StoreFailure>;

    /// Takes the lock of a node whose process has ended; `None` if the process lives, or if that is unknown.
    fn take_over(&self, node: &str) -> Option<NodeLock>;

    /// The dead nodes that were found since the last call, with their locks, if the implementation finds dead nodes
    /// itself. `None`, the default, if the store has to list all nodes and try to take over each.
    fn gone_nodes(&self) -> Option<Vec<(String, NodeLock)>> {
        None
    }

    /// Whether locks of this store's nodes were lost and taken again since the last call: in between, other processes may
    /// have taken these nodes for dead. By default no lock is ever lost while its process lives.
    fn were_interrupted(&self) -> bool {
        false
    }

    /// How often to check for dead nodes.
    fn look_interval(&self) -> Duration {
        LOOK_INTERVAL
    }

    /// How often a node renews its row, for readers that cannot see the locks.
    fn renew_interval(&self) -> Duration {
        RENEW_INTERVAL
    }

    /// Removes all traces of a dead node.
    fn discard(&self, node: &str, lock: NodeLock);

    /// Notes that a node that holds its lock tries again to join.
    fn note_join_attempt(&self, node: &str) {
        let _ = node;
    }

    /// Whether a node that is not among `joined` holds its lock and tried to join within the last `within`: such a node takes
    /// work, but its capabilities are unknown. The default is `false`.
    fn has_joining_node(&self, joined: &BTreeSet<String>, within: Duration) -> bool {
        let _ = (joined, within);
        false
    }
}

/// A short text stored with a node's lock. It survives the process that wrote it; it need not survive a loss of power.
pub trait NodeNote: Send + Sync + 'static {
    /// Replaces the text. An error is ignored: a note is only a hint.
    fn write(&self, text: &str);

    /// The text; empty if none was written.
    fn read(&self) -> String;
}

/// A held lock. Dropping it releases the lock.
pub struct NodeLock {
    _held: Box<dyn Any + Send + Sync>,
    note: Option<Box<dyn NodeNote>>,
}

impl NodeLock {
    /// A lock that lasts as long as this value.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self { _held: Box::new(held), note: None }
    }

    /// The lock with a note, which its holder writes or a dead holder has left.
    #[must_use]
    pub fn with_note(mut self, note: impl NodeNote) -> Self {
        self.note = Some(Box::new(note));
        self
    }

    /// The claim that was just starting when the last holder of the lock died, if it left a note.
    pub(crate) fn starting(&self) -> Option<ClaimToken> {
        self.note.as_ref()?.read().parse().ok()
    }
}

impl fmt::Debug for NodeLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeLock").finish_non_exhaustive()
    }
}

/// Takes the locks of nodes that join. A node that could not join runs all the same and tries again; its lock is kept in
/// between, so that other processes see that a node runs whose capabilities they do not know.
#[derive(Debug, Default)]
pub(crate) struct Joining {
    locks: Option<Arc<dyn NodeLocks>>,
    /// The locks of nodes that could not join yet.
    retained: Mutex<BTreeMap<String, NodeLock>>,
}

impl Joining {
    pub(crate) fn new(locks: Option<Arc<dyn NodeLocks>>) -> Self {
        Self { locks, ..Self::default() }
    }

    pub(crate) fn locks(&self) -> Option<Arc<dyn NodeLocks>> {
        self.locks.clone()
    }

    /// The lock of a node that joins: that of its earlier attempt, or a new one. `None` where nodes need no lock.
    ///
    /// # Errors
    /// See [`NodeLocks::hold`].
    pub(crate) fn begin(&self, node: &str) -> Result<Option<NodeLock>, StoreFailure> {
        let Some(locks) = &self.locks else { return Ok(None) };
        match self.retained().remove(node) {
            Some(lock) => {
                locks.note_join_attempt(node);
                Ok(Some(lock))
            }
            None => locks.hold(node).map(Some),
        }
    }

    /// The node could not join. If its row was written although the outcome is unknown, the next attempt uses the row.
    pub(crate) fn failed(&self, mut guard: LeaveGuard) {
        let name = std::mem::take(&mut guard.name);
        // Without a lock no process can see the node, so the guard ends it.
        match guard.lock.take() {
            Some(lock) => drop(self.retained().insert(name, lock)),
            None => guard.name = name,
        }
    }

    /// The nodes that never joined, with their locks.
    pub(crate) fn give_up(&self) -> impl Iterator<Item = GoneNode> + use<> {
        let retained = std::mem::take(&mut *self.retained());
        retained.into_iter().map(|(name, lock)| GoneNode { name, lock: Some(lock) })
    }

    fn retained(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, NodeLock>> {
        // Each change of the map is a single step, so it is consistent also after a panic.
        self.retained.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The membership of a node in a served store. Dropped, it sends its lock to the store, which ends the node's leases. A store
/// that has closed drops the lock, and the next process that checks finds the node dead.
#[derive(Debug)]
pub(crate) struct Membership {
    node: NodeId,
    guard: LeaveGuard,
}

/// Ends a node's membership when dropped: of a node that has joined, or of one that gave up joining.
#[derive(Debug)]
pub(crate) struct LeaveGuard {
    name: String,
    lock: Option<NodeLock>,
    store: Arc<Submitter>,
}

impl LeaveGuard {
    pub(crate) fn new(name: &str, lock: Option<NodeLock>, store: Arc<Submitter>) -> Self {
        Self { name: name.to_owned(), lock, store }
    }

    /// The node has joined under this number.
    pub(crate) fn joined(self, node: NodeId) -> Membership {
        Membership { node, guard: self }
    }
}

impl NodeMembership for Membership {
    fn node(&self) -> NodeId {
        self.node
    }

    fn note_starting(&self, claim: Option<&ClaimToken>) {
        if let Some(note) = self.guard.lock.as_ref().and_then(|lock| lock.note.as_ref()) {
            note.write(&claim.map(ClaimToken::to_string).unwrap_or_default());
        }
    }
}

impl Drop for LeaveGuard {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        // An empty name means that `failed` has taken the lock: the node goes on trying to join.
        if !name.is_empty() {
            self.store.send(Request::NodeGone(Box::new(GoneNode { name, lock: self.lock.take() })));
        }
    }
}
