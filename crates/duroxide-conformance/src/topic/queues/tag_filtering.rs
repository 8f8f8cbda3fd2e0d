//! Tags route activities to the workers that accept them.

use duroxide_core::WorkItem;
use duroxide_provider::TagFilter;

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, LONG_LEASE},
    message::{activity, tagged_activity},
    round::first_round,
};

/// A store with an untagged activity 2, one with tag `gpu` 3, and one with tag `cpu` 4.
async fn with_tagged_items<F: ProviderFactory + ?Sized>(factory: &F) -> Fixture {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(activity("i", 1, 2)).await;
    fixture.schedule(tagged_activity("i", 3, "gpu")).await;
    fixture.schedule(tagged_activity("i", 4, "cpu")).await;
    fixture
}

/// Fetches all activities that pass the filter.
async fn drain(fixture: &Fixture, filter: &TagFilter) -> Vec<WorkItem> {
    let mut taken = Vec::new();
    while let Some(work) = fixture.try_work_with(LONG_LEASE, None, filter).await {
        taken.push(work.item);
    }
    taken
}

/// `DefaultOnly` takes activities without tag (13.4).
pub async fn test_default_only_fetches_untagged<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_tagged_items(factory).await;
    assert_eq!(drain(&fixture, &TagFilter::default_only()).await, [activity("i", 1, 2)]);
}

/// `Tags` takes only activities with one of its tags (13.4).
pub async fn test_tags_fetches_only_matching<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_tagged_items(factory).await;
    assert_eq!(drain(&fixture, &TagFilter::tags(["gpu"])).await, [tagged_activity("i", 3, "gpu")]);
}

/// `DefaultAnd` takes activities without tag or with one of its tags (13.4).
pub async fn test_default_and_fetches_untagged_and_matching<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_tagged_items(factory).await;
    let taken = drain(&fixture, &TagFilter::default_and(["cpu"])).await;
    assert_eq!(taken, [activity("i", 1, 2), tagged_activity("i", 4, "cpu")]);
}

/// `None` takes nothing (13.4, A11).
pub async fn test_none_filter_returns_nothing<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_tagged_items(factory).await;
    assert_eq!(drain(&fixture, &TagFilter::none()).await, []);
    assert_eq!(drain(&fixture, &TagFilter::any()).await.len(), 3, "nothing must have been locked");
}

/// A filter may have several tags (13.4).
pub async fn test_multi_tag_filter<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_tagged_items(factory).await;
    let taken = drain(&fixture, &TagFilter::tags(["cpu", "gpu", "tpu"])).await;
    assert_eq!(taken, [tagged_activity("i", 3, "gpu"), tagged_activity("i", 4, "cpu")]);
}

/// A tag is an opaque text that is returned unchanged (13.4).
pub async fn test_tag_round_trip_preservation<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    for (id, tag) in (2..).zip(["a'b\"c", "Ünïcödé ✓", "with space", "%_*"]) {
        fixture.schedule(tagged_activity("i", id, tag)).await;
        let taken = drain(&fixture, &TagFilter::tags([tag])).await;
        assert_eq!(
            taken,
            [tagged_activity("i", id, tag)],
            "tag {tag:?} must match itself and come back unchanged"
        );
    }
}

/// `Any` takes all activities, in queue order (13.4).
pub async fn test_any_filter_fetches_everything<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_tagged_items(factory).await;
    let taken = drain(&fixture, &TagFilter::any()).await;
    assert_eq!(taken, [activity("i", 1, 2), tagged_activity("i", 3, "gpu"), tagged_activity("i", 4, "cpu")]);
}

/// An abandoned activity keeps its tag (13.4).
pub async fn test_tag_survives_abandon_and_refetch<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.schedule(tagged_activity("i", 2, "gpu")).await;
    let gpu = TagFilter::tags(["gpu"]);
    let work = fixture.work_with(LONG_LEASE, None, &gpu).await;
    fixture.provider.abandon_work_item(&work.token, None, false).await.expect("a live lock can be abandoned");
    fixture.expect_no_work("an abandoned activity keeps its tag").await;
    let again = fixture.work_with(LONG_LEASE, None, &gpu).await;
    assert_eq!((again.item, again.attempts), (work.item, 2));
}

/// Workers with different tags take different activities of one queue and do not block each other (13.4).
pub async fn test_multi_runtime_tag_isolation<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    for id in 2..8 {
        let tag = if id % 2 == 0 { "even" } else { "odd" };
        fixture.schedule(tagged_activity("i", id, tag)).await;
    }
    let odd = drain(&fixture, &TagFilter::tags(["odd"])).await;
    assert_eq!(odd, [3, 5, 7].map(|id| tagged_activity("i", id, "odd")));
    let even = drain(&fixture, &TagFilter::tags(["even"])).await;
    assert_eq!(even, [2, 4, 6].map(|id| tagged_activity("i", id, "even")));
}

/// Activities that a round enqueues keep their tags (13.4).
pub async fn test_tag_preserved_through_ack_orchestration_item<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let mut round = first_round("tagged");
    round.worker_items = vec![tagged_activity("tagged", 2, "gpu"), activity("tagged", 1, 3)];
    fixture.running_with("tagged", round).await;
    assert_eq!(drain(&fixture, &TagFilter::default_only()).await, [activity("tagged", 1, 3)]);
    assert_eq!(drain(&fixture, &TagFilter::tags(["gpu"])).await, [tagged_activity("tagged", 2, "gpu")]);
}
