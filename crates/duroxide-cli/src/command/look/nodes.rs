//! `nodes`: the nodes and their capabilities.

use std::collections::{BTreeSet, HashSet};

use clap::Args;
use duroxide::{
    TagFilter,
    providers::{JoinedNode, NodeCapability},
};
use duroxide_core::SYSCALL_ACTIVITY_PREFIX;
use serde_json::{Value, json};

use crate::{
    command::Context,
    exit::{Exit, Outcome},
    output::{Answer, Line, Table, Text, Tone, clean},
    time::{age, iso, now_ms},
};

/// `nodes`
#[derive(Debug, Args)]
pub struct Nodes {}

impl Nodes {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.reader().await?;
        let nodes = store.client.list_nodes().await?;
        context.out.print(&answer(&nodes, now_ms()))?;
        Ok(Exit::Done)
    }
}

fn answer(nodes: &[JoinedNode], now_ms: u64) -> Answer {
    let mut table = Table::new(["NODE", "SEEN", "REPLAYS", "TAGS", "ORCHESTRATIONS", "ACTIVITIES"]);
    for node in nodes {
        table.row(row(node, now_ms));
    }
    Answer {
        text: Text::default().table(&table, "no node has joined: nothing runs until one does"),
        json: nodes.iter().map(to_json).collect(),
        ids: nodes.iter().map(|node| node.name.clone()).collect(),
    }
}

fn row(node: &JoinedNode, now_ms: u64) -> [Line; 6] {
    let tone = if node.is_there(now_ms) { Tone::Good } else { Tone::Bad };
    let seen = Line::toned(tone, format!("{} ago", age(node.seen_at_ms, now_ms)));
    let name = clean(node.short_name()).into();
    let Some(capability) = &node.capability else {
        let unknown = Line::toned(Tone::Warn, "of another release: it cannot be read");
        return [name, seen, unknown, "".into(), "".into(), "".into()];
    };
    let orchestrations: Vec<String> = orchestrations(capability).collect();
    // Every node has the built-in activities, so they are left out.
    let activities = capability.activities.iter().map(String::as_str);
    let activities: Vec<&str> =
        activities.filter(|name| !name.starts_with(SYSCALL_ACTIVITY_PREFIX)).collect();
    [
        name,
        seen,
        replays(capability).into(),
        clean(&tags(&capability.tags)).into(),
        clean(&orchestrations.join(", ")).into(),
        clean(&activities.join(", ")).into(),
    ]
}

fn orchestrations(capability: &NodeCapability) -> impl Iterator<Item = String> {
    let versions = capability.orchestrations.iter();
    versions.flat_map(|(name, versions)| versions.iter().map(move |version| format!("{name} {version}")))
}

fn replays(capability: &NodeCapability) -> String {
    let ranges: Vec<String> = capability.replay_versions.iter().map(ToString::to_string).collect();
    if ranges.is_empty() { "none".to_owned() } else { ranges.join(" | ") }
}

fn tags(filter: &TagFilter) -> String {
    let list = |tags: &HashSet<String>| tags.iter().cloned().collect::<BTreeSet<_>>();
    let list = |tags| list(tags).into_iter().collect::<Vec<_>>().join(", ");
    match filter {
        TagFilter::DefaultOnly => "untagged".to_owned(),
        TagFilter::Tags(tags) => list(tags),
        TagFilter::DefaultAnd(tags) => format!("untagged, {}", list(tags)),
        TagFilter::Any => "any".to_owned(),
        TagFilter::None => "runs no activities".to_owned(),
    }
}

fn to_json(node: &JoinedNode) -> Value {
    json!({
        "node": node.name,
        "started_at": iso(node.started_at_ms),
        "seen_at": iso(node.seen_at_ms),
        "capability": node.capability,
    })
}
