//! Deleting and pruning.

use std::time::Duration;

use duroxide_core::{Event, EventKind};

use crate::{
    InstanceFilter, PruneOptions,
    store::{
        Answer, Op, Refusal,
        bounds::{ORPHAN_MESSAGE_TTL_DEFAULT, REMOVED_ROWS_MAX},
    },
    testing::{Scenario, Turn, items::*, scenario::batch_fetch},
};

fn tree(instance: &str, force: bool) -> Op {
    Op::DeleteTree { instance: instance.to_owned(), force }
}

fn list(ids: &[&str], force: bool) -> Op {
    Op::DeleteInstances { ids: ids.iter().map(|id| (*id).to_owned()).collect(), force }
}

/// A parent `p` that waits for its child `c`, which waits too.
fn family(s: &mut Scenario) {
    s.run_first_turn(Turn::first("p").child("c"), &start("p"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::first_of_child("c", "p", 1, 2)).unwrap();
}

/// Runs an instance through `n` executions, one second each; the last one waits.
fn executions(s: &mut Scenario, instance: &str, n: u64) {
    s.running(instance);
    for next in 2..=n {
        s.pass(Duration::from_secs(1));
        s.send(&raise(instance, "go"));
        let claim = s.claim().unwrap();
        s.commit(&claim, Turn::later(&claim).continue_with(Turn::start_of(instance, next))).unwrap();
        let wake = s.claim().unwrap();
        s.commit(&wake, Turn::later(&wake)).unwrap();
    }
}

/// 19.1
pub fn a_running_instance_is_deleted_only_by_force(mut s: Scenario) {
    s.running("a");
    let running = Refusal::InstanceStillRunning { instance: "a".to_owned() };
    assert_eq!(s.delete(&tree("a", false)).unwrap_err(), running);
    assert_eq!(s.delete(&list(&["a"], false)).unwrap_err(), running);
    assert_eq!(s.delete(&tree("a", true)).unwrap().instances_deleted, 1);
    assert_eq!(
        s.delete(&tree("a", true)).unwrap_err(),
        Refusal::InstanceNotFound { instance: "a".to_owned() }
    );
    assert_eq!(s.delete(&list(&["a"], false)).unwrap().instances_deleted, 0);
    s.ended("b");
    assert_eq!(s.delete(&tree("b", false)).unwrap().events_deleted, 2);
}

/// 19.1
pub fn a_tree_is_deleted_from_its_root(mut s: Scenario) {
    family(&mut s);
    assert_eq!(
        s.delete(&tree("c", true)).unwrap_err(),
        Refusal::IsSubOrchestration { instance: "c".to_owned() }
    );
    let deleted = s.delete(&tree("p", true)).unwrap();
    assert_eq!((deleted.instances_deleted, deleted.executions_deleted, deleted.events_deleted), (2, 2, 3));
    assert!(s.snapshot().instances.is_empty());
}

/// 19.1: the rows of a large tree may be removed later, but no read finds them, and its ids are free at once.
pub fn a_large_tree_is_deleted_with_the_first_step(mut s: Scenario) {
    family(&mut s);
    let event = |event_id| Event {
        event_id,
        source_event_id: None,
        instance_id: "c".to_owned(),
        execution_id: 1,
        timestamp_ms: 1,
        duroxide_version: "0.5.0".to_owned(),
        kind: EventKind::ExternalEvent { name: "e".to_owned(), data: "x".to_owned() },
    };
    let many = 2 * REMOVED_ROWS_MAX as u64;
    s.append("c", 1, &(2..=many).map(event).collect::<Vec<_>>()).unwrap();
    s.send(&raise("c", "unread"));
    let claim = s.claim().unwrap();
    let mut answer = s.apply(&tree("p", true)).unwrap();
    assert!(s.snapshot().instances.is_empty());
    assert!(s.read().history("c", Some(1)).unwrap().is_empty());
    assert_eq!(s.read().system_metrics().unwrap().total_events, 0);
    assert!(s.commit(&claim, Turn::later(&claim)).is_err());
    s.running("c");
    let mut events = 0;
    loop {
        let (result, task) = match answer {
            Answer::Deleted(result) => (result, None),
            Answer::DeletedPart(result, unfinished) => (result, unfinished.rows),
            other => panic!("unexpected answer {other:?}"),
        };
        events += result.events_deleted;
        let Some(task) = task else { break };
        answer = s.apply(&Op::RemoveRows { task }).unwrap();
    }
    assert_eq!(events, many + 2, "of the child and of its parent");
    assert_eq!(s.read().history("c", None).unwrap().len(), 1, "the new one is left alone");
}

/// 19.1
pub fn a_list_must_hold_all_children(mut s: Scenario) {
    family(&mut s);
    let appeared = Refusal::ChildAppeared { parent: "p".to_owned(), child: "c".to_owned() };
    assert_eq!(s.delete(&list(&["p"], true)).unwrap_err(), appeared);
    assert_eq!(s.delete(&list(&["p", "c", "p"], true)).unwrap().instances_deleted, 2);
}

/// 19.1: a child belongs to the tree from the call on. Ids may hold slashes, so calls of other parents can have similar
/// keys.
pub fn calls_that_were_not_carried_out_are_deleted_with_their_parent(mut s: Scenario) {
    s.send(&start("p"));
    s.send(&start("p/1"));
    let (p, other) = (s.claim().unwrap(), s.claim().unwrap());
    s.commit(&p, Turn::first("p").child("c")).unwrap();
    s.commit(&other, Turn::first("p/1").child("d")).unwrap();
    s.send(&raise("c", "for an unborn child"));
    let deleted = s.delete(&tree("p", true)).unwrap();
    assert_eq!((deleted.instances_deleted, deleted.queue_messages_deleted), (1, 2));
    let left: Vec<_> = s.snapshot().instances.into_iter().map(|instance| instance.instance).collect();
    assert_eq!(left, ["d", "p/1"]);
    assert_eq!(s.claim().unwrap().instance, "d");
}

/// 19.1: it recreates nothing.
pub fn a_first_turn_of_a_deleted_parents_child_loses_its_lock(mut s: Scenario) {
    s.run_first_turn(Turn::first("p").child("c"), &start("p"));
    let claim = s.claim().unwrap();
    assert_eq!(claim.instance, "c");
    s.force_delete("p");
    let refused = s.commit(&claim, Turn::first_of_child("c", "p", 1, 2)).unwrap_err();
    assert_eq!(refused, Refusal::InvalidLockToken);
    assert!(s.snapshot().instances.is_empty());
}

/// 19.1, I18: an acknowledged start of the same id is not the parent's.
pub fn messages_of_other_senders_to_a_pending_child_stay(mut s: Scenario) {
    s.run_first_turn(Turn::first("p").child("c"), &start("p"));
    s.send(&start("c"));
    let claim = s.claim().unwrap();
    assert_eq!(claim.messages.len(), 2);
    s.force_delete("p");
    assert!(s.commit(&claim, Turn::first_of_child("c", "p", 1, 2)).is_err());
    let claim = s.claim().unwrap();
    assert_eq!((claim.instance.as_str(), claim.messages.len()), ("c", 1));
    s.commit(&claim, Turn::first("c")).unwrap();
    assert_eq!(s.snapshot().instances[0].parent, None);
}

/// 16.12, 19.1
pub fn a_delete_drops_queues_and_dead_letters(mut s: Scenario) {
    s.send(&raise("a", "too early"));
    s.pass(ORPHAN_MESSAGE_TTL_DEFAULT);
    s.claim_all(&batch_fetch(1));
    assert_eq!(s.dead_letters().len(), 1);
    let at = s.now_ms() + 1_000;
    s.run_first_turn(Turn::first("a").activity().timer(at).set("k", "1"), &start("a"));
    s.send(&raise("a", "e"));
    s.work().unwrap();
    let deleted = s.force_delete("a");
    assert_eq!(deleted.queue_messages_deleted, 3);
    assert!(s.dead_letters().is_empty());
    assert!(s.work().is_none());
    s.running("a");
    assert!(s.read().kv_values("a").unwrap().is_empty());
}

/// 19.1: queue rows go too, also of an instance that was never started.
pub fn a_mailbox_in_a_list_is_emptied(mut s: Scenario) {
    s.send(&start("a"));
    s.send(&activity("a", 1));
    let deleted = s.delete(&list(&["a"], false)).unwrap();
    assert_eq!((deleted.instances_deleted, deleted.queue_messages_deleted), (0, 2));
    assert!(s.claim().is_none() && s.work().is_none());
}

/// 19.2, 20.2
pub fn an_instance_that_waits_for_its_successor_runs(mut s: Scenario) {
    s.run_first_turn(Turn::first("a").continue_as_new().send(continue_as_new("a", None)), &start("a"));
    assert!(s.delete(&tree("a", false)).is_err());
    assert_eq!(s.delete(&Op::DeleteBulk(InstanceFilter::default())).unwrap().instances_deleted, 0);
}

/// 19.2
pub fn bulk_delete_takes_ended_roots_with_their_trees(mut s: Scenario) {
    s.ended("a");
    s.pass(Duration::from_secs(1));
    let between = s.now_ms();
    s.ended("b");
    s.ended("c");
    s.running("d");
    let bulk = |filter| Op::DeleteBulk(filter);
    let limited = InstanceFilter { limit: Some(1), ..InstanceFilter::default() };
    let old = InstanceFilter { completed_before: Some(between), ..InstanceFilter::default() };
    let named = InstanceFilter {
        instance_ids: Some(vec!["c".to_owned(), "d".to_owned(), "x".to_owned()]),
        ..InstanceFilter::default()
    };
    assert_eq!(s.delete(&bulk(old.clone())).unwrap().instances_deleted, 1);
    assert_eq!(s.delete(&bulk(old)).unwrap().instances_deleted, 0);
    assert_eq!(s.delete(&bulk(named)).unwrap().instances_deleted, 1);
    assert_eq!(s.read().instances(None).unwrap(), ["d", "b"]);
    assert_eq!(s.delete(&bulk(limited)).unwrap().instances_deleted, 1);
    assert_eq!(s.read().instances(None).unwrap(), ["d"]);
}

fn prune(keep_last: Option<u32>, completed_before: Option<u64>) -> Op {
    Op::Prune { instance: "a".to_owned(), options: PruneOptions { keep_last, completed_before } }
}

/// 19.3
pub fn prune_keeps_the_current_and_the_newest(mut s: Scenario) {
    executions(&mut s, "a", 5);
    let pruned = s.prune(&prune(Some(3), None)).unwrap();
    assert_eq!((pruned.instances_processed, pruned.executions_deleted, pruned.events_deleted), (1, 2, 4));
    assert_eq!(s.read().executions("a").unwrap(), [3, 4, 5]);
    assert_eq!(s.prune(&prune(Some(0), None)).unwrap().executions_deleted, 2);
    assert_eq!(s.read().executions("a").unwrap(), [5]);
    assert_eq!(s.prune(&prune(None, None)).unwrap().executions_deleted, 0);
    s.send(&raise("a", "end"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::later(&claim).complete("done")).unwrap();
    assert_eq!(s.prune(&prune(Some(0), None)).unwrap().executions_deleted, 0, "ended or not");
    let unknown = Op::Prune { instance: "x".to_owned(), options: PruneOptions::default() };
    assert_eq!(s.prune(&unknown).unwrap_err(), Refusal::InstanceNotFound { instance: "x".to_owned() });
}

/// 19.3
pub fn prune_compares_the_time_of_the_end(mut s: Scenario) {
    executions(&mut s, "a", 4);
    // Execution 1 ended after one second, 2 after two, 3 after three.
    let before = Scenario::BEGIN_MS + 2_000;
    assert_eq!(s.prune(&prune(None, Some(before))).unwrap().executions_deleted, 1);
    assert_eq!(s.read().executions("a").unwrap(), [2, 3, 4]);
    assert_eq!(s.prune(&prune(Some(3), Some(u64::MAX))).unwrap().executions_deleted, 0);
}

/// 19.3
pub fn bulk_prune_visits_running_instances(mut s: Scenario) {
    executions(&mut s, "a", 3);
    executions(&mut s, "b", 2);
    s.ended("c");
    let options = PruneOptions::default();
    let all = Op::PruneBulk { filter: InstanceFilter::default(), options: options.clone() };
    let ended = InstanceFilter { completed_before: Some(u64::MAX), ..InstanceFilter::default() };
    let pruned = s.prune(&Op::PruneBulk { filter: ended, options }).unwrap();
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (1, 0));
    let pruned = s.prune(&all).unwrap();
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (3, 3));
}
