//! Nodes: which claims they hold, and how these are released when a node ends.

use duroxide_core::Timestamp;

use super::{ModelEngine, leases::Lock};
use crate::{
    ClaimToken, Losses, NodeId,
    store::{Answer, NodeRow, StoredNode, bounds::NODE_FORGOTTEN_AFTER},
};

#[derive(Debug, Clone)]
pub(super) struct Node {
    row: NodeRow,
    started_at: Timestamp,
    pub(super) seen_at: Timestamp,
}

impl ModelEngine {
    fn find_node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().find(|(_, node)| node.row.name == name).map(|(id, _)| *id)
    }

    pub(super) fn join_node(&mut self, row: &NodeRow) -> Answer {
        let id = self.find_node(&row.name).unwrap_or_else(|| {
            self.last_node += 1;
            NodeId(self.last_node)
        });
        self.nodes.insert(id, Node { row: row.clone(), started_at: self.now, seen_at: self.now });
        Answer::Joined(id)
    }

    pub(super) fn renew_nodes(&mut self, nodes: &[(NodeId, NodeRow)]) -> Answer {
        let now = self.now;
        for (id, row) in nodes {
            let id = self.find_node(&row.name).unwrap_or(*id);
            let absent = || Node { row: row.clone(), started_at: now, seen_at: now };
            self.nodes.entry(id).or_insert_with(absent).seen_at = now;
        }
        self.nodes.retain(|_, node| now.saturating_since(node.seen_at) < NODE_FORGOTTEN_AFTER);
        Answer::Done
    }

    /// Ends the leases of a node. If one of its claims is to blame, that one keeps its lease and the others are abandoned,
    /// their attempt taken back.
    pub(super) fn end_node(&mut self, name: &str, blamed: Option<&ClaimToken>) -> Answer {
        let Some(id) = self.find_node(name) else { return Answer::Done };
        let node = self.nodes.remove(&id).unwrap();
        let held = self.held_by(id);
        match blamed.filter(|blamed| held.contains(blamed)) {
            None => held.iter().for_each(|claim| self.end_claim(claim)),
            Some(blamed) => {
                let blamed_losses = self.count_losses(blamed, |losses| losses.blamed += 1);
                // The first blame may have hit the wrong one.
                let is_first_blame = blamed_losses.blamed == 1;
                for claim in held.iter().filter(|claim| *claim != blamed) {
                    self.count_losses(claim, |losses| losses.lost += u32::from(is_first_blame));
                    match claim {
                        ClaimToken::Instance(token) => self.abandon_instance(token, None, true),
                        ClaimToken::Activity(token) => self.abandon_activity(token, None, true),
                    }
                    .unwrap();
                }
            }
        }
        node.row.session_owners.iter().for_each(|owner| self.end_sessions(owner));
        Answer::Done
    }

    /// The claims of a node: instances before activities, each in the order of their rows.
    fn held_by(&self, node: NodeId) -> Vec<ClaimToken> {
        let is_held = |lock: &&Lock| lock.node == Some(node) && lock.is_live(self.now);
        let instances = self.instances.values().filter_map(|row| row.lock.as_ref()).filter(is_held);
        let activities = self.activities.values().filter_map(|row| row.lock.as_ref()).filter(is_held);
        let instances = instances.map(|lock| ClaimToken::Instance(lock.token.clone()));
        instances.chain(activities.map(|lock| ClaimToken::Activity(lock.token.clone()))).collect()
    }

    fn end_claim(&mut self, claim: &ClaimToken) {
        let now = self.now;
        match claim {
            ClaimToken::Instance(token) => {
                let key = self.locked_instance(token).unwrap();
                self.change(key, |instance| instance.lock.as_mut().unwrap().until = now);
            }
            ClaimToken::Activity(token) => {
                let key = self.locked_activity(token).unwrap();
                let activity = self.activities.get_mut(&key).unwrap();
                activity.lock.as_mut().unwrap().until = now;
                activity.settle(now);
            }
        }
    }

    /// Changes the losses of a claim, and returns them.
    fn count_losses(&mut self, claim: &ClaimToken, change: impl FnOnce(&mut Losses)) -> Losses {
        match claim {
            ClaimToken::Instance(token) => {
                let key = self.locked_instance(token).unwrap();
                let instance = self.instances.get_mut(&key).unwrap();
                change(&mut instance.losses);
                instance.may_be_poison |= instance.losses.lost > 0;
                instance.losses
            }
            ClaimToken::Activity(token) => {
                let key = self.locked_activity(token).unwrap();
                let activity = self.activities.get_mut(&key).unwrap();
                change(&mut activity.losses);
                activity.losses
            }
        }
    }

    pub(super) fn stored_nodes(&self) -> Vec<StoredNode> {
        let stored = |(id, node): (&NodeId, &Node)| StoredNode {
            id: *id,
            name: node.row.name.clone(),
            started_at: node.started_at,
            seen_at: node.seen_at,
            capability: node.row.capability.clone(),
        };
        self.nodes.iter().map(stored).collect()
    }
}
