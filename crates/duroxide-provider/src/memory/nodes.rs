//! Nodes: who claims, and what becomes free when one of them is gone.

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::Timestamp;

use super::{MemoryEngine, activities::Activity, lock::Lock};
use crate::{
    NodeId,
    store::{Answer, NodeRow, StoredNode, bounds::NODE_FORGOTTEN_AFTER},
};

/// The nodes that have joined, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Nodes {
    rows: BTreeMap<NodeId, Node>,
    last: u64,
}

#[derive(Debug, Clone)]
struct Node {
    row: NodeRow,
    started_at: Timestamp,
    seen_at: Timestamp,
}

impl Nodes {
    fn find(&self, name: &str) -> Option<NodeId> {
        self.rows.iter().find(|(_, node)| node.row.name == name).map(|(id, _)| *id)
    }

    fn join(&mut self, row: &NodeRow, now: Timestamp) -> NodeId {
        let id = self.find(&row.name).unwrap_or_else(|| {
            self.last += 1;
            NodeId(self.last)
        });
        self.rows.insert(id, Node { row: row.clone(), started_at: now, seen_at: now });
        id
    }

    fn renew(&mut self, names: &[String], now: Timestamp) {
        for node in self.rows.values_mut().filter(|node| names.contains(&node.row.name)) {
            node.seen_at = now;
        }
        self.rows.retain(|_, node| now.saturating_since(node.seen_at) < NODE_FORGOTTEN_AFTER);
    }

    /// The clock was set forward by this much: nodes are no less there than before.
    pub(super) fn move_seen(&mut self, now: Timestamp, by: Duration) {
        for node in self.rows.values_mut() {
            node.seen_at = node.seen_at.saturating_add(by).min(now);
        }
    }

    pub(super) fn stored(&self) -> Vec<StoredNode> {
        let stored = |(id, node): (&NodeId, &Node)| StoredNode {
            id: *id,
            name: node.row.name.clone(),
            started_at: node.started_at,
            seen_at: node.seen_at,
            capability: node.row.capability.clone(),
        };
        self.rows.iter().map(stored).collect()
    }
}

impl MemoryEngine {
    pub(super) fn join_node(&mut self, row: &NodeRow) -> Answer {
        Answer::Joined(self.nodes.join(row, self.now))
    }

    pub(super) fn renew_nodes(&mut self, names: &[String]) -> Answer {
        self.nodes.renew(names, self.now);
        Answer::Done
    }

    /// Ends what a node held. The attempts stay counted: it may have died of them. What was attempted before is left to
    /// its lease: it may be what killed the node, and while it rests the others get ahead of it.
    pub(super) fn end_node(&mut self, name: &str) -> Answer {
        let Some((id, node)) = self.nodes.find(name).and_then(|id| self.nodes.rows.remove_entry(&id)) else {
            return Answer::Done;
        };
        let now = self.now;
        let held = |lock: &Option<Lock>| lock.as_ref().is_some_and(|lock| lock.is_held_by(id, now));
        let instances: Vec<_> = self
            .instances
            .iter()
            .filter(|(_, row)| held(&row.lock) && !row.suspect)
            .map(|(key, _)| key)
            .collect();
        for key in instances {
            self.instances.change(key, now, |instance| end(&mut instance.lock, now));
        }
        let is_first_attempt = |activity: &Activity| activity.attempt_count <= 1;
        for key in self.activities.keys_where(|activity| held(&activity.lock) && is_first_attempt(activity)) {
            self.activities.change(key, now, |activity| end(&mut activity.lock, now));
        }
        for session in self.activities.sessions().end_of(&node.row.session_owners, now) {
            self.activities.file_session(&session, now);
        }
        Answer::Done
    }
}

fn end(lock: &mut Option<Lock>, now: Timestamp) {
    if let Some(lock) = lock {
        lock.end(now);
    }
}
