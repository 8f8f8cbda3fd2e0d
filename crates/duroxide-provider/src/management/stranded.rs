//! Work that no node can take.

use std::fmt;

use duroxide_core::SYSCALL_ACTIVITY_PREFIX;
use semver::Version;
use serde::Serialize;

use crate::{NodeCapability, ScheduledActivityIdentifier, SemverRange, VersionRange, VersionTriple};

/// Ready work that none of the joined nodes can take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrandedWork {
    /// The instance it belongs to.
    pub instance: String,
    /// The activity; `None` if the instance itself waits for its turn.
    pub activity: Option<ScheduledActivityIdentifier>,
    /// A capability that no node has.
    pub missing: MissingCapability,
    /// Whether the instance was asked to cancel.
    pub cancel_requested: bool,
}

/// A capability that no node has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MissingCapability {
    /// Replay an execution of this version.
    Replay {
        /// The version it is pinned to; `None` if it has no pin, and no node runs orchestrations at all.
        pinned: Option<VersionTriple>,
        /// The pinned versions that the nodes replay.
        supported: Vec<SemverRange>,
    },
    /// Run this orchestration.
    Orchestration {
        /// The registered name.
        name: String,
        /// Its version, if one was asked for.
        version: Option<String>,
    },
    /// Run this activity.
    Activity {
        /// The registered name.
        name: String,
    },
    /// Take activities with this tag.
    Tag {
        /// The tag; `None` for activities without one.
        tag: Option<String>,
    },
}

impl MissingCapability {
    /// The value of a `reason` label: `version`, `orchestration`, `activity` or `tag`.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Replay { .. } => "version",
            Self::Orchestration { .. } => "orchestration",
            Self::Activity { .. } => "activity",
            Self::Tag { .. } => "tag",
        }
    }

    /// The capability that no node has for an instance with these needs; `None` if a node can take it. An unknown name
    /// counts as registered on every node, and so does, for a known name, a version that was not asked for or cannot be
    /// read.
    pub fn for_instance(
        nodes: &[NodeCapability],
        name: Option<&str>,
        version: Option<&str>,
        pinned: Option<VersionTriple>,
    ) -> Option<Self> {
        let mut replaying = nodes.iter().filter(|node| node.replays(pinned)).peekable();
        if replaying.peek().is_none() {
            let mut supported: Vec<SemverRange> = Vec::new();
            for range in nodes.iter().flat_map(|node| &node.replay_versions) {
                if !supported.contains(range) {
                    supported.push(range.clone());
                }
            }
            return Some(Self::Replay { pinned, supported });
        }
        if replaying.any(|node| node.asks_for_orchestration(name, version)) {
            return None;
        }
        name.map(|name| Self::Orchestration { name: name.to_owned(), version: version.map(str::to_owned) })
    }

    /// The capability that no node has for an activity; `None` if a node can take it. Built-in activities need no
    /// handler.
    pub fn for_activity(nodes: &[NodeCapability], name: &str, tag: Option<&str>) -> Option<Self> {
        let mut tagged = nodes.iter().filter(|node| node.tags.matches(tag)).peekable();
        if tagged.peek().is_none() {
            return Some(Self::Tag { tag: tag.map(str::to_owned) });
        }
        let taken = tagged.any(|node| node.asks_for_activity(name));
        (!taken).then(|| Self::Activity { name: name.to_owned() })
    }
}

impl fmt::Display for MissingCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replay { pinned: None, .. } => f.write_str("no node runs orchestrations"),
            Self::Replay { pinned: Some(pinned), supported } => {
                let supported: Vec<String> = supported.iter().map(ToString::to_string).collect();
                write!(f, "execution pinned at {pinned}, supported {}", supported.join(" | "))
            }
            Self::Orchestration { name, version } => {
                let version = version.as_deref().unwrap_or("latest");
                write!(f, "orchestration {name}@{version} is not registered on any node")
            }
            Self::Activity { name } => write!(f, "activity {name} is not registered on any node"),
            Self::Tag { tag: Some(tag) } => write!(f, "no node takes activities with tag {tag}"),
            Self::Tag { tag: None } => f.write_str("no node takes activities without a tag"),
        }
    }
}

impl NodeCapability {
    fn replays(&self, pinned: Option<VersionTriple>) -> bool {
        match pinned {
            None => !self.replay_versions.is_empty(),
            Some(pinned) => {
                self.replay_versions.iter().any(|range| VersionRange::from(range).contains(pinned))
            }
        }
    }

    fn asks_for_orchestration(&self, name: Option<&str>, version: Option<&str>) -> bool {
        let (true, Some(name)) = (self.asks_for_registered_only, name) else { return true };
        self.has_orchestration(name, version)
    }

    /// Whether the node has registered an orchestration: in this version if that is one, else in any.
    pub fn has_orchestration(&self, name: &str, version: Option<&str>) -> bool {
        let Some(versions) = self.orchestrations.get(name) else { return false };
        match version.and_then(|version| Version::parse(version).ok()) {
            Some(version) => versions.contains(&version),
            None => true,
        }
    }

    fn asks_for_activity(&self, name: &str) -> bool {
        !self.asks_for_registered_only || self.has_activity(name)
    }

    /// Whether the node has an activity: registered, or built in.
    pub fn has_activity(&self, name: &str) -> bool {
        name.starts_with(SYSCALL_ACTIVITY_PREFIX) || self.activities.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::TagFilter;

    const V1: VersionTriple = VersionTriple { major: 1, minor: 0, patch: 0 };
    const V3: VersionTriple = VersionTriple { major: 3, minor: 0, patch: 0 };

    fn node(major: u64, orchestration: &str, activity: &str) -> NodeCapability {
        NodeCapability {
            replay_versions: vec![SemverRange::new(Version::new(major, 0, 0), Version::new(major, 9, 0))],
            orchestrations: BTreeMap::from([(
                orchestration.to_owned(),
                BTreeSet::from([Version::new(1, 0, 0)]),
            )]),
            activities: BTreeSet::from([activity.to_owned()]),
            tags: TagFilter::DefaultOnly,
            asks_for_registered_only: true,
            max_attempts: None,
        }
    }

    fn instance(nodes: &[NodeCapability], name: &str, pinned: VersionTriple) -> Option<String> {
        MissingCapability::for_instance(nodes, Some(name), Some("1.0.0"), Some(pinned))
            .map(|missing| missing.to_string())
    }

    /// S3.3, S3.44: a node must have both the engine and the handler.
    #[test]
    fn one_node_must_be_able_to_do_all_of_it() {
        let nodes = [node(1, "pay", "charge"), node(3, "ship", "pack")];
        assert_eq!(instance(&nodes, "pay", V1), None);
        assert_eq!(instance(&nodes, "ship", V3), None);
        let lacks = instance(&nodes, "ship", V1).unwrap();
        assert_eq!(lacks, "orchestration ship@1.0.0 is not registered on any node");
        let old = VersionTriple { major: 0, minor: 9, patch: 0 };
        let lacks = instance(&nodes, "pay", old).unwrap();
        assert_eq!(lacks, "execution pinned at 0.9.0, supported >=1.0.0, <=1.9.0 | >=3.0.0, <=3.9.0");
        assert_eq!(MissingCapability::for_instance(&nodes, Some("pay"), None, None), None);
        assert_eq!(MissingCapability::for_instance(&nodes, None, None, Some(V1)), None);
    }

    /// A node that takes unregistered items gives them back by its own rules, which end them in time.
    #[test]
    fn a_node_that_asks_for_everything_leaves_nothing_stranded() {
        let any = NodeCapability { asks_for_registered_only: false, ..node(1, "pay", "charge") };
        assert_eq!(instance(std::slice::from_ref(&any), "ship", V1), None);
        assert_eq!(MissingCapability::for_activity(&[any], "pack", None), None);
    }

    #[test]
    fn activities_need_a_tag_and_a_handler() {
        let nodes = [node(1, "pay", "charge")];
        let lack = |name, tag| MissingCapability::for_activity(&nodes, name, tag);
        assert_eq!(lack("charge", None), None);
        assert_eq!(lack("__duroxide_syscall:new_guid", None), None);
        assert_eq!(lack("pack", None), Some(MissingCapability::Activity { name: "pack".to_owned() }));
        assert_eq!(lack("charge", Some("gpu")), Some(MissingCapability::Tag { tag: Some("gpu".to_owned()) }));
    }

    #[test]
    fn clients_alone_run_nothing() {
        let idle = NodeCapability { tags: TagFilter::None, ..NodeCapability::default() };
        let lack = MissingCapability::for_instance(std::slice::from_ref(&idle), Some("pay"), None, None);
        assert_eq!(lack.unwrap().to_string(), "no node runs orchestrations");
        let lack = MissingCapability::for_activity(&[idle], "charge", None);
        assert_eq!(lack.unwrap().to_string(), "no node takes activities without a tag");
    }
}
