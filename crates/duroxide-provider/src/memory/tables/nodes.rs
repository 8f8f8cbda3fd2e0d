//! Nodes that have joined.

use std::collections::BTreeMap;

use duroxide_core::Timestamp;

use super::{
    MemoryTables,
    table::{Index, Table},
};
use crate::{
    ClaimToken, NodeId,
    rules::{NodeTable, Rows},
    store::{NodeRow, StoredNode},
};

pub(in crate::memory) type Nodes = Table<NodeId, Node, ByName>;

#[derive(Debug, Clone)]
pub(in crate::memory) struct Node {
    pub(in crate::memory) row: NodeRow,
    pub(in crate::memory) started_at: Timestamp,
    pub(in crate::memory) seen_at: Timestamp,
}

#[derive(Debug, Clone, Default)]
pub(in crate::memory) struct ByName(BTreeMap<String, NodeId>);

impl Index<NodeId, Node> for ByName {
    fn file(&mut self, id: &NodeId, before: Option<&Node>, after: Option<&Node>) {
        before.map(|node| self.0.remove(&node.row.name));
        self.0.extend(after.map(|node| (node.row.name.clone(), *id)));
    }
}

impl Nodes {
    pub(in crate::memory) fn find(&self, name: &str) -> Option<NodeId> {
        self.index().0.get(name).copied()
    }

    pub(in crate::memory) fn stored(&self) -> Vec<StoredNode> {
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

impl NodeTable for MemoryTables {
    fn node(&mut self, name: &str) -> Rows<Option<(NodeId, Vec<String>)>> {
        let node = self.nodes.find(name).and_then(|id| Some((id, self.nodes.get(&id)?)));
        Ok(node.map(|(id, node)| (id, node.row.session_owners.clone())))
    }

    fn write_node(&mut self, row: &NodeRow, now: Timestamp) -> Rows<NodeId> {
        let id = self.nodes.find(&row.name).unwrap_or_else(|| {
            self.last_node += 1;
            NodeId(self.last_node)
        });
        self.nodes.put(id, Node { row: row.clone(), started_at: now, seen_at: now });
        Ok(id)
    }

    fn touch_node(&mut self, name: &str, now: Timestamp) -> Rows<bool> {
        let Some(id) = self.nodes.find(name) else { return Ok(false) };
        self.set_node_seen(id, now)?;
        Ok(true)
    }

    fn restore_node(&mut self, node: NodeId, row: &NodeRow, now: Timestamp) -> Rows<()> {
        self.nodes.put(node, Node { row: row.clone(), started_at: now, seen_at: now });
        Ok(())
    }

    fn nodes(&mut self) -> Rows<Vec<StoredNode>> {
        Ok(self.nodes.stored())
    }

    fn set_node_seen(&mut self, node: NodeId, seen_at: Timestamp) -> Rows<()> {
        self.nodes.update(&node, |node| node.seen_at = seen_at);
        Ok(())
    }

    fn delete_node(&mut self, node: NodeId) -> Rows<()> {
        self.nodes.remove(&node);
        Ok(())
    }

    fn claims_of(&mut self, node: NodeId, after: Timestamp) -> Rows<Vec<ClaimToken>> {
        let instances = self.instances.leased(after).filter_map(|row| row.lock.as_ref());
        let instances = instances.map(|lock| &lock.lease).filter(|lease| lease.node == Some(node));
        let activities = self.activities.leased(after).filter_map(|row| row.lock.as_ref());
        let activities = activities.filter(|lease| lease.node == Some(node));
        let instances = instances.map(|lease| ClaimToken::Instance(lease.token.clone()));
        Ok(instances.chain(activities.map(|lease| ClaimToken::Activity(lease.token.clone()))).collect())
    }
}
