//! Items that filters hold back are counted where the filters are applied.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use duroxide_provider::{
    DispatcherCapabilityFilter, HandlerCapability, OrchestrationFetch, Provider, TagFilter, WorkFetch,
};

use crate::support::{counters::Counters, *};

/// S3.46: one count for each kind of ready work that a fetch skips, by the missing capability. It costs no call of the
/// engine.
#[test]
fn work_that_a_fetch_passes_over_is_counted_by_reason() {
    let counters = Counters::default();
    metrics::with_local_recorder(&counters, || {
        let Fixture { provider, mut store, plan, .. } = fixture();
        complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
        complete(&mut store, provider.enqueue_for_worker(activity("a", 2))).unwrap();
        let calls = [Point::Begin, Point::Read].map(|point| plan.count(point));
        let nothing = DispatcherCapabilityFilter { supported_duroxide_versions: Vec::new() };
        let none = HandlerCapability {
            supported_orchestrations: Some(BTreeMap::new()),
            supported_activities: Some(BTreeSet::new()),
        };
        let fetch = || OrchestrationFetch::new(LOCK, Duration::ZERO);
        let by_version = fetch().with_filter(Some(&nothing));
        assert!(complete(&mut store, provider.fetch_orchestration_items(&by_version)).unwrap().is_empty());
        let by_handler = fetch().with_handlers(Some(&none));
        assert!(complete(&mut store, provider.fetch_orchestration_items(&by_handler)).unwrap().is_empty());
        let by_activity =
            WorkFetch::new(LOCK, Duration::ZERO, &TagFilter::DefaultOnly).with_handlers(Some(&none));
        assert!(complete(&mut store, provider.fetch_work_items(&by_activity)).unwrap().is_empty());
        // A tag is not a capability: a fetch without it lacks nothing.
        let by_tag = WorkFetch::new(LOCK, Duration::ZERO, &TagFilter::None).with_handlers(Some(&none));
        assert!(complete(&mut store, provider.fetch_work_items(&by_tag)).unwrap().is_empty());
        assert_eq!(plan.count(Point::Read), calls[1]);
        assert_eq!(plan.count(Point::Begin) - calls[0], 4, "one transaction for each fetch");
    });
    let name = |reason: &str| format!("duroxide_provider_filtered_items_total{{reason={reason}}}");
    let expected = ["version", "orchestration", "activity"].map(|reason| (name(reason), 1));
    assert_eq!(counters.values(), BTreeMap::from(expected));
}
