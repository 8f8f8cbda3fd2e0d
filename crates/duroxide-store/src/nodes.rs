//! Nodes of a served store: each holds a lock that ends with its process, and what a dead one held is given to others.

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

/// How often to look whether other nodes are gone, where nodes hold locks.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a node that is there says so. Where nodes hold locks that is for those who cannot see the locks.
pub(crate) const RENEW_INTERVAL: Duration = Duration::from_secs(10);

/// Locks by which nodes show that they live, one for each node, by name. Such a lock ends with the process that holds
/// it, however it ends, and stays while the process is only stopped.
pub trait NodeLocks: fmt::Debug + Send + Sync + 'static {
    /// Takes the lock of a node that is about to join. What an earlier try to join left behind must not prevent it.
    ///
    /// # Errors
    /// If the name cannot be used, or someone holds the lock.
    fn hold(&self, node: &str) -> Result<NodeLock, StoreFailure>;

    /// Takes the lock of a node whose process has ended; `None` if it lives, or if nobody can tell.
    fn take_over(&self, node: &str) -> Option<NodeLock>;

    /// The nodes that were found gone since this was last asked, with their locks, where that is found out elsewhere.
    /// `None`, as by default, if the store has to list all nodes and try to take over each.
    fn gone_nodes(&self) -> Option<Vec<(String, NodeLock)>> {
        None
    }

    /// Whether locks of this store's nodes were lost and taken again since this was last asked: in between, others may have
    /// taken these nodes for dead. By default no lock is ever lost while its process lives.
    fn were_interrupted(&self) -> bool {
        false
    }

    /// How often to look which nodes are gone.
    fn look_interval(&self) -> Duration {
        LOOK_INTERVAL
    }

    /// How often a node that is there says so in its row, for those who cannot see the locks.
    fn renew_interval(&self) -> Duration {
        RENEW_INTERVAL
    }

    /// Removes all traces of a node that is gone.
    fn discard(&self, node: &str, lock: NodeLock);

    /// Notes that a node which holds its lock tries again to join.
    fn note_join_attempt(&self, node: &str) {
        let _ = node;
    }

    /// Whether a node that is not among `joined` holds its lock and tried to join not longer than `within` ago: it runs
    /// and takes work, but nobody can read what it is able to do. By default nobody can tell, and there is none.
    fn has_joining_node(&self, joined: &BTreeSet<String>, within: Duration) -> bool {
        let _ = (joined, within);
        false
    }
}

/// A short text beside a node's lock. It survives the process that wrote it; it need not survive a loss of power.
pub trait NodeNote: Send + Sync + 'static {
    /// Replaces the text. One that cannot be written is lost: a note is only ever a hint.
    fn write(&self, text: &str);

    /// The text; empty if there is none.
    fn read(&self) -> String;
}

/// A lock that is held. Dropping it lets it go.
pub struct NodeLock {
    _held: Box<dyn Any + Send + Sync>,
    note: Option<Box<dyn NodeNote>>,
}

impl NodeLock {
    /// A lock that lasts as long as this value.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self { _held: Box::new(held), note: None }
    }

    /// The same lock with a note: the one that its holder writes, or that a dead holder has left.
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

/// The callers' side of [`NodeLocks`]: takes the locks of nodes that join. A node that could not join runs all the same and
/// tries again, so its lock is kept in between: it shows other processes that a node is there which they do not know.
#[derive(Debug, Default)]
pub(crate) struct Joining {
    locks: Option<Arc<dyn NodeLocks>>,
    kept: Mutex<BTreeMap<String, NodeLock>>,
}

impl Joining {
    pub(crate) fn new(locks: Option<Arc<dyn NodeLocks>>) -> Self {
        Self { locks, ..Self::default() }
    }

    pub(crate) fn locks(&self) -> Option<Arc<dyn NodeLocks>> {
        self.locks.clone()
    }

    /// The lock of a node that joins: the one it has from an earlier try, or a new one. `None` where nodes need none.
    ///
    /// # Errors
    /// See [`NodeLocks::hold`].
    pub(crate) fn begin(&self, node: &str) -> Result<Option<NodeLock>, StoreFailure> {
        let Some(locks) = &self.locks else { return Ok(None) };
        match self.kept().remove(node) {
            Some(lock) => {
                locks.note_join_attempt(node);
                Ok(Some(lock))
            }
            None => locks.hold(node).map(Some),
        }
    }

    /// The node could not join. Its row, if the outcome is unknown and it has one, is used by its next try.
    pub(crate) fn failed(&self, mut leaves: Leaves) {
        let name = std::mem::take(&mut leaves.name);
        // Without a lock nobody can see the node, and its row has to go.
        match leaves.lock.take() {
            Some(lock) => drop(self.kept().insert(name, lock)),
            None => leaves.name = name,
        }
    }

    /// The nodes that never joined, with their locks.
    pub(crate) fn give_up(&self) -> impl Iterator<Item = GoneNode> + use<> {
        let kept = std::mem::take(&mut *self.kept());
        kept.into_iter().map(|(name, lock)| GoneNode { name, lock: Some(lock) })
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, NodeLock>> {
        // A map that is changed in single steps is whole whatever panicked.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A node's place in a served store. Dropped, it hands its lock to the store, which ends what the node holds. A store
/// that has closed drops the lock, and whoever looks next finds the node gone.
#[derive(Debug)]
pub(crate) struct Membership {
    node: NodeId,
    leaves: Leaves,
}

/// What leaves a store when it is dropped: a node that has joined, or one that gave up joining.
#[derive(Debug)]
pub(crate) struct Leaves {
    name: String,
    lock: Option<NodeLock>,
    store: Arc<Submitter>,
}

impl Leaves {
    pub(crate) fn new(name: &str, lock: Option<NodeLock>, store: Arc<Submitter>) -> Self {
        Self { name: name.to_owned(), lock, store }
    }

    /// The node has joined under this number.
    pub(crate) fn joined(self, node: NodeId) -> Membership {
        Membership { node, leaves: self }
    }
}

impl NodeMembership for Membership {
    fn node(&self) -> NodeId {
        self.node
    }

    fn note_starting(&self, claim: Option<&ClaimToken>) {
        if let Some(note) = self.leaves.lock.as_ref().and_then(|lock| lock.note.as_ref()) {
            note.write(&claim.map(ClaimToken::to_string).unwrap_or_default());
        }
    }
}

impl Drop for Leaves {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        // Without a name it has been disarmed: the node goes on trying to join.
        if !name.is_empty() {
            self.store.send(Request::NodeGone(Box::new(GoneNode { name, lock: self.lock.take() })));
        }
    }
}
