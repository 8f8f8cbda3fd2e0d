//! Lists the nodes that have no handler for some work, for error texts.

use duroxide_provider::{JoinedNode, NodeCapability};

use crate::dispatch::{node::Node, provider_call};

/// The nodes that the store knows. Only read when work is about to be ended.
pub(crate) async fn joined_nodes(node: &Node) -> Vec<JoinedNode> {
    match node.store.as_management_capability() {
        Some(admin) => provider_call("list_nodes", admin.list_nodes()).await.unwrap_or_default(),
        None => Vec::new(),
    }
}

/// Names this node and the other nodes that lack the handler: `node a`, or `nodes a, b`.
pub(crate) fn lacking(this: &str, joined: &[JoinedNode], has: impl Fn(&NodeCapability) -> bool) -> String {
    let lacks = |node: &&JoinedNode| {
        node.name != this && node.capability.as_ref().is_some_and(|capability| !has(capability))
    };
    let others: Vec<&str> = joined.iter().filter(lacks).map(|node| node.name.as_str()).collect();
    match others.is_empty() {
        true => format!("node {this}"),
        false => format!("nodes {this}, {}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nodes_known_to_lack_the_handler_are_named() {
        let node = |name: &str, activities: Option<&[&str]>| JoinedNode {
            name: name.to_owned(),
            capability: activities.map(|names| NodeCapability {
                activities: names.iter().map(|name| (*name).to_owned()).collect(),
                ..NodeCapability::default()
            }),
            ..JoinedNode::default()
        };
        let has = |capability: &NodeCapability| capability.has_activity("charge");
        let joined =
            [node("b", Some(&["charge"])), node("a", Some(&[])), node("d", None), node("c", Some(&["pay"]))];
        assert_eq!(lacking("a", &joined, has), "nodes a, c");
        assert_eq!(lacking("a", &joined[..3], has), "node a");
        assert_eq!(lacking("a", &[], has), "node a");
    }
}
