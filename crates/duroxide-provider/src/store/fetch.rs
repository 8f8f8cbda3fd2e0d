//! Fetch requests as a store engine takes them, and which rows pass their filters.

use std::{sync::Arc, time::Duration};

use duroxide_core::SYSCALL_ACTIVITY_PREFIX;
use semver::Version;

use crate::{
    Demand, HandlerCapability, NodeId, OrchestrationFetch, ScheduledActivityIdentifier, SessionFetchConfig,
    TagFilter, VersionRange, VersionTriple, Wanted, WorkFetch,
};

/// A fetch from one of the two queues.
pub trait FetchRequest: Clone {
    /// Whether `other` passes exactly the same rows.
    fn passes_the_same_as(&self, other: &Self) -> bool;

    /// How many items the fetch asks for.
    fn wanted(&self) -> Wanted;
}

/// An [`OrchestrationFetch`] as a store engine takes it: owned, because it waits in another thread.
#[derive(Debug, Clone)]
pub struct InstanceFetch {
    /// For how long each instance is locked.
    pub lock_timeout: Duration,
    /// Pinned versions that pass; `None` passes everything, an empty list passes nothing.
    pub versions: Option<Vec<VersionRange>>,
    /// Handlers the node has; `None` passes everything.
    pub handlers: Option<HandlerCapability>,
    /// How many instances at most.
    pub max: usize,
    /// How many of them can start at once. An instance that may be poison (a lease on it ended, or it was abandoned with the
    /// attempt counted) is claimed only among the first `free_slots`; beyond, the claim stops in front of it.
    pub free_slots: usize,
    /// Asked again for both numbers when the fetch is served after a wait.
    pub demand: Option<Arc<dyn Demand>>,
    /// Whether a claim takes all visible messages (the plain fetch), or a bounded part of them.
    pub whole_mailbox: bool,
    /// Which node claims.
    pub node: Option<NodeId>,
    /// Only this instance, regardless of the filters: to end it, because no node can take it.
    pub only: Option<String>,
}

impl InstanceFetch {
    /// The request of a batch fetch.
    pub fn new(request: &OrchestrationFetch<'_>) -> Self {
        Self {
            lock_timeout: request.lock_timeout,
            versions: request
                .filter
                .map(|filter| filter.supported_duroxide_versions.iter().map(Into::into).collect()),
            handlers: request.handlers.cloned(),
            max: request.max,
            free_slots: request.free_slots,
            demand: request.demand.clone(),
            whole_mailbox: false,
            node: request.node,
            only: request.only.map(str::to_owned),
        }
    }

    /// Whether an execution passes: its pin is in one of the ranges (or it has none), and its handler is registered.
    ///
    /// A name that is not known passes every handler filter; so does, for a known name, a version that was not asked
    /// for or cannot be read. The runtime checks further.
    pub fn accepts(&self, name: Option<&str>, version: Option<&str>, pinned: Option<VersionTriple>) -> bool {
        self.holds_back(name, version, pinned).is_none()
    }

    /// Why an execution does not pass; `None` if it does.
    pub fn holds_back(
        &self,
        name: Option<&str>,
        version: Option<&str>,
        pinned: Option<VersionTriple>,
    ) -> Option<HeldBackBy> {
        if !self.accepts_pin(pinned) {
            return Some(HeldBackBy::Version);
        }
        (!self.accepts_handler(name, version)).then_some(HeldBackBy::Orchestration)
    }

    fn accepts_pin(&self, pinned: Option<VersionTriple>) -> bool {
        match (&self.versions, pinned) {
            (None, _) => true,
            (Some(ranges), None) => !ranges.is_empty(),
            (Some(ranges), Some(pinned)) => ranges.iter().any(|range| range.contains(pinned)),
        }
    }

    fn accepts_handler(&self, name: Option<&str>, version: Option<&str>) -> bool {
        let supported =
            self.handlers.as_ref().and_then(|handlers| handlers.supported_orchestrations.as_ref());
        let (Some(supported), Some(name)) = (supported, name) else { return true };
        let Some(ranges) = supported.get(name) else { return false };
        match version.and_then(|version| Version::parse(version).ok()) {
            Some(version) => ranges.iter().any(|range| range.contains(&version)),
            None => true,
        }
    }
}

impl FetchRequest for InstanceFetch {
    fn passes_the_same_as(&self, other: &Self) -> bool {
        self.versions == other.versions && self.handlers == other.handlers && self.only == other.only
    }

    fn wanted(&self) -> Wanted {
        Wanted { max: self.max, free_slots: self.free_slots }
    }
}

/// A [`WorkFetch`] as a store engine takes it.
#[derive(Debug, Clone)]
pub struct ActivityFetch {
    /// For how long each activity is locked.
    pub lock_timeout: Duration,
    /// How session activities are taken.
    pub session: Option<SessionFetchConfig>,
    /// Which tags are taken.
    pub tag_filter: TagFilter,
    /// Handlers the node has; `None` passes everything.
    pub handlers: Option<HandlerCapability>,
    /// How many activities at most.
    pub max: usize,
    /// How many of them can start at once. An activity that was attempted before is claimed only among the first
    /// `free_slots`; beyond, the claim stops in front of it.
    pub free_slots: usize,
    /// Asked again for both numbers when the fetch is served after a wait.
    pub demand: Option<Arc<dyn Demand>>,
    /// Which node claims.
    pub node: Option<NodeId>,
    /// Only this activity, regardless of tags, handlers and sessions: to end it, because no node can take it.
    pub only: Option<ScheduledActivityIdentifier>,
}

impl ActivityFetch {
    /// The request of a batch fetch.
    pub fn new(request: &WorkFetch<'_>) -> Self {
        Self {
            lock_timeout: request.lock_timeout,
            session: request.session.cloned(),
            tag_filter: request.tag_filter.clone(),
            handlers: request.handlers.cloned(),
            max: request.max,
            free_slots: request.free_slots,
            demand: request.demand.clone(),
            node: request.node,
            only: request.only.cloned(),
        }
    }

    /// Whether an activity passes by name and tag. Built-in activities need no handler.
    pub fn accepts(&self, name: &str, tag: Option<&str>) -> bool {
        self.tag_filter.matches(tag) && self.has_handler(name)
    }

    /// Whether an activity that this fetch's tags admit is held back because its handler is missing.
    pub fn holds_back(&self, name: &str, tag: Option<&str>) -> bool {
        self.tag_filter.matches(tag) && !self.has_handler(name)
    }

    fn has_handler(&self, name: &str) -> bool {
        let supported = self.handlers.as_ref().and_then(|handlers| handlers.supported_activities.as_ref());
        name.starts_with(SYSCALL_ACTIVITY_PREFIX)
            || supported.is_none_or(|supported| supported.contains(name))
    }
}

impl FetchRequest for ActivityFetch {
    fn passes_the_same_as(&self, other: &Self) -> bool {
        self.session.as_ref().map(|session| &session.owner_id)
            == other.session.as_ref().map(|session| &session.owner_id)
            && self.tag_filter == other.tag_filter
            && self.handlers == other.handlers
            && self.only == other.only
    }

    fn wanted(&self) -> Wanted {
        Wanted { max: self.max, free_slots: self.free_slots }
    }
}

/// The missing capability of skipped work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBackBy {
    /// The pinned version.
    Version,
    /// The orchestration's handler.
    Orchestration,
    /// The activity's handler.
    Activity,
}

/// How many ready items a claim skipped for lack of a capability. Of each kind of work (handler and version, or activity and
/// tag) a claim counts at most as many as it asked for, so that it costs no more than if it could take them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeldBack {
    /// For lack of the pinned version.
    pub version: u64,
    /// For lack of the orchestration's handler.
    pub orchestration: u64,
    /// For lack of the activity's handler.
    pub activity: u64,
}

impl HeldBack {
    /// Counts items of one kind of work.
    pub fn count(&mut self, by: HeldBackBy, items: usize) {
        let counter = match by {
            HeldBackBy::Version => &mut self.version,
            HeldBackBy::Orchestration => &mut self.orchestration,
            HeldBackBy::Activity => &mut self.activity,
        };
        *counter = counter.saturating_add(items as u64);
    }

    /// Adds the items that another claim skipped.
    pub fn add(&mut self, other: Self) {
        self.version += other.version;
        self.orchestration += other.orchestration;
        self.activity += other.activity;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::{DispatcherCapabilityFilter, SemverRange};

    const V1: VersionTriple = VersionTriple { major: 1, minor: 0, patch: 0 };
    const V3: VersionTriple = VersionTriple { major: 3, minor: 0, patch: 0 };

    fn fetch(
        filter: Option<&DispatcherCapabilityFilter>,
        handlers: Option<&HandlerCapability>,
    ) -> InstanceFetch {
        let request = OrchestrationFetch::new(Duration::ZERO, Duration::ZERO);
        InstanceFetch::new(&request.with_filter(filter).with_handlers(handlers))
    }

    fn ranges(list: &[(u64, u64)]) -> DispatcherCapabilityFilter {
        let range =
            |(min, max): &(u64, u64)| SemverRange::new(Version::new(*min, 0, 0), Version::new(*max, 9, 99));
        DispatcherCapabilityFilter { supported_duroxide_versions: list.iter().map(range).collect() }
    }

    /// 17.3, S3.T6, S3.T22, C13
    #[test]
    fn a_pin_passes_in_any_range_and_no_pin_passes_unless_nothing_does() {
        let none = fetch(None, None);
        let two = fetch(Some(&ranges(&[(1, 1), (3, 3)])), None);
        let only_two = fetch(Some(&ranges(&[(2, 2)])), None);
        let empty = fetch(Some(&ranges(&[])), None);
        assert!(none.accepts(None, None, Some(V1)) && none.accepts(None, None, None));
        assert!(two.accepts(None, None, Some(V1)) && two.accepts(None, None, Some(V3)));
        assert!(!only_two.accepts(None, None, Some(V1)) && only_two.accepts(None, None, None));
        assert!(!empty.accepts(None, None, Some(V1)) && !empty.accepts(None, None, None));
    }

    /// 17.7
    #[test]
    fn a_handler_passes_by_name_and_version() {
        let range = SemverRange::new(Version::new(1, 0, 0), Version::new(1, 9, 0));
        let handlers = HandlerCapability {
            supported_orchestrations: Some(BTreeMap::from([("pay".to_owned(), vec![range])])),
            ..HandlerCapability::default()
        };
        let fetch = fetch(None, Some(&handlers));
        assert!(fetch.accepts(Some("pay"), Some("1.5.0"), None));
        assert!(!fetch.accepts(Some("pay"), Some("2.0.0"), None));
        assert!(fetch.accepts(Some("pay"), None, None));
        assert!(!fetch.accepts(Some("ship"), None, None));
        assert!(fetch.accepts(None, None, None));
    }

    /// 13.4, 17.7
    #[test]
    fn an_activity_passes_by_tag_and_name_and_a_built_in_by_tag() {
        let handlers = HandlerCapability {
            supported_activities: Some(BTreeSet::from(["charge".to_owned()])),
            ..HandlerCapability::default()
        };
        let tags = TagFilter::default_and(["gpu"]);
        let request = WorkFetch::new(Duration::ZERO, Duration::ZERO, &tags).with_handlers(Some(&handlers));
        let fetch = ActivityFetch::new(&request);
        assert!(fetch.accepts("charge", None) && fetch.accepts("charge", Some("gpu")));
        assert!(!fetch.accepts("charge", Some("cpu")) && !fetch.accepts("ship", None));
        assert!(fetch.accepts("__duroxide_syscall:new_guid", None));
    }
}
