//! Ends dead nodes, and renews the rows of this store's own nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use duroxide_core::Timestamp;
use duroxide_provider::{
    ClaimToken, NodeId,
    store::{Answer, ApplyError, NodeRow, Op},
};

use super::StoreDriver;
use crate::{
    job::Job,
    log,
    nodes::{NodeLock, NodeLocks, RENEW_INTERVAL},
    submit::Request,
};

/// The nodes that joined through this store, and dead nodes that it ends.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    locks: Option<Arc<dyn NodeLocks>>,
    /// The nodes that joined through this store, with their numbers and rows.
    own: BTreeMap<String, (NodeId, NodeRow)>,
    /// The nodes that are being ended, with their locks: until the commit no other process may end them.
    ending: BTreeMap<String, Option<NodeLock>>,
    renewed_at: Timestamp,
}

impl Nodes {
    pub(super) fn new(locks: Option<Arc<dyn NodeLocks>>) -> Self {
        Self { locks, ..Self::default() }
    }

    pub(super) fn locks(&self) -> Option<&dyn NodeLocks> {
        self.locks.as_deref()
    }

    /// Whether other processes may have taken our nodes for dead since the last call.
    fn were_interrupted(&self) -> bool {
        self.locks.as_ref().is_some_and(|locks| locks.were_interrupted())
    }

    /// The names of the nodes that are being ended.
    pub(super) fn ending(&self) -> BTreeSet<String> {
        self.ending.keys().cloned().collect()
    }

    /// Discards the lock of a node that has ended; if ending it failed, releases its lock for a retry.
    fn ended(&mut self, name: &str, success: bool) {
        if let (Some(Some(lock)), Some(locks), true) = (self.ending.remove(name), &self.locks, success) {
            locks.discard(name, lock);
        }
    }
}

impl StoreDriver {
    /// Ends dead nodes and renews our own rows, at intervals.
    pub(super) fn tend_nodes(&mut self, now: Timestamp) {
        self.find_dead_nodes(now);
        let intervals = self.nodes.locks().map(|locks| (locks.look_interval(), locks.renew_interval()));
        let (look, renew) = intervals.unwrap_or((RENEW_INTERVAL, RENEW_INTERVAL));
        let is_due = now.saturating_since(self.nodes.renewed_at) >= renew || now < self.nodes.renewed_at;
        if is_due || self.nodes.were_interrupted() {
            self.nodes.renewed_at = now;
            let nodes = self.nodes.own.values().cloned().collect();
            self.machine.accept(Request::Job(Job::unattended(Op::RenewNodes { nodes }, now)));
        }
        self.machine.tended_nodes(now.saturating_add(look));
    }

    fn find_dead_nodes(&mut self, now: Timestamp) {
        let Some(locks) = self.nodes.locks.clone() else { return };
        if let Some(gone) = locks.gone_nodes() {
            gone.into_iter().for_each(|(name, lock)| self.take_over(name, lock, now));
            return;
        }
        let others = match self.call("nodes", |engine| engine.nodes()) {
            Ok(nodes) => {
                nodes.into_iter().map(|node| node.name).filter(|name| !self.nodes.own.contains_key(name))
            }
            Err(failure) => return log::upkeep_failed(&self.name, "nodes", &failure),
        };
        for name in others.collect::<Vec<_>>() {
            if let Some(lock) = locks.take_over(&name) {
                self.take_over(name, lock, now);
            }
        }
    }

    fn take_over(&mut self, name: String, lock: NodeLock, now: Timestamp) {
        let blamed = lock.starting();
        log::node_gone(&self.name, &name, blamed.as_ref());
        self.end_node(name, Some(lock), blamed, now);
    }

    /// Queues the operation that ends a node's leases.
    pub(super) fn end_node(
        &mut self,
        name: String,
        lock: Option<NodeLock>,
        blamed: Option<ClaimToken>,
        now: Timestamp,
    ) {
        self.nodes.own.remove(&name);
        self.nodes.ending.insert(name.clone(), lock);
        self.machine.has_nodes(!self.nodes.own.is_empty());
        self.machine.accept(Request::Job(Job::unattended(Op::EndNode { name, blamed }, now)));
    }

    /// Updates the node list after a node operation.
    pub(super) fn note_node(&mut self, op: &Op, answer: &Result<Answer, ApplyError>) {
        if let (Op::JoinNode(row), Ok(Answer::Joined(node))) = (op, answer) {
            if self.nodes.own.is_empty() {
                self.nodes.renewed_at = self.clock.now();
            }
            self.nodes.own.insert(row.name.clone(), (*node, row.clone()));
            self.machine.has_nodes(true);
        }
        if let Op::EndNode { name, .. } = op {
            self.nodes.ended(name, answer.is_ok());
        }
        if let (Op::RenewNodes { .. }, Err(_)) = (op, answer) {
            // Due again at once.
            self.nodes.renewed_at = Timestamp::ZERO;
        }
    }
}
