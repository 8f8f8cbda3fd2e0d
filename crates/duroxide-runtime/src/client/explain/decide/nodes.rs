//! The capabilities of the live nodes.

use duroxide_provider::{InstanceNeeds, JoinedNode, MissingCapability, NodeCapability};

/// The live nodes.
pub(super) struct LiveNodes<'a> {
    nodes: Vec<&'a JoinedNode>,
    /// Their capabilities, as if each node fetched only registered items: a node that takes other items gives them back.
    /// `None` if the capability of one cannot be read; it may be able to run anything.
    capabilities: Option<Vec<NodeCapability>>,
}

impl<'a> LiveNodes<'a> {
    pub(super) fn new(joined: &'a [JoinedNode], now_ms: u64) -> Self {
        let nodes: Vec<&JoinedNode> = joined.iter().filter(|node| node.is_there(now_ms)).collect();
        let registered_only = |node: &&JoinedNode| {
            let capability = node.capability.clone()?;
            Some(NodeCapability { asks_for_registered_only: true, ..capability })
        };
        Self { capabilities: nodes.iter().map(registered_only).collect(), nodes }
    }

    /// The capability that no node has for an instance; `None` if one can take it, or may be able to.
    pub(super) fn lack_for_instance(&self, needs: &InstanceNeeds) -> Option<MissingCapability> {
        let nodes = self.capabilities.as_deref()?;
        MissingCapability::for_instance(nodes, needs.name.as_deref(), needs.version.as_deref(), needs.pinned)
    }

    /// The capability that no node has for an activity; `None` if one can take it, or may be able to.
    pub(super) fn lack_for_activity(&self, name: &str, tag: Option<&str>) -> Option<MissingCapability> {
        MissingCapability::for_activity(self.capabilities.as_deref()?, name, tag)
    }

    /// The names of the nodes that could take such work but have no handler for it.
    pub(super) fn lacking(&self, lacks: impl Fn(&NodeCapability) -> bool) -> Vec<String> {
        let lacks = |node: &&&JoinedNode| node.capability.as_ref().is_some_and(&lacks);
        self.nodes.iter().filter(lacks).map(|node| node.name.clone()).collect()
    }

    /// How often this node, or without one the strictest of all, fetches something before it is poison.
    pub(super) fn max_attempts(&self, node: Option<&str>) -> Option<u32> {
        let is_asked = |found: &&&JoinedNode| node.is_none_or(|node| found.name == node);
        let asked = self.nodes.iter().filter(is_asked).filter_map(|node| node.capability.as_ref());
        asked.filter_map(|capability| capability.max_attempts).min()
    }
}
