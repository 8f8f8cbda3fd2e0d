//! Nodes that have joined.

use std::collections::BTreeMap;

use duroxide_core::Timestamp;

use super::table::{Index, Table};
use crate::{
    NodeId,
    store::{NodeRow, StoredNode},
};

pub(super) type Nodes = Table<NodeId, Node, ByName>;

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) row: NodeRow,
    pub(super) started_at: Timestamp,
    pub(super) seen_at: Timestamp,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ByName(BTreeMap<String, NodeId>);

impl Index<NodeId, Node> for ByName {
    fn file(&mut self, id: &NodeId, before: Option<&Node>, after: Option<&Node>) {
        before.map(|node| self.0.remove(&node.row.name));
        self.0.extend(after.map(|node| (node.row.name.clone(), *id)));
    }
}

impl Nodes {
    pub(super) fn find(&self, name: &str) -> Option<NodeId> {
        self.index().0.get(name).copied()
    }

    pub(super) fn stored(&self) -> Vec<StoredNode> {
        let stored = |(id, node): (&NodeId, &Node)| StoredNode {
            id: *id,
            name: node.row.name.clone(),
            started_at: node.started_at,
            seen_at: node.seen_at,
            capability: node.row.capability.clone(),
        };
        self.iter().map(stored).collect()
    }
}
