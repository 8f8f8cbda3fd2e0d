//! Nodes: who takes work from a store, what each of them can do, and whether it is still there.

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

/// What a node says of itself when it joins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeAnnouncement {
    /// Its name, which no other node has.
    pub name: String,
    /// The owners of sessions that end with it. A name that survives a restart is not among them.
    pub session_owners: Vec<String>,
    /// What it can do.
    pub capability: NodeCapability,
}

/// What a node can do. Stored as JSON beside the node, so that others can tell what nobody can do.
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
    /// Whether it asks only for what it has registered. One that does not takes everything else too, and gives it
    /// back.
    pub asks_for_registered_only: bool,
    /// How often it fetches a message or an activity before that is poison. Nodes of earlier releases do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
}

/// A node that has joined a store and has not ended. Times are in milliseconds since the epoch, on the store's clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct JoinedNode {
    /// Its name, which no other node has.
    pub name: String,
    /// What it can do. `None` if that cannot be read: a later release may say it in another way.
    pub capability: Option<NodeCapability>,
    /// When it joined.
    pub started_at_ms: u64,
    /// When it last said that it is there.
    pub seen_at_ms: u64,
}

impl JoinedNode {
    /// How long a node counts as there that has not said so. It is longer than a short stop of its process.
    pub const THERE_FOR: Duration = Duration::from_secs(60);

    /// Whether it has said not long ago that it is there.
    pub fn is_there(&self, now_ms: u64) -> bool {
        u128::from(now_ms.saturating_sub(self.seen_at_ms)) < Self::THERE_FOR.as_millis()
    }
}

/// A node's place in a store. Dropping it says that the node is gone: whatever it still holds is free for others,
/// its attempts counted.
pub trait NodeMembership: fmt::Debug + Send + Sync {
    /// The number under which the node's fetches claim.
    fn node(&self) -> NodeId;

    /// Notes which claim is just starting to run user code, or that none is. Whoever takes over the work of a node whose
    /// process has ended reads the note and knows which claim ended it. So the note must survive the death of the process;
    /// it need not survive a loss of power. The call must be cheap, and may be made on any thread.
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
