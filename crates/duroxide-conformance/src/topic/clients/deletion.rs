//! Deleting instances, with everything that belongs to them.

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, assert_permanent, assert_refused},
    message::{activity, activity_completed, child_start, raised, start},
    round::{activity_scheduled, completion, failure, first_round, turn_round},
};

/// A tree of running instances: `root` with `child`, and `child` with `grandchild`.
pub(super) async fn family(fixture: &Fixture, root: &str) -> [String; 3] {
    let [child, grandchild] = [format!("{root}-child"), format!("{root}-grandchild")];
    let mut round = first_round(root);
    round.orchestrator_items = vec![child_start(root, 2, &child)];
    fixture.running_with(root, round).await;
    run_child(fixture, root, &child, Some(&grandchild)).await;
    run_child(fixture, &child, &grandchild, None).await;
    [root.to_owned(), child, grandchild]
}

/// Runs the first turn of a child whose start is queued.
async fn run_child(fixture: &Fixture, parent: &str, child: &str, grandchild: Option<&str>) {
    let claim = fixture.claim_instance(child).await;
    let mut round = first_round(child);
    round.metadata.parent_instance_id = Some(parent.to_owned());
    round.orchestrator_items = grandchild.map(|id| child_start(child, 2, id)).into_iter().collect();
    fixture.commit(&claim, round).await;
}

async fn assert_gone(fixture: &Fixture, instance: &str) {
    let info = fixture.admin().get_instance_info(instance).await;
    assert_refused(info, "not found", &format!("{instance} was deleted"));
    let history = fixture.provider.read(instance).await.expect("read must work");
    assert!(history.is_empty(), "the history of {instance} must be deleted with it");
}

/// Instances that ended are deleted, and the result counts the deleted rows (19.1).
pub async fn test_delete_terminal_instances<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.completed("completed").await;
    fixture.running("failed").await;
    fixture.turn("failed", failure("failed", 1, 2, "broken")).await;
    fixture.completed("kept").await;
    for instance in ["completed", "failed"] {
        let deleted =
            fixture.admin().delete_instance(instance, false).await.expect("an ended instance is deletable");
        assert_eq!(
            (deleted.instances_deleted, deleted.executions_deleted, deleted.events_deleted),
            (1, 1, 2)
        );
        assert_gone(&fixture, instance).await;
    }
    fixture.admin().get_instance_info("kept").await.expect("other instances must stay");
}

/// A running instance is deleted only with force (19.1).
pub async fn test_delete_running_rejected_force_succeeds<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("runs").await;
    let refused = fixture.admin().delete_instance("runs", false).await;
    assert_refused(
        refused,
        "Instance runs is still running. Use force=true to delete anyway, or cancel first.",
        "deleting a running instance without force",
    );
    fixture.admin().get_instance_info("runs").await.expect("a refused delete must delete nothing");
    let deleted = fixture.admin().delete_instance("runs", true).await.expect("force must delete it");
    assert_eq!(deleted.instances_deleted, 1);
    assert_gone(&fixture, "runs").await;
}

/// Deleting an unknown instance is the error `Instance {id} not found` (A12).
pub async fn test_delete_nonexistent_instance<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    for force in [false, true] {
        let refused = fixture.admin().delete_instance("unknown", force).await;
        assert_refused(refused, "Instance unknown not found", "deleting an unknown instance");
    }
}

/// Deleting an instance deletes its queue rows and locks (19.1).
pub async fn test_delete_cleans_queues_and_locks<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let mut round = first_round("full");
    round.worker_items = vec![activity("full", 1, 2), activity("full", 1, 3)];
    fixture.running_with("full", round).await;
    fixture.send(raised("full", "locked")).await;
    let claim = fixture.claim_instance("full").await;
    fixture.send(raised("full", "waiting")).await;

    let deleted = fixture.admin().delete_instance("full", true).await.expect("force must delete it");
    assert_eq!(deleted.queue_messages_deleted, 4, "two activities and two messages were queued");
    let late = fixture.ack(&claim.token, turn_round(1, vec![])).await;
    assert_permanent(late, "the lock of a deleted instance must be gone");
    fixture.expect_no_work("the activities of a deleted instance must be gone").await;

    fixture.send(start("full")).await;
    let claim = fixture.claim_instance("full").await;
    assert_eq!(claim.item.messages, [start("full")], "no old message must come to the new instance");
    assert!(claim.item.history.is_empty(), "no old history must come to the new instance");
}

/// Deleting a root deletes its tree; a child is not deleted alone (19.1).
pub async fn test_cascade_delete_hierarchy<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let [root, child, grandchild] = family(&fixture, "root").await;
    let refused = fixture.admin().delete_instance(&child, true).await;
    assert_refused(
        refused,
        "Cannot delete sub-orchestration root-child directly. Delete root instance instead.",
        "deleting a child alone",
    );
    let deleted =
        fixture.admin().delete_instance(&root, true).await.expect("a root must be deletable by force");
    assert_eq!(deleted.instances_deleted, 3, "the whole tree must be deleted");
    for instance in [&root, &child, &grandchild] {
        assert_gone(&fixture, instance).await;
    }
}

/// The commit of a running turn fails because its lock is lost, and does not recreate the instance (19.1, S0.A5).
pub async fn test_force_delete_prevents_ack_recreation<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("flies").await;
    fixture.send(raised("flies", "wake")).await;
    let claim = fixture.claim_instance("flies").await;
    fixture.admin().delete_instance("flies", true).await.expect("force must delete it");

    let mut round = completion("flies", 1, 2, "late");
    round.metadata.orchestration_name = Some("Conformance".to_owned());
    round.metadata.orchestration_version = Some("1.0.0".to_owned());
    round.worker_items = vec![activity("flies", 1, 2)];
    assert_refused(fixture.ack(&claim.token, round).await, "Invalid lock token", "a commit after the delete");
    assert_gone(&fixture, "flies").await;
    fixture.expect_no_work("a refused round must queue nothing").await;
}

/// The direct children of an instance are listed (A12).
pub async fn test_list_children<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let [root, child, grandchild] = family(&fixture, "root").await;
    let admin = fixture.admin();
    assert_eq!(admin.list_children(&root).await.expect("the call must work"), ["root-child"]);
    assert_eq!(admin.list_children(&child).await.expect("the call must work"), ["root-grandchild"]);
    assert!(admin.list_children(&grandchild).await.expect("the call must work").is_empty());
}

/// The parent of an instance is known; an unknown instance is an error (A12).
pub async fn test_delete_get_parent_id<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let [root, child, _] = family(&fixture, "root").await;
    let admin = fixture.admin();
    assert_eq!(admin.get_parent_id(&root).await.expect("the call must work"), None, "a root has no parent");
    assert_eq!(admin.get_parent_id(&child).await.expect("the call must work"), Some(root));
    assert_refused(admin.get_parent_id("unknown").await, "Instance unknown not found", "an unknown instance");
}

/// The tree of an instance holds it and all its descendants, the root first (A12).
pub async fn test_delete_get_instance_tree<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let members = family(&fixture, "root").await;
    let tree = fixture.admin().get_instance_tree("root").await.expect("the call must work");
    assert_eq!((tree.root_id.as_str(), tree.size(), tree.is_root_only()), ("root", 3, false));
    assert_eq!(tree.all_ids[0], "root", "the root must come first");
    for member in &members {
        assert!(tree.all_ids.contains(member), "{member} belongs to the tree");
    }
    let leaf = fixture.admin().get_instance_tree("root-grandchild").await.expect("the call must work");
    assert!(leaf.is_root_only(), "an instance without children is a tree of its own");
}

/// Without force nothing is deleted if one of the instances runs (19.1, I10).
pub async fn test_delete_instances_atomic<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.completed("ended").await;
    fixture.running("runs").await;
    let ids = ["ended".to_owned(), "runs".to_owned()];
    let refused = fixture.admin().delete_instances_atomic(&ids, false).await;
    assert_refused(refused, "still running", "deleting a running instance without force");
    fixture.admin().get_instance_info("ended").await.expect("a refused delete must delete nothing");

    fixture.turn("runs", completion("runs", 1, 2, "done")).await;
    let deleted = fixture.admin().delete_instances_atomic(&ids, false).await.expect("both have ended");
    assert_eq!(deleted.instances_deleted, 2);
    for instance in &ids {
        assert_gone(&fixture, instance).await;
    }
}

/// With force running instances are deleted too (19.1).
pub async fn test_delete_instances_atomic_force<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("one").await;
    fixture.running("two").await;
    let ids = ["one".to_owned(), "two".to_owned()];
    let deleted =
        fixture.admin().delete_instances_atomic(&ids, true).await.expect("force deletes running ones");
    assert_eq!((deleted.instances_deleted, deleted.events_deleted), (2, 2));
    for instance in &ids {
        assert_gone(&fixture, instance).await;
    }
}

/// A delete whose list lacks a child is refused, so that no child is left without its parent (19.1).
pub async fn test_delete_instances_atomic_orphan_detection<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let [root, child, grandchild] = family(&fixture, "root").await;
    let known = [root.clone(), child.clone()];
    let refused = fixture.admin().delete_instances_atomic(&known, true).await;
    assert_refused(
        refused,
        "instance root-child has child root-grandchild that was created after tree traversal",
        "deleting a tree that has grown",
    );
    for instance in [&root, &child, &grandchild] {
        fixture.admin().get_instance_info(instance).await.expect("a refused delete must delete nothing");
    }
    let all = [root, child, grandchild];
    let deleted =
        fixture.admin().delete_instances_atomic(&all, true).await.expect("the whole tree is deletable");
    assert_eq!(deleted.instances_deleted, 3);
}

/// A worker with an activity of a deleted instance does not affect a new instance of the same id (I09, 19.1).
pub async fn test_stale_activity_after_delete_recreate<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let mut round = first_round("reborn");
    round.history_delta.push(activity_scheduled("reborn", 1, 2));
    round.worker_items = vec![activity("reborn", 1, 2)];
    fixture.running_with("reborn", round.clone()).await;
    let stale = fixture.work().await;
    fixture.admin().delete_instance("reborn", true).await.expect("force must delete it");
    fixture.running_with("reborn", round).await;

    let acked = fixture.provider.ack_work_item(&stale.token, Some(activity_completed("reborn", 1, 2))).await;
    assert_permanent(acked, "a lock of the deleted instance must be worth nothing");
    fixture.expect_no_claim("a refused ack must not queue its completion").await;
    let fresh = fixture.work().await;
    assert_eq!(fresh.attempts, 1, "the new instance's activity must be untouched");
    let acked = fixture.provider.ack_work_item(&fresh.token, Some(activity_completed("reborn", 1, 2))).await;
    acked.expect("the new instance's activity must be ackable");
}
