//! Finds nodes that have died, and records that this store's own nodes are alive.

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

/// The nodes that a store looks after.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    locks: Option<Arc<dyn NodeLocks>>,
    /// The nodes that joined through this store, with their numbers.
    own: BTreeMap<String, (NodeId, NodeRow)>,
    /// The nodes that are being ended, with their locks, which keep others from ending them until the commit.
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

    /// Whether others may have taken our nodes for dead since this was last asked.
    fn were_interrupted(&self) -> bool {
        self.locks.as_ref().is_some_and(|locks| locks.were_interrupted())
    }

    /// The names of the nodes that are being ended.
    pub(super) fn ending(&self) -> BTreeSet<String> {
        self.ending.keys().cloned().collect()
    }

    /// Forgets the lock of a node that has ended; of one that could not be ended it lets go, to be tried again.
    fn ended(&mut self, name: &str, success: bool) {
        if let (Some(Some(lock)), Some(locks), true) = (self.ending.remove(name), &self.locks, success) {
            locks.discard(name, lock);
        }
    }
}

impl StoreDriver {
    /// Once in a while: ends nodes that are gone, and renews our own.
    pub(super) fn tend_nodes(&mut self, now: Timestamp) {
        self.look_for_dead_nodes(now);
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

    fn look_for_dead_nodes(&mut self, now: Timestamp) {
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

    /// Has everything ended that a node holds.
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

    /// Takes note of what became of an operation on nodes.
    pub(super) fn note_node(&mut self, op: &Op, answer: &Result<Answer, ApplyError>) {
        match (op, answer) {
            (Op::JoinNode(row), Ok(Answer::Joined(node))) => {
                if self.nodes.own.is_empty() {
                    self.nodes.renewed_at = self.clock.now();
                }
                self.nodes.own.insert(row.name.clone(), (*node, row.clone()));
                self.machine.has_nodes(true);
            }
            (Op::EndNode { name, .. }, answer) => self.nodes.ended(name, answer.is_ok()),
            // Due again at once.
            (Op::RenewNodes { .. }, Err(_)) => self.nodes.renewed_at = Timestamp::ZERO,
            _ => {}
        }
    }
}
