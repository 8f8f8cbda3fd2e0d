//! Deleting many instances by a filter.

use duroxide_provider::{DeleteInstanceResult, InstanceFilter};

use super::deletion::family;
use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, now_ms},
    round::{completion, continuation},
};

fn only(ids: &[&str]) -> InstanceFilter {
    InstanceFilter {
        instance_ids: Some(ids.iter().map(|id| (*id).to_owned()).collect()),
        ..InstanceFilter::default()
    }
}

async fn delete(fixture: &Fixture, filter: InstanceFilter) -> DeleteInstanceResult {
    fixture.admin().delete_instance_bulk(filter).await.expect("delete_instance_bulk must work")
}

async fn remaining(fixture: &Fixture) -> Vec<String> {
    let mut ids = fixture.admin().list_instances().await.expect("list_instances must work");
    ids.sort();
    ids
}

/// All criteria of a filter must hold, and unknown ids are ignored (19.2).
pub async fn test_delete_instance_bulk_filter_combinations<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    for instance in ["a", "b", "c"] {
        fixture.completed(instance).await;
    }
    let in_the_past = InstanceFilter { completed_before: Some(1), ..only(&["a"]) };
    assert_eq!(delete(&fixture, in_the_past).await.instances_deleted, 0, "both criteria must hold");
    let two = delete(&fixture, only(&["a", "b", "unknown"])).await;
    assert_eq!((two.instances_deleted, two.events_deleted), (2, 4), "only the named instances go");
    assert_eq!(remaining(&fixture).await, ["c"]);
    assert_eq!(
        delete(&fixture, InstanceFilter::default()).await.instances_deleted,
        1,
        "no criterion means all"
    );
    assert!(remaining(&fixture).await.is_empty());
}

/// Running instances, and instances that wait for a successor, are never deleted; the limit bounds a call (19.2).
pub async fn test_delete_instance_bulk_safety_and_limits<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("runs").await;
    for instance in ["a", "b", "c"] {
        fixture.completed(instance).await;
    }
    fixture.running("between").await;
    fixture.turn("between", continuation("between", 1, 2)).await;

    let limited = InstanceFilter { limit: Some(2), ..InstanceFilter::default() };
    assert_eq!(delete(&fixture, limited).await.instances_deleted, 2, "the limit must bound a call");
    let named = delete(&fixture, only(&["runs", "between"])).await;
    assert_eq!(
        named.instances_deleted, 0,
        "an instance that has not ended must not be deleted, also by its name"
    );
    assert_eq!(delete(&fixture, InstanceFilter::default()).await.instances_deleted, 1);
    assert_eq!(remaining(&fixture).await, ["between", "runs"]);
}

/// Only instances that ended before the given time are deleted (19.2).
pub async fn test_delete_instance_bulk_completed_before_filter<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.completed("old").await;
    let ended =
        fixture.admin().get_execution_info("old", 1).await.expect("the execution is known").completed_at;
    let ended = ended.expect("an execution that ended has an end");
    fixture.running("young").await;
    wait_past(ended).await;
    fixture.turn("young", completion("young", 1, 2, "done")).await;

    let before = InstanceFilter { completed_before: Some(ended + 1), ..InstanceFilter::default() };
    assert_eq!(
        delete(&fixture, before).await.instances_deleted,
        1,
        "only the instance that ended before goes"
    );
    assert_eq!(remaining(&fixture).await, ["young"]);
}

/// Waits until the clock is more than 5 ms past `ms`.
async fn wait_past(ms: u64) {
    while now_ms() <= ms + 5 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// A root is deleted with its tree; children alone are not deleted (19.2).
pub async fn test_delete_instance_bulk_cascades_to_children<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let [root, child, grandchild] = family(&fixture, "root").await;
    fixture.turn(&grandchild, completion(&grandchild, 1, 2, "done")).await;
    fixture.turn(&child, completion(&child, 1, 2, "done")).await;
    let early = delete(&fixture, InstanceFilter::default()).await;
    assert_eq!(early.instances_deleted, 0, "children must not be deleted without their root");
    fixture.turn(&root, completion(&root, 1, 2, "done")).await;
    let deleted = delete(&fixture, InstanceFilter { limit: Some(1), ..InstanceFilter::default() }).await;
    assert_eq!(deleted.instances_deleted, 3, "one root must be deleted with its whole tree");
    assert!(remaining(&fixture).await.is_empty());
}
