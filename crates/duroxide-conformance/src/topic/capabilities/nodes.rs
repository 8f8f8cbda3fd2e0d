//! Nodes that join and leave, and work that no node can take (extended: S3.48).
//!
//! A provider that keeps the default `join_node` does not know nodes; these validations check nothing for it.

use std::{collections::BTreeSet, time::Duration};

use duroxide_provider::{
    DispatcherCapabilityFilter, MissingCapability, NodeAnnouncement, NodeCapability, NodeId, NodeMembership,
    OrchestrationClaim, OrchestrationFetch, SemverRange, TagFilter, WorkClaim, WorkFetch,
};
use semver::Version;

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, LONG_LEASE},
    message::{activity, start_of},
};

/// Lets a node join, if the provider knows nodes.
async fn join(fixture: &Fixture, name: &str, capability: NodeCapability) -> Option<Box<dyn NodeMembership>> {
    let announcement = NodeAnnouncement { name: name.to_owned(), capability, ..NodeAnnouncement::default() };
    fixture.provider.join_node(&announcement).await.expect("join_node must work")
}

async fn turns(fixture: &Fixture, node: NodeId, max: usize) -> Vec<OrchestrationClaim> {
    let request =
        OrchestrationFetch::new(LONG_LEASE, Duration::ZERO).with_max(max, max).with_node(Some(node));
    fixture.provider.fetch_orchestration_items(&request).await.expect("fetch_orchestration_items must work")
}

async fn work(fixture: &Fixture, node: NodeId, max: usize) -> Vec<WorkClaim> {
    let request =
        WorkFetch::new(LONG_LEASE, Duration::ZERO, &TagFilter::Any).with_max(max, max).with_node(Some(node));
    fixture.provider.fetch_work_items(&request).await.expect("fetch_work_items must work")
}

/// When a node leaves, its locks end at once, with the attempt counted; the locks of other nodes stay.
pub async fn test_a_node_that_leaves_frees_what_it_holds<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let Some(gone) = join(&fixture, "gone", NodeCapability::default()).await else { return };
    let Some(other) = join(&fixture, "other", NodeCapability::default()).await else { return };
    assert_ne!(gone.node(), other.node(), "no two nodes must have the same number");
    fixture.send(start_of("a", "Mine", None)).await;
    fixture.send(start_of("b", "Mine", None)).await;
    fixture.provider.enqueue_for_worker(activity("c", 1, 1)).await.expect("enqueue_for_worker must work");
    let lost = turns(&fixture, gone.node(), 1).await.remove(0);
    let kept = turns(&fixture, other.node(), 1).await.remove(0);
    let lost_work = work(&fixture, gone.node(), 1).await.remove(0);
    drop(gone);

    let again = turns(&fixture, other.node(), 10).await;
    assert_eq!(again.len(), 1, "only what the node held must be free");
    assert_eq!((&again[0].instance, again[0].attempt_count), (&lost.instance, 2), "the attempt must count");
    let work_again = work(&fixture, other.node(), 10).await;
    assert_eq!(work_again.len(), 1);
    assert_eq!(work_again[0].attempt_count, 2, "the attempt must count");
    let stale = fixture.provider.ack_work_item(&lost_work.lock_token, None).await;
    assert!(stale.is_err(), "the lock of a node that left must be gone");
    let token = &kept.lock_token;
    fixture
        .provider
        .renew_orchestration_item_lock(token, LONG_LEASE)
        .await
        .expect("the other lock must hold");
}

/// Work is stranded only while no joined node can take it.
pub async fn test_stranded_work_is_what_no_node_can_take<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let capability = |activities: &[&str]| NodeCapability {
        replay_versions: vec![SemverRange::new(Version::new(0, 0, 0), Version::new(9, 0, 0))],
        activities: activities.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(),
        asks_for_registered_only: true,
        ..NodeCapability::default()
    };
    let Some(_idle) = join(&fixture, "idle", capability(&[])).await else { return };
    fixture.send(start_of("a", "Nobodys", None)).await;
    let scheduled = activity("a", 1, 1);
    fixture.provider.enqueue_for_worker(scheduled).await.expect("enqueue_for_worker must work");
    let admin = fixture.provider.as_management_capability().expect("nodes need the management calls");
    let stranded = admin.list_stranded_work(10).await.expect("list_stranded_work must work");
    let kinds: Vec<_> = stranded.iter().map(|work| (work.missing.label(), work.activity.is_some())).collect();
    assert_eq!(kinds, [("orchestration", false), ("activity", true)], "{stranded:?}");
    let MissingCapability::Activity { name } = &stranded[1].missing else { panic!("{stranded:?}") };

    let capable = join(&fixture, "capable", capability(&[name])).await;
    let left = admin.list_stranded_work(10).await.expect("list_stranded_work must work");
    assert_eq!(left.len(), 1, "a node has come that takes the activity: {left:?}");
    drop(capable);
}

/// Stranded work can be claimed past all filters, to end it. The claim checks again that no node can take the work.
pub async fn test_work_is_claimed_to_be_ended_only_while_it_is_stranded<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    let any_version = || vec![SemverRange::new(Version::new(0, 0, 0), Version::new(9, 0, 0))];
    let weak = NodeCapability {
        replay_versions: any_version(),
        asks_for_registered_only: true,
        ..NodeCapability::default()
    };
    // This node takes all work, and abandons work for which it has no handler.
    let able =
        NodeCapability { replay_versions: any_version(), tags: TagFilter::Any, ..NodeCapability::default() };
    let Some(_weak) = join(&fixture, "weak", weak).await else { return };
    fixture.send(start_of("a", "Nobodys", None)).await;
    let scheduled = activity("a", 1, 1);
    fixture.provider.enqueue_for_worker(scheduled).await.expect("enqueue_for_worker must work");
    let admin = fixture.provider.as_management_capability().expect("nodes need the management calls");
    let stranded = admin.list_stranded_work(10).await.expect("list_stranded_work must work");
    let activity = stranded.iter().find_map(|work| work.activity.clone()).expect("the activity is stranded");

    let able = join(&fixture, "able", able).await;
    let turn = OrchestrationFetch::new(LONG_LEASE, Duration::ZERO).with_only("a");
    let work = WorkFetch::new(LONG_LEASE, Duration::ZERO, &TagFilter::None).with_only(&activity);
    let turns =
        async || fixture.provider.fetch_orchestration_items(&turn).await.expect("the fetch must work");
    let works = async || fixture.provider.fetch_work_items(&work).await.expect("the fetch must work");
    assert!(turns().await.is_empty(), "a node has come that can take the instance");
    assert!(works().await.is_empty(), "a node has come that can take the activity");
    drop(able);
    assert_eq!(turns().await.len(), 1, "it has gone again");
    assert_eq!(works().await.len(), 1, "it has gone again");
}

/// Instances that do not pass a filter are stuck as soon as their messages are old enough (A17.3).
pub async fn test_stuck_instances_are_those_the_filter_does_not_pass<F: ProviderFactory + ?Sized>(
    factory: &F,
) {
    let fixture = Fixture::new(factory).await;
    if join(&fixture, "asks", NodeCapability::default()).await.is_none() {
        return;
    }
    fixture.send(start_of("new", "Mine", None)).await;
    let admin = fixture.provider.as_management_capability().expect("nodes need the management calls");
    let nothing = DispatcherCapabilityFilter { supported_duroxide_versions: Vec::new() };
    let any = DispatcherCapabilityFilter::default_for_current_build();
    let stuck = admin.list_stuck_instances(Duration::ZERO, &nothing).await.expect("the list must work");
    assert_eq!(stuck, ["new"], "an empty filter passes nothing");
    let stuck = admin.list_stuck_instances(Duration::ZERO, &any).await.expect("the list must work");
    assert!(stuck.is_empty(), "an instance without a pin passes: {stuck:?}");
    let hour = Duration::from_secs(3_600);
    let stuck = admin.list_stuck_instances(hour, &nothing).await.expect("the list must work");
    assert!(stuck.is_empty(), "it has not waited for so long");
}
