//! Nodes: processes that claim work from a store, with their capabilities and heartbeats.

mod short_name;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
    time::Duration,
};

use semver::Version;
use serde::{Deserialize, Serialize};

pub use self::short_name::short_node_name;
use crate::{SemverRange, TagFilter};

/// The number a store gives a node when it joins. It is never used for another; claims carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The announcement of a node when it joins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeAnnouncement {
    /// Its name, which no other node has.
    pub name: String,
    /// The owners of sessions that end with it. A name that survives a restart is not among them.
    pub session_owners: Vec<String>,
    /// The handlers, versions and tags of the node.
    pub capability: NodeCapability,
}

/// The handlers, versions and tags of a node. Stored as JSON, so that other nodes can find work that no node can run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeCapability {
    /// The pinned versions it replays; none if it runs no orchestrations.
    pub replay_versions: Vec<SemverRange>,
    /// The orchestrations it has registered, with their versions.
    pub orchestrations: BTreeMap<String, BTreeSet<Version>>,
    /// The activities it has registered.
    pub activities: BTreeSet<String>,
    /// The tags it takes activities of; [`TagFilter::None`] if it runs none.
    pub tags: TagFilter,
    /// Whether the node fetches only items that it has registered. If not, it takes other items too, and gives them
    /// back.
    pub asks_for_registered_only: bool,
    /// The number of attempts after which an item is poison. `None` for nodes of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
}

/// A node that has joined a store and has not ended. Times are in milliseconds since the epoch, on the store's clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct JoinedNode {
    /// Its name, which no other node has.
    pub name: String,
    /// The handlers, versions and tags of the node. `None` if they cannot be read: a later release may store them in
    /// another form.
    pub capability: Option<NodeCapability>,
    /// When it joined.
    pub started_at_ms: u64,
    /// The time of the last heartbeat.
    pub seen_at_ms: u64,
}

impl JoinedNode {
    /// How long a node counts as alive after its last heartbeat. Longer than a short suspension of its process.
    pub const THERE_FOR: Duration = Duration::from_secs(60);

    /// Whether the last heartbeat is recent.
    pub fn is_there(&self, now_ms: u64) -> bool {
        u128::from(now_ms.saturating_sub(self.seen_at_ms)) < Self::THERE_FOR.as_millis()
    }
}

/// The membership of a node. Dropping it ends the node: its locks are released, their attempts counted.
pub trait NodeMembership: fmt::Debug + Send + Sync {
    /// The number under which the node's fetches claim.
    fn node(&self) -> NodeId;

    /// Notes which claim is about to run user code, or that none is. A takeover after the end of the process reads the
    /// note, to know which claim ended it. So the note must survive the death of the process; it need not survive a loss
    /// of power. The call must be cheap, and may be made on any thread.
    ///
    /// The default notes nothing.
    fn note_starting(&self, claim: Option<&ClaimToken>) {
        let _ = claim;
    }
}

/// A claim, by its lock token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimToken {
    /// A locked instance.
    Instance(String),
    /// A locked activity.
    Activity(String),
}

impl fmt::Display for ClaimToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance(token) => write!(f, "instance {token}"),
            Self::Activity(token) => write!(f, "activity {token}"),
        }
    }
}

/// A text that is no [`ClaimToken`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAClaimToken;

impl fmt::Display for NotAClaimToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a claim token")
    }
}

impl std::error::Error for NotAClaimToken {}

impl FromStr for ClaimToken {
    type Err = NotAClaimToken;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(' ') {
            Some(("instance", token)) => Ok(Self::Instance(token.to_owned())),
            Some(("activity", token)) => Ok(Self::Activity(token.to_owned())),
            _ => Err(NotAClaimToken),
        }
    }
}
