//! [`LockedNodes`]: the node locks of a process. It outlives each session connection.

use std::collections::{BTreeMap, BTreeSet};

/// The node locks of a process.
#[derive(Debug, Default)]
pub(super) struct LockedNodes {
    /// The nodes of this process, and whether their locks are held now. The next session connection takes lost locks again.
    own: BTreeMap<String, bool>,
    /// Dead nodes that this process is ending.
    ending: BTreeSet<String>,
}

impl LockedNodes {
    /// Marks all locks as lost, because their connection has ended.
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

    /// Whether this process has nodes. A process without nodes, such as a client, ends no dead nodes.
    pub(super) fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// The nodes of this process whose locks were lost.
    pub(super) fn lost(&self) -> Vec<String> {
        self.own.iter().filter(|(_, is_held)| !**is_held).map(|(node, _)| node.clone()).collect()
    }

    /// The nodes of this process, and the dead nodes that it is ending.
    pub(super) fn nodes(&self) -> Vec<String> {
        self.own.keys().chain(&self.ending).cloned().collect()
    }
}
