//! Nodes: who claims, and what becomes free when one of them is gone.

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::Timestamp;

use super::{MemoryEngine, lock::Lock};
use crate::{
    ClaimToken, Losses, NodeId,
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

    /// Ends what a node held. Its attempts stay counted, because any of them may have ended the node. If one is known to
    /// have ended it, that one keeps its lease, so that the others get ahead of it, and they get their attempt back.
    pub(super) fn end_node(&mut self, name: &str, blamed: Option<&ClaimToken>) -> Answer {
        let Some((id, node)) = self.nodes.find(name).and_then(|id| self.nodes.rows.remove_entry(&id)) else {
            return Answer::Done;
        };
        let held = self.held_by(id);
        match blamed.filter(|blamed| held.contains(blamed)) {
            None => held.iter().for_each(|claim| self.end_claim(claim)),
            Some(blamed) => {
                let killer = self.change_losses(blamed, Losses::blamed_again);
                held.iter().filter(|claim| *claim != blamed).for_each(|claim| self.spare(claim, killer));
            }
        }
        let now = self.now;
        for session in self.activities.sessions().end_of(&node.row.session_owners, now) {
            self.activities.file_session(&session, now);
        }
        Answer::Done
    }

    /// The claims of a node: instances before activities, each in the order of their rows.
    fn held_by(&self, node: NodeId) -> Vec<ClaimToken> {
        let held = |lock: &Option<Lock>| {
            lock.as_ref().filter(|lock| lock.is_held_by(node, self.now)).map(|lock| lock.token().to_owned())
        };
        let instances =
            self.instances.iter().filter_map(|(_, row)| held(&row.lock)).map(ClaimToken::Instance);
        let activities = self.activities.iter().filter_map(|row| held(&row.lock)).map(ClaimToken::Activity);
        instances.chain(activities).collect()
    }

    fn end_claim(&mut self, claim: &ClaimToken) {
        let now = self.now;
        match claim {
            ClaimToken::Instance(token) => {
                if let Some((key, _)) = self.instances.holder_of(token) {
                    self.instances.change(key, now, |instance| end(&mut instance.lock, now));
                }
            }
            ClaimToken::Activity(token) => {
                if let Some((key, _)) = self.activities.holder_of(token) {
                    self.activities.change(key, now, |activity| end(&mut activity.lock, now));
                }
            }
        }
    }

    /// Gives back a claim that did not end its node.
    fn spare(&mut self, claim: &ClaimToken, killer: Losses) {
        self.change_losses(claim, |losses| losses.beside(killer));
        // It was found by its token just now.
        let _ = match claim {
            ClaimToken::Instance(token) => self.abandon_instance(token, None, true),
            ClaimToken::Activity(token) => self.abandon_activity(token, None, true),
        };
    }

    /// Changes what is counted of a claim, and returns it.
    fn change_losses(&mut self, claim: &ClaimToken, change: impl FnOnce(Losses) -> Losses) -> Losses {
        let mut changed = Losses::default();
        match claim {
            ClaimToken::Instance(token) => {
                if let Some((key, instance)) = self.instances.holder_of(token) {
                    changed = change(instance.losses);
                    self.instances.change(key, self.now, |instance| {
                        instance.losses = changed;
                        instance.suspect |= changed.lost > 0;
                    });
                }
            }
            ClaimToken::Activity(token) => {
                if let Some((key, activity)) = self.activities.holder_of(token) {
                    changed = change(activity.losses);
                    self.activities.change(key, self.now, |activity| activity.losses = changed);
                }
            }
        }
        changed
    }
}

fn end(lock: &mut Option<Lock>, now: Timestamp) {
    if let Some(lock) = lock {
        lock.end(now);
    }
}
