//! Filters: which work a node takes.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt,
};

use duroxide_core::{current_build_version, limits::MAX_WORKER_TAGS};
use semver::Version;
use serde::{Deserialize, Serialize};

/// Which activities a worker takes, by their routing tag.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TagFilter {
    /// Activities without a tag.
    #[default]
    DefaultOnly,
    /// Activities with one of these tags.
    Tags(HashSet<String>),
    /// Activities without a tag, or with one of these.
    DefaultAnd(HashSet<String>),
    /// All activities.
    Any,
    /// No activities.
    None,
}

impl TagFilter {
    /// Activities with one of these tags.
    ///
    /// # Panics
    /// With no tag, or with more than 5.
    pub fn tags<I, T>(tags: I) -> Self
    where
        I: IntoIterator<Item = T>,
        T: Into<String>,
    {
        Self::Tags(checked_tags("TagFilter::tags", tags))
    }

    /// Activities without a tag, or with one of these.
    ///
    /// # Panics
    /// With no tag, or with more than 5.
    pub fn default_and<I, T>(tags: I) -> Self
    where
        I: IntoIterator<Item = T>,
        T: Into<String>,
    {
        Self::DefaultAnd(checked_tags("TagFilter::default_and", tags))
    }

    /// Activities without a tag.
    pub fn default_only() -> Self {
        Self::DefaultOnly
    }

    /// No activities.
    pub fn none() -> Self {
        Self::None
    }

    /// All activities.
    pub fn any() -> Self {
        Self::Any
    }

    /// Whether an activity with this tag is taken.
    pub fn matches(&self, tag: Option<&str>) -> bool {
        match (self, tag) {
            (Self::Any, _) | (Self::DefaultOnly | Self::DefaultAnd(_), None) => true,
            (Self::Tags(tags) | Self::DefaultAnd(tags), Some(tag)) => tags.contains(tag),
            (Self::None, _) | (Self::DefaultOnly, Some(_)) | (Self::Tags(_), None) => false,
        }
    }
}

#[expect(clippy::panic, reason = "the published contract of the constructors")]
fn checked_tags<I, T>(constructor: &str, tags: I) -> HashSet<String>
where
    I: IntoIterator<Item = T>,
    T: Into<String>,
{
    let tags: HashSet<String> = tags.into_iter().map(Into::into).collect();
    match tags.len() {
        0 => panic!("{constructor} requires at least one tag; use default_only() or none() instead"),
        n if n > MAX_WORKER_TAGS => {
            panic!("Worker can subscribe to at most {MAX_WORKER_TAGS} tags, got {n}")
        }
        _ => tags,
    }
}

/// A range of versions, both ends included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemverRange {
    /// The lowest version.
    pub min: Version,
    /// The highest version.
    pub max: Version,
}

impl SemverRange {
    /// The versions from `min` to `max`, both included.
    pub fn new(min: Version, max: Version) -> Self {
        Self { min, max }
    }

    /// Whether `version` is in the range, in full semver order.
    pub fn contains(&self, version: &Version) -> bool {
        self.min <= *version && *version <= self.max
    }

    /// 0.0.0 to this build.
    pub fn default_for_current_build() -> Self {
        Self { min: Version::new(0, 0, 0), max: current_build_version() }
    }
}

impl fmt::Display for SemverRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ">={}, <={}", self.min, self.max)
    }
}

/// Which executions a node can replay, by the duroxide version that started them. An execution passes if it is
/// in any of the ranges.
#[derive(Debug, Clone)]
pub struct DispatcherCapabilityFilter {
    /// The ranges. An empty list passes nothing.
    pub supported_duroxide_versions: Vec<SemverRange>,
}

impl DispatcherCapabilityFilter {
    /// Whether an execution pinned to `version` passes.
    pub fn is_compatible(&self, version: &Version) -> bool {
        self.supported_duroxide_versions.iter().any(|range| range.contains(version))
    }

    /// 0.0.0 to this build.
    pub fn default_for_current_build() -> Self {
        Self { supported_duroxide_versions: vec![SemverRange::default_for_current_build()] }
    }
}

/// Which handlers a node has. `None` means: everything passes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HandlerCapability {
    /// Orchestrations by name, with the versions of each.
    pub supported_orchestrations: Option<BTreeMap<String, Vec<SemverRange>>>,
    /// Activities by name.
    pub supported_activities: Option<BTreeSet<String>>,
}

/// A version as a pinned execution stores it: pre-release and build parts do not count (17.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VersionTriple {
    /// The major version.
    pub major: u64,
    /// The minor version.
    pub minor: u64,
    /// The patch version.
    pub patch: u64,
}

impl From<&Version> for VersionTriple {
    fn from(version: &Version) -> Self {
        Self { major: version.major, minor: version.minor, patch: version.patch }
    }
}

impl fmt::Display for VersionTriple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A range of pinned versions, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    /// The lowest version.
    pub min: VersionTriple,
    /// The highest version.
    pub max: VersionTriple,
}

impl VersionRange {
    /// Whether `version` is in the range.
    pub fn contains(&self, version: VersionTriple) -> bool {
        self.min <= version && version <= self.max
    }
}

impl From<&SemverRange> for VersionRange {
    fn from(range: &SemverRange) -> Self {
        Self { min: (&range.min).into(), max: (&range.max).into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_filters_match_their_tags() {
        let gpu = TagFilter::tags(["gpu"]);
        let both = TagFilter::default_and(["gpu"]);
        assert!(gpu.matches(Some("gpu")) && !gpu.matches(None) && !gpu.matches(Some("cpu")));
        assert!(both.matches(Some("gpu")) && both.matches(None) && !both.matches(Some("cpu")));
        assert!(TagFilter::any().matches(None) && TagFilter::any().matches(Some("x")));
        assert!(!TagFilter::none().matches(None) && !TagFilter::default_only().matches(Some("x")));
    }

    #[test]
    #[should_panic(expected = "at most 5 tags, got 6")]
    fn too_many_tags_are_refused() {
        let _ = TagFilter::tags(["1", "2", "3", "4", "5", "6"]);
    }

    /// S2.17, C11: both ends belong to the range. S3.26: the comparison is numeric in every component.
    #[test]
    fn ranges_include_both_ends_and_compare_numerically() {
        let range = SemverRange::new(Version::new(1, 0, 0), Version::new(1, 9, 99));
        let numeric = VersionRange::from(&range);
        for (version, inside) in [
            (Version::new(1, 0, 0), true),
            (Version::new(1, 9, 99), true),
            (Version::new(1, 0, 5000), true),
            (Version::new(1, 1000, 0), false),
            (Version::new(0, 99, 99), false),
            (Version::new(2, 0, 0), false),
        ] {
            assert_eq!(range.contains(&version), inside, "{version}");
            assert_eq!(numeric.contains((&version).into()), inside, "{version}");
        }
    }
}
