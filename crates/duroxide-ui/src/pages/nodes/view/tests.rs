//! Tests whether a node may end, given the capabilities of all nodes.

use std::collections::BTreeMap;

use duroxide::{InstanceSummary, SemverRange, providers::InstanceCount};

use super::*;

const NOW: u64 = 1_000_000;

fn node(name: &str, handlers: &[(&str, &str)], replays: &str, seen_at_ms: u64) -> JoinedNode {
    let mut capability = NodeCapability::default();
    for (name, version) in handlers {
        let versions = capability.orchestrations.entry((*name).to_owned()).or_default();
        versions.insert(version.parse().unwrap());
    }
    let replayed = replays.parse().unwrap();
    capability.replay_versions = vec![SemverRange::new("0.0.0".parse().unwrap(), replayed)];
    JoinedNode { name: name.to_owned(), capability: Some(capability), seen_at_ms, ..JoinedNode::default() }
}

fn view(nodes: Vec<JoinedNode>, open: &[(&str, &str, &str, u64)], pinned: &[(&str, u64)]) -> View {
    let counts = open.iter().map(|(name, version, status, count)| InstanceCount {
        name: (*name).to_owned(),
        version: (*version).to_owned(),
        status: (*status).to_owned(),
        count: *count,
    });
    let counted = Counted {
        from_ms: 0,
        at_ms: 0,
        summary: InstanceSummary { counts: counts.collect(), ..InstanceSummary::default() },
        pinned: pinned
            .iter()
            .map(|(version, count)| ((*version).to_owned(), *count))
            .collect::<BTreeMap<_, _>>(),
    };
    View::new(Some(&counted), Some(&Queued { queues: None, nodes, now_ms: NOW }))
}

#[test]
fn a_node_that_alone_can_go_on_with_open_instances_must_stay() {
    let old = node("old", &[("Order", "1.0.0")], "0.4.0", NOW);
    let new = node("new", &[("Order", "1.0.0"), ("Order", "2.0.0")], "0.5.0", NOW);
    let open = [
        ("Order", "1.0.0", "Running", 7),
        ("Order", "2.0.0", "Completed", 5),
        ("Order", "2.0.0", "Running", 2),
    ];
    let shown = view(vec![old, new], &open, &[("0.4.0", 7), ("0.5.0", 2)]);
    let nodes = shown.nodes.unwrap();
    assert_eq!(nodes[0].only_here, Vec::<String>::new(), "the new node can do all that the old one can");
    assert_eq!(nodes[1].only_here, ["2 of Order 2.0.0", "2 pinned to duroxide 0.5.0"]);
    assert_eq!(shown.stuck, 0);
    let handlers = shown.handlers.unwrap();
    assert_eq!((handlers[0].count.as_str(), handlers[0].nodes.len()), ("7", 2));
    assert_eq!(handlers[1].nodes, ["new"]);
}

#[test]
fn a_node_that_was_not_seen_for_long_does_not_count() {
    let gone = node("gone", &[("Order", "1.0.0")], "0.5.0", 0);
    let here = node("here", &[("Order", "1.0.0")], "0.5.0", NOW);
    let open = [("Order", "1.0.0", "Running", 1)];
    let nodes = view(vec![gone, here], &open, &[]).nodes.unwrap();
    assert!(!nodes[0].is_there && nodes[1].is_there);
    assert_eq!(nodes[0].only_here, Vec::<String>::new());
    assert_eq!(nodes[1].only_here, ["1 of Order 1.0.0"]);
}

#[test]
fn instances_that_no_live_node_can_take_are_counted() {
    let here = node("here", &[("Order", "1.0.0")], "0.5.0", NOW);
    let open = [("Order", "3.0.0", "Running", 4), ("Order", "3.0.0", "ContinuedAsNew", 1)];
    let shown = view(vec![here], &open, &[("0.6.0", 3)]);
    assert_eq!(shown.stuck, 5);
    assert_eq!(shown.handlers.unwrap()[0].nodes, Vec::<String>::new());
    assert_eq!(shown.pinned.unwrap()[0].nodes, Vec::<String>::new());
}

#[test]
fn a_node_that_cannot_be_read_makes_the_verdict_unknown() {
    let unreadable = JoinedNode { name: "later".to_owned(), seen_at_ms: NOW, ..JoinedNode::default() };
    let nodes = view(vec![unreadable, node("here", &[], "0.5.0", NOW)], &[], &[]).nodes.unwrap();
    assert!(nodes.iter().all(|node| !node.is_known));
    let shown = View::new(None, None);
    assert!(shown.nodes.is_none() && shown.handlers.is_none());
}
