//! Which locks of nodes a process has, over all its session connections.

use std::collections::{BTreeMap, BTreeSet};

/// Locks of nodes.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// The nodes of this process, and whether their locks are held now. Those of a connection that ended are taken again on
    /// the next one.
    own: BTreeMap<String, bool>,
    /// Dead nodes that this process is ending.
    ending: BTreeSet<String>,
}

impl Held {
    /// Every lock has ended with its connection.
    pub(super) fn lose(&mut self) {
        self.own.values_mut().for_each(|is_held| *is_held = false);
        self.ending.clear();
    }

    pub(super) fn add_own(&mut self, node: String) {
        self.own.insert(node, true);
    }

    pub(super) fn add_ending(&mut self, node: String) {
        self.ending.insert(node);
    }

    pub(super) fn remove(&mut self, node: &str) {
        self.own.remove(node);
        self.ending.remove(node);
    }

    /// Whether the lock of a node of this process is held.
    pub(super) fn has(&self, node: &str) -> bool {
        self.own.get(node).copied().unwrap_or_default()
    }

    /// Whether nodes of this process are there. A process without any, such as that of a client, ends no dead ones.
    pub(super) fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// The nodes of this process whose locks were lost.
    pub(super) fn lost(&self) -> Vec<String> {
        self.own.iter().filter(|(_, is_held)| !**is_held).map(|(node, _)| node.clone()).collect()
    }

    /// All nodes that this process looks after.
    pub(super) fn known(&self) -> Vec<String> {
        self.own.keys().chain(&self.ending).cloned().collect()
    }
}
