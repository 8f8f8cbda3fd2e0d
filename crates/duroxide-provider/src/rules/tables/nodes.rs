//! Nodes.

use duroxide_core::Timestamp;

use crate::{
    ClaimToken, NodeId,
    rules::Rows,
    store::{NodeRow, StoredNode},
};

/// The table of nodes.
pub trait NodeTable {
    /// The number of a node, and the owners of sessions that end with it.
    fn node(&mut self, name: &str) -> Rows<Option<(NodeId, Vec<String>)>>;

    /// Inserts a node, or replaces the one of its name, which keeps its number. Numbers count from 1 and are never reused.
    fn write_node(&mut self, row: &NodeRow, now: Timestamp) -> Rows<NodeId>;

    /// Renews a node. Returns whether its row exists.
    fn touch_node(&mut self, name: &str, now: Timestamp) -> Rows<bool>;

    /// Inserts a node under a number that it had before.
    fn restore_node(&mut self, node: NodeId, row: &NodeRow, now: Timestamp) -> Rows<()>;

    /// All nodes, by number.
    fn nodes(&mut self) -> Rows<Vec<StoredNode>>;

    /// Sets when a node was last seen.
    fn set_node_seen(&mut self, node: NodeId, seen_at: Timestamp) -> Rows<()>;

    /// Deletes a node.
    fn delete_node(&mut self, node: NodeId) -> Rows<()>;

    /// The claims whose lease a node holds after this time: instances before activities, each by number.
    fn claims_of(&mut self, node: NodeId, after: Timestamp) -> Rows<Vec<ClaimToken>>;
}
