//! `versions`: which versions run, and which live nodes support them. Shows whether a node may be retired.

use clap::Args;
use duroxide::{
    InstanceSummary, SummaryRequest,
    providers::{
        InstanceCount, JoinedNode, MissingCapability, NodeCapability, VersionTriple, short_node_name,
    },
};
use semver::Version;
use serde_json::{Value, json};
use std::{collections::BTreeMap, slice};

use crate::{
    command::Context,
    exit::{Exit, Outcome},
    output::{Answer, Line, Table, Text, Tone, clean},
    time::now_ms,
};

/// `versions`
#[derive(Debug, Args)]
pub struct Versions {}

impl Versions {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.reader().await?;
        let spread = store.client.get_running_duroxide_version_spread().await?;
        let summary = store.client.summarize_instances(&SummaryRequest::default()).await?;
        let now_ms = now_ms();
        let mut nodes = store.client.list_nodes().await?;
        nodes.retain(|node| node.is_there(now_ms));
        context.out.print(&answer(&pinned(spread, &nodes), &handlers(&summary, &nodes)))?;
        Ok(Exit::Done)
    }
}

/// A version of running instances, and the live nodes that can go on with them.
#[derive(Debug, PartialEq, Eq)]
struct Support {
    what: String,
    running: u64,
    nodes: Vec<String>,
}

/// Instances and nodes by pinned version.
fn pinned(spread: BTreeMap<String, u64>, nodes: &[JoinedNode]) -> Vec<Support> {
    let support = |(version, running): (String, u64)| {
        let triple = Version::parse(&version).ok().map(|version| VersionTriple::from(&version));
        let replays = |capability: &NodeCapability| {
            triple.is_some()
                && MissingCapability::for_instance(slice::from_ref(capability), None, None, triple).is_none()
        };
        Support { nodes: those(nodes, replays), what: version, running }
    };
    spread.into_iter().map(support).collect()
}

/// Instances and nodes by orchestration and handler version.
fn handlers(summary: &InstanceSummary, nodes: &[JoinedNode]) -> Vec<Support> {
    let running = summary.counts.iter().filter(|count| count.status == "Running");
    let support = |InstanceCount { name, version, count, .. }: &InstanceCount| Support {
        what: format!("{name} {version}"),
        running: *count,
        nodes: those(nodes, |capability| capability.has_orchestration(name, Some(version))),
    };
    running.map(support).collect()
}

fn those(nodes: &[JoinedNode], can: impl Fn(&NodeCapability) -> bool) -> Vec<String> {
    let able = nodes.iter().filter(|node| node.capability.as_ref().is_some_and(&can));
    able.map(|node| node.name.clone()).collect()
}

fn answer(pinned: &[Support], handlers: &[Support]) -> Answer {
    let unsupported: u64 = handlers.iter().filter(|one| one.nodes.is_empty()).map(|one| one.running).sum();
    let verdict = match unsupported {
        0 => Line::toned(Tone::Good, "every running instance has a handler on a live node"),
        number => {
            Line::toned(Tone::Bad, format!("{number} running instances have no handler on any live node"))
        }
    };
    let text = table(Text::default(), "PINNED TO DUROXIDE", pinned).line("");
    let names = handlers.iter().map(|one| one.what.clone()).collect();
    Answer {
        text: table(text, "HANDLER", handlers).line(verdict),
        json: json!({ "pinned": to_json(pinned), "handlers": to_json(handlers) }),
        ids: names,
    }
}

fn table(text: Text, what: &'static str, all: &[Support]) -> Text {
    let mut table = Table::new([what, "RUNNING", "NODES"]);
    for one in all {
        let nodes = match one.nodes.is_empty() {
            true => Line::toned(Tone::Bad, "no live node"),
            false => clean(&short_names(&one.nodes)).into(),
        };
        table.row([clean(&one.what).into(), one.running.to_string().into(), nodes]);
    }
    text.table(&table, "nothing runs")
}

fn short_names(nodes: &[String]) -> String {
    nodes.iter().map(|node| short_node_name(node)).collect::<Vec<_>>().join(", ")
}

fn to_json(all: &[Support]) -> Vec<Value> {
    let one = |one: &Support| json!({ "version": one.what, "running": one.running, "nodes": one.nodes });
    all.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use duroxide::SemverRange;

    use super::*;

    fn node(name: &str, orchestration: &str) -> JoinedNode {
        let capability = NodeCapability {
            replay_versions: vec![SemverRange::new(Version::new(0, 5, 0), Version::new(0, 6, 0))],
            orchestrations: BTreeMap::from([(
                orchestration.to_owned(),
                BTreeSet::from([Version::new(1, 0, 0)]),
            )]),
            ..NodeCapability::default()
        };
        JoinedNode { name: name.to_owned(), capability: Some(capability), ..JoinedNode::default() }
    }

    #[test]
    fn nodes_support_the_versions_they_replay() {
        let spread =
            BTreeMap::from([("0.5.3".to_owned(), 7), ("0.7.0".to_owned(), 1), ("odd".to_owned(), 1)]);
        let nodes = [node("a", "Order"), node("b", "Order")];
        let found = pinned(spread, &nodes);
        let nodes: Vec<usize> = found.iter().map(|one| one.nodes.len()).collect();
        assert_eq!(nodes, [2, 0, 0]);
        assert_eq!(found[0].running, 7);
    }

    #[test]
    fn a_version_without_a_live_node_is_shown() {
        let mut summary = InstanceSummary::default();
        for (version, status) in [("1.0.0", "Running"), ("2.0.0", "Running"), ("3.0.0", "Failed")] {
            summary.counts.push(InstanceCount {
                name: "Order".to_owned(),
                version: version.to_owned(),
                status: status.to_owned(),
                count: 4,
            });
        }
        let found = handlers(&summary, &[node("a", "Order"), node("b", "Ship")]);
        assert_eq!(found.len(), 2, "what has failed needs no node");
        assert_eq!((found[0].nodes.as_slice(), found[1].nodes.len()), (["a".to_owned()].as_slice(), 0));
        let text = answer(&[], &found).text.render(false);
        assert!(text.contains("Order 2.0.0  4        no live node"), "{text}");
        assert!(text.contains("4 running instances have no handler"), "{text}");
    }
}
