//! Nodes of a served store: each holds a lock that ends with its process, and what a dead one held is given to others.

use std::{any::Any, fmt, time::Duration};

use duroxide_provider::{NodeId, NodeMembership, store::StoreFailure};

use crate::submit::{GoneNode, Request, Submitter};

/// How often to look whether other nodes are gone, where nodes hold locks.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a node that is there says so. Where nodes hold locks that is for those who cannot see the locks.
pub(crate) const RENEW_INTERVAL: Duration = Duration::from_secs(10);

/// Locks by which nodes show that they live, one for each node, by name. Such a lock ends with the process that holds
/// it, however it ends, and stays while the process is only stopped.
pub trait NodeLocks: fmt::Debug + Send + Sync + 'static {
    /// Takes the lock of a node that is about to join.
    ///
    /// # Errors
    /// If the name cannot be used, or the lock cannot be had.
    fn hold(&self, node: &str) -> Result<NodeLock, StoreFailure>;

    /// Takes the lock of a node whose process has ended; `None` if it lives, or if nobody can tell.
    fn take_over(&self, node: &str) -> Option<NodeLock>;

    /// Removes all traces of a node that is gone.
    fn discard(&self, node: &str, lock: NodeLock);
}

/// A lock that is held. Dropping it lets it go.
pub struct NodeLock {
    _held: Box<dyn Any + Send + Sync>,
}

impl NodeLock {
    /// A lock that lasts as long as this value.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl fmt::Debug for NodeLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeLock").finish_non_exhaustive()
    }
}

/// A node's place in a served store. Dropped, it hands its lock to the store, which ends what the node holds. A store
/// that has closed drops the lock, and whoever looks next finds the node gone.
#[derive(Debug)]
pub(crate) struct Membership {
    node: NodeId,
    _leaves: Leaves,
}

/// What leaves a store when it is dropped: a node that has joined, or one that gave up joining.
#[derive(Debug)]
pub(crate) struct Leaves {
    name: String,
    lock: Option<NodeLock>,
    store: Submitter,
}

impl Leaves {
    pub(crate) fn new(name: &str, lock: Option<NodeLock>, store: Submitter) -> Self {
        Self { name: name.to_owned(), lock, store }
    }

    /// The node has joined under this number.
    pub(crate) fn joined(self, node: NodeId) -> Membership {
        Membership { node, _leaves: self }
    }
}

impl NodeMembership for Membership {
    fn node(&self) -> NodeId {
        self.node
    }
}

impl Drop for Leaves {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        self.store.send(Request::NodeGone(Box::new(GoneNode { name, lock: self.lock.take() })));
    }
}
