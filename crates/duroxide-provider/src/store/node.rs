//! Nodes as they are stored.

use duroxide_core::Timestamp;

use crate::{NodeAnnouncement, NodeId};

/// A node that joins, in the form a store keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// The name of the node, unique in the store.
    pub name: String,
    /// The owners of sessions that end with it.
    pub session_owners: Vec<String>,
    /// The capability of the node, as JSON.
    pub capability: String,
}

impl NodeRow {
    /// The row of an announcement.
    pub fn new(announcement: &NodeAnnouncement) -> Self {
        Self {
            name: announcement.name.clone(),
            session_owners: announcement.session_owners.clone(),
            // Names, versions and tags, under text keys: `serde_json` cannot fail.
            capability: serde_json::to_string(&announcement.capability).unwrap_or_default(),
        }
    }
}

/// A stored node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredNode {
    /// Its number.
    pub id: NodeId,
    /// The name of the node, unique in the store.
    pub name: String,
    /// When it joined.
    pub started_at: Timestamp,
    /// When it was last renewed.
    pub seen_at: Timestamp,
    /// The capability of the node, as JSON.
    pub capability: String,
}
