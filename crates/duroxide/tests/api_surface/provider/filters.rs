//! A10: filters, items and metadata.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use duroxide::{
    Event,
    providers::{
        DispatcherCapabilityFilter, ExecutionMetadata, HandlerCapability, KvEntry, OrchestrationFetch,
        OrchestrationItem, ScheduledActivityIdentifier, SemverRange, SessionFetchConfig, TagFilter,
        WorkFetch, WorkItem,
    },
};
use semver::Version;

use crate::bounds;

#[test]
fn tag_filters() {
    bounds::value::<TagFilter>();
    bounds::eq::<TagFilter>();
    assert_eq!(TagFilter::default(), TagFilter::DefaultOnly);
    let _: fn(&TagFilter, Option<&str>) -> bool = TagFilter::matches;
    let _: [TagFilter; 3] = [TagFilter::default_only(), TagFilter::none(), TagFilter::any()];
    let tags: TagFilter = TagFilter::tags(["a"]);
    let both: TagFilter = TagFilter::default_and(vec![String::from("a")]);
    let _ = |filter: TagFilter| -> Option<HashSet<String>> {
        match filter {
            TagFilter::DefaultOnly | TagFilter::Any | TagFilter::None => None,
            TagFilter::Tags(tags) | TagFilter::DefaultAnd(tags) => Some(tags),
        }
    };
    assert!(tags.matches(Some("a")) && !tags.matches(None) && both.matches(None));
}

/// S3.8, S3.9, S3.27, C12.
#[test]
fn version_filters() {
    bounds::value::<SemverRange>();
    bounds::eq::<SemverRange>();
    bounds::value::<DispatcherCapabilityFilter>();
    let range = SemverRange { min: Version::new(1, 0, 0), max: Version::new(2, 0, 0) };
    assert_eq!(SemverRange::new(Version::new(1, 0, 0), Version::new(2, 0, 0)), range);
    let _: fn(&SemverRange, &Version) -> bool = SemverRange::contains;
    let _: fn() -> SemverRange = SemverRange::default_for_current_build;
    let _: fn() -> DispatcherCapabilityFilter = DispatcherCapabilityFilter::default_for_current_build;
    let _: fn(&DispatcherCapabilityFilter, &Version) -> bool = DispatcherCapabilityFilter::is_compatible;
    let filter = DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] };
    assert!(filter.is_compatible(&Version::new(2, 0, 0)), "both ends are included");
}

/// S1.8: an item holds no lock token.
#[test]
fn items_are_built_in_full() {
    bounds::value::<ScheduledActivityIdentifier>();
    bounds::eq::<ScheduledActivityIdentifier>();
    let _ = ScheduledActivityIdentifier { instance: "i".into(), execution_id: 1, activity_id: 2 };
    bounds::value::<SessionFetchConfig>();
    let _ = SessionFetchConfig { owner_id: "o".into(), lock_timeout: Duration::ZERO };
    bounds::value::<KvEntry>();
    bounds::partial_eq::<KvEntry>();
    let kv = KvEntry { value: "v".into(), last_updated_at_ms: 1 };
    bounds::value::<OrchestrationItem>();
    let _ = OrchestrationItem {
        instance: "i".into(),
        orchestration_name: "n".into(),
        execution_id: 1,
        version: "1.0.0".into(),
        history: Vec::<Event>::new(),
        messages: Vec::<WorkItem>::new(),
        history_error: None::<String>,
        kv_snapshot: HashMap::from([("k".to_owned(), kv)]),
    };
}

/// Users build it with `..Default::default()`, so that it may grow.
#[test]
fn execution_metadata_has_a_default() {
    bounds::value::<ExecutionMetadata>();
    let _ = ExecutionMetadata {
        status: Some("Completed".into()),
        output: Some("o".into()),
        orchestration_name: Some("n".into()),
        orchestration_version: Some("1.0.0".into()),
        parent_instance_id: None::<String>,
        pinned_duroxide_version: Some(Version::new(0, 5, 0)),
        ..Default::default()
    };
}

/// A17.3.
#[test]
fn fetch_requests_and_handler_capability() {
    bounds::value::<HandlerCapability>();
    bounds::eq::<HandlerCapability>();
    let handlers = HandlerCapability {
        supported_orchestrations: Some(BTreeMap::<String, Vec<SemverRange>>::new()),
        supported_activities: Some(BTreeSet::<String>::new()),
    };
    assert_eq!(HandlerCapability::default().supported_activities, None);
    let tag_filter = TagFilter::DefaultOnly;
    let mut fetch = OrchestrationFetch::new(Duration::from_secs(1), Duration::ZERO);
    fetch.filter = None::<&DispatcherCapabilityFilter>;
    fetch.handlers = Some(&handlers);
    let _: (Duration, Duration) = (fetch.lock_timeout, fetch.poll_timeout);
    let mut fetch = WorkFetch::new(Duration::from_secs(1), Duration::ZERO, &tag_filter);
    fetch.session = None::<&SessionFetchConfig>;
    fetch.handlers = Some(&handlers);
    let _: (Duration, Duration, &TagFilter) = (fetch.lock_timeout, fetch.poll_timeout, fetch.tag_filter);
}
