//! [`View`]: nodes and versions as they are shown.

use duroxide::{
    TagFilter,
    providers::{JoinedNode, NodeCapability},
};

use crate::{
    format::{self, Moment},
    links,
    overview_cache::{Counted, Queued},
};

/// The prefix of the names of built-in activities.
const BUILT_IN: &str = "__duroxide_syscall:";

/// Nodes and versions as they are shown. `None` where nothing was read yet.
#[derive(Debug)]
pub(super) struct View {
    pub(super) nodes: Option<Vec<NodeView>>,
    pub(super) handlers: Option<Vec<Need>>,
    pub(super) pinned: Option<Vec<Need>>,
    pub(super) stuck: u64,
}

/// A node as it is shown.
#[derive(Debug)]
pub(super) struct NodeView {
    /// Its short name.
    pub(super) name: String,
    pub(super) full_name: String,
    pub(super) is_there: bool,
    pub(super) seen: Moment,
    pub(super) started: Moment,
    pub(super) orchestrations: Vec<(String, String)>,
    pub(super) activities: Vec<String>,
    pub(super) replays: String,
    pub(super) tags: String,
    pub(super) is_readable: bool,
    /// Open instances that no other node could go on with if this node ended.
    pub(super) only_here: Vec<String>,
    /// Whether `only_here` is known: the counts have been read and every node could be decoded.
    pub(super) is_known: bool,
}

/// Open instances that need the same capability of a node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) what: String,
    pub(super) link: Option<String>,
    pub(super) count: String,
    /// The live nodes that can take these instances.
    pub(super) nodes: Vec<String>,
}

impl View {
    pub(super) fn new(counted: Option<&Counted>, queued: Option<&Queued>) -> Self {
        let live: Vec<&JoinedNode> = queued.map(live).unwrap_or_default();
        let needs = counted.map(open_needs).unwrap_or_default();
        let shown = |open: &OpenNeed, nodes: &[&JoinedNode]| Need {
            what: open.text(),
            link: open.link(),
            count: format::number(open.count),
            nodes: nodes
                .iter()
                .filter(|node| open.is_met_by(node))
                .map(|node| node.short_name().to_owned())
                .collect(),
        };
        let list = |is_pin: bool| -> Option<Vec<Need>> {
            let (_, _) = (counted?, queued?);
            let of_kind = needs.iter().filter(|need| need.is_pin() == is_pin);
            Some(of_kind.map(|need| shown(need, &live)).collect())
        };
        let stuck = |need: &&OpenNeed| !live.iter().any(|node| need.is_met_by(node));
        Self {
            handlers: list(false),
            pinned: list(true),
            stuck: queued.map_or(0, |_| needs.iter().filter(stuck).map(|need| need.count).max().unwrap_or(0)),
            nodes: queued.map(|queued| {
                let node =
                    |node| NodeView::new(node, &live, counted.map(|_| needs.as_slice()), queued.now_ms);
                queued.nodes.iter().map(node).collect()
            }),
        }
    }
}

fn live(queued: &Queued) -> Vec<&JoinedNode> {
    queued.nodes.iter().filter(|node| node.is_there(queued.now_ms)).collect()
}

/// A capability that open instances need of a node.
#[derive(Debug)]
struct OpenNeed {
    what: What,
    count: u64,
}

#[derive(Debug)]
enum What {
    Handler { name: String, version: String },
    Pin { version: String },
}

fn open_needs(counted: &Counted) -> Vec<OpenNeed> {
    let is_open = |status: &str| !matches!(status, "Completed" | "Failed");
    let open = counted.summary.counts.iter().filter(|count| is_open(&count.status));
    let mut needs: Vec<OpenNeed> = Vec::new();
    for count in open {
        let what = What::Handler { name: count.name.clone(), version: count.version.clone() };
        match needs.last_mut().filter(|last| last.is_same(&what)) {
            Some(last) => last.count += count.count,
            None => needs.push(OpenNeed { what, count: count.count }),
        }
    }
    let pinned = counted.pinned.iter();
    needs.extend(
        pinned
            .map(|(version, count)| OpenNeed { what: What::Pin { version: version.clone() }, count: *count }),
    );
    needs
}

impl OpenNeed {
    fn is_same(&self, other: &What) -> bool {
        match (&self.what, other) {
            (What::Handler { name, version }, What::Handler { name: other, version: other_version }) => {
                name == other && version == other_version
            }
            (What::Handler { .. } | What::Pin { .. }, _) => false,
        }
    }

    fn is_pin(&self) -> bool {
        matches!(self.what, What::Pin { .. })
    }

    fn text(&self) -> String {
        match &self.what {
            What::Handler { name, version } => format!("{name} {version}"),
            What::Pin { version } => format!("duroxide {version}"),
        }
    }

    fn sentence(&self) -> String {
        let count = format::number(self.count);
        match &self.what {
            What::Handler { name, version } => format!("{count} of {name} {version}"),
            What::Pin { version } => format!("{count} pinned to duroxide {version}"),
        }
    }

    fn link(&self) -> Option<String> {
        let What::Handler { name, version } = &self.what else { return None };
        let (name, version) = (links::encode(name), links::encode(version));
        Some(format!("instances?status=Running&name={name}&version={version}"))
    }

    fn is_met_by(&self, node: &JoinedNode) -> bool {
        let Some(capability) = &node.capability else { return false };
        match &self.what {
            What::Handler { name, version } => has_handler(capability, name, version),
            What::Pin { version } => {
                let version = version.parse();
                version.is_ok_and(|version| {
                    capability.replay_versions.iter().any(|range| range.contains(&version))
                })
            }
        }
    }
}

fn has_handler(capability: &NodeCapability, name: &str, version: &str) -> bool {
    let versions = capability.orchestrations.get(name);
    versions.is_some_and(|versions| versions.iter().any(|known| known.to_string() == version))
}

impl NodeView {
    fn new(node: &JoinedNode, live: &[&JoinedNode], needs: Option<&[OpenNeed]>, now: u64) -> Self {
        let capability = node.capability.clone().unwrap_or_default();
        let others = || live.iter().filter(|other| other.name != node.name);
        let is_there = node.is_there(now);
        let is_only = |need: &&OpenNeed| {
            is_there && need.is_met_by(node) && !others().any(|other| need.is_met_by(other))
        };
        let only = needs.unwrap_or_default().iter().filter(is_only);
        let versions = capability.orchestrations.iter().map(|(name, versions)| {
            let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
            (name.clone(), versions.join(", "))
        });
        let replays: Vec<String> = capability.replay_versions.iter().map(ToString::to_string).collect();
        Self {
            name: node.short_name().to_owned(),
            full_name: node.name.clone(),
            is_there,
            seen: Moment::new(node.seen_at_ms, now),
            started: Moment::new(node.started_at_ms, now),
            orchestrations: versions.collect(),
            // Built-in activities are left out: every node has them.
            activities: capability
                .activities
                .iter()
                .filter(|name| !name.starts_with(BUILT_IN))
                .cloned()
                .collect(),
            replays: replays.join("; "),
            tags: tags(&capability.tags),
            is_readable: node.capability.is_some(),
            only_here: only.map(|need| need.sentence()).collect(),
            is_known: needs.is_some() && live.iter().all(|node| node.capability.is_some()),
        }
    }
}

fn tags(filter: &TagFilter) -> String {
    let list = |tags: &std::collections::HashSet<String>| {
        let mut tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        tags.sort_unstable();
        tags.join(", ")
    };
    match filter {
        TagFilter::DefaultOnly => "activities without a tag".to_owned(),
        TagFilter::Tags(tags) => format!("only {}", list(tags)),
        TagFilter::DefaultAnd(tags) => format!("without a tag, and {}", list(tags)),
        TagFilter::Any => "every tag".to_owned(),
        TagFilter::None => "no activities".to_owned(),
    }
}

#[cfg(test)]
mod tests;
