//! What operators do takes a few round trips more than other batches, because a part of it can only be read when another part is
//! known: the children of an instance, the selection of a bulk operation, the rows of dead letters that go back. How many rows it
//! is about does not matter, within one step. Of several operations in a batch each removes rows by a statement of its own.

use duroxide_provider::{
    DeadLetter, InstanceFilter, OrchestrationClaim, PruneOptions,
    store::{Answer, MessageKind, Op, StoreReader as _},
    testing::{Turn, items},
};

use crate::fixture::{Node, claims, commit, fresh_options, ids, start};

/// How many rows of each kind a tour is about. One step deletes at most 25 families.
const SIZES: [usize; 3] = [1, 7, 20];

/// The name of a batch, its round trips, and how many they should be.
type Expected = Vec<(&'static str, u64, u64)>;

/// Makes a tour in each size, and checks the round trips of each batch.
fn check(tour: impl Fn(&mut Node, &str, usize) -> Expected) {
    let Some(server) = postgres_server::server() else { return };
    let mut node = Node::open(&fresh_options(server), 1);
    for size in SIZES {
        tour(&mut node, &format!("warm-up-{size}"), size);
    }
    for size in SIZES {
        for (batch, round_trips, expected) in tour(&mut node, &format!("of-{size}"), size) {
            assert_eq!(round_trips, expected, "{batch} of {size}");
        }
    }
}

fn letters(node: &mut Node, count: usize) -> Vec<DeadLetter> {
    let letters = node.engine.snapshot().unwrap().dead_letters;
    assert_eq!(letters.len(), count);
    letters
}

fn retries(node: &mut Node, count: usize) -> u64 {
    let retry = |letter: DeadLetter| Op::RetryDeadLetter { id: letter.id };
    let ops = letters(node, count).into_iter().map(retry).collect();
    node.run(ops).1
}

fn discards(node: &mut Node, count: usize) -> u64 {
    let discard = |letter: DeadLetter| Op::DiscardDeadLetter { id: letter.id };
    let ops = letters(node, count).into_iter().map(discard).collect();
    node.run(ops).1
}

/// Messages and activities that cannot be decoded run out of attempts with the first claim. The numbers of all letters are drawn at
/// once. An activity's instance is read, because the letter names it.
#[test]
fn dead_letters() {
    check(|node, prefix, size| {
        let ids = ids(prefix, size);
        node.run(vec![Op::SetMaxAttempts(0)]);
        let mut counted = Expected::new();
        let unreadable = |id: &String| Op::EnqueueMessage(items::undecodable_message(id, MessageKind::Start));
        node.run(ids.iter().map(unreadable).collect());
        let (claimed, trips) = node.claim(size + 5);
        assert_eq!(claimed.len(), 0);
        counted.push(("claims of undecodable messages", trips, 3));
        counted.push(("retries of messages", retries(node, size), 3));
        node.claim(size + 5);
        counted.push(("discards of messages", discards(node, size), 2));

        let unreadable = |id: &String| Op::EnqueueActivity(items::undecodable_activity(id, 2));
        node.run(ids.iter().map(unreadable).collect());
        let (claimed, trips) = node.work(size + 5);
        assert_eq!(claimed.len(), 0);
        counted.push(("claims of undecodable activities", trips, 4));
        counted.push(("retries of activities", retries(node, size), 3));
        node.work(size + 5);
        counted.push(("discards of activities", discards(node, size), 2));
        counted
    });
}

/// Activities of instances that exist go back into the queue if they are not in it.
#[test]
fn dead_activities_of_instances() {
    check(|node, prefix, size| {
        let ids = ids(prefix, size);
        node.run(vec![Op::SetMaxAttempts(0)]);
        node.run(ids.iter().map(|id| start(id)).collect());
        node.claim(size);
        let unreadable = |id: &String| Op::EnqueueActivity(items::undecodable_activity(id, 2));
        node.run(ids.iter().map(unreadable).collect());
        let mut counted = vec![("claims", node.work(size + 5).1, 4), ("retries", retries(node, size), 4)];
        node.work(size + 5);
        discards(node, size);
        let deleted = node.run(vec![Op::DeleteInstances { ids, force: true }]).1;
        counted.push(("a list", deleted, 3));
        counted
    });
}

/// Ended instances with a value, a status and an ended child each.
fn families(node: &mut Node, ids: &[String]) {
    let batch = node.batch(ids.iter().map(|id| start(id)).collect(), ids.len(), 0);
    let parents = claims(node.transact(&batch).0);
    let turns = parents.iter().map(|claim| {
        let turn = Turn::first(&claim.instance).set("key", "value").status(Some("busy"));
        commit(claim, turn.child("sub::4").complete("done"))
    });
    node.run(turns.collect());
    let children = node.claim(ids.len()).0;
    let turns = children.iter().map(|claim| {
        let (parent, _) = claim.instance.split_once("::").unwrap();
        commit(claim, Turn::first_of_child(&claim.instance, parent, 1, 4).complete("done"))
    });
    node.run(turns.collect());
}

/// Trees are read level by level, all trees of a batch at once.
#[test]
fn deleting() {
    check(|node, prefix, size| {
        let (names, n) = (ids(prefix, size), size as u64);
        let mut counted = Expected::new();
        families(node, &names);
        let ids = names.iter().flat_map(|id| [id.clone(), format!("{id}::sub::4")]).collect();
        counted.push(("a list", node.run(vec![Op::DeleteInstances { ids, force: false }]).1, 3));
        families(node, &names);
        let trees = names.iter().map(|id| Op::DeleteTree { instance: id.clone(), force: false });
        counted.push(("trees", node.run(trees.collect()).1, 3 + n));
        families(node, &names);
        let (done, trips) = node.run(vec![Op::DeleteBulk(InstanceFilter::default())]);
        assert!(matches!(done.answers[..], [Ok(Answer::Deleted(_))]), "{:?}", done.answers);
        counted.push(("in bulk", trips, 6));
        assert_eq!(node.engine.snapshot().unwrap().instances.len(), 0);
        counted
    });
}

/// The activities of instances that have some are deleted by one statement, and the mailboxes of all calls that were not carried out
/// are read at once.
#[test]
fn deleting_by_force() {
    check(|node, prefix, size| {
        let names = ids(prefix, size);
        let batch = node.batch(names.iter().map(|id| start(id)).collect(), size, 0);
        let claimed = claims(node.transact(&batch).0);
        let turns = claimed.iter().map(|claim| {
            let turn = Turn::first(&claim.instance).activity();
            commit(claim, turn.child(&format!("child-of-{}", claim.instance)))
        });
        node.run(turns.collect());
        let (done, trips) = node.run(vec![Op::DeleteInstances { ids: names, force: true }]);
        assert!(
            matches!(&done.answers[..], [Ok(Answer::Deleted(deleted))]
                if (deleted.instances_deleted, deleted.queue_messages_deleted) == (size as u64, 2 * size as u64)),
            "{:?}",
            done.answers
        );
        assert_eq!(node.engine.snapshot().unwrap().instances.len(), 0);
        vec![("a list with activities and calls", trips, 6)]
    });
}

/// Gives each of these instances two more executions.
fn continue_twice(node: &mut Node, claimed: &mut Vec<OrchestrationClaim>) {
    for _ in 0..2 {
        let turns = claimed.iter().map(|claim| {
            let turn = match claim.position {
                Some(_) => Turn::later(claim),
                None => Turn::first(&claim.instance),
            };
            commit(claim, turn.continue_with(Turn::start_of(&claim.instance, claim.execution_id + 1)))
        });
        let batch = node.batch(turns.collect(), claimed.len(), 0);
        let next = claims(node.transact(&batch).0);
        assert_eq!(next.len(), claimed.len());
        *claimed = next;
    }
}

/// Two executions of each instance are pruned.
#[test]
fn pruning() {
    check(|node, prefix, size| {
        let (names, n) = (ids(prefix, size), size as u64);
        let batch = node.batch(names.iter().map(|id| start(id)).collect(), size, 0);
        let mut claimed = claims(node.transact(&batch).0);
        let mut counted = Expected::new();
        continue_twice(node, &mut claimed);
        let prune = |id: &String| Op::Prune { instance: id.clone(), options: PruneOptions::default() };
        let (done, trips) = node.run(names.iter().map(prune).collect());
        for answer in done.answers {
            assert!(
                matches!(&answer, Ok(Answer::Pruned(pruned)) if pruned.executions_deleted == 2),
                "{answer:?}"
            );
        }
        counted.push(("one by one", trips, 3 + n));
        continue_twice(node, &mut claimed);
        let filter = InstanceFilter { instance_ids: Some(names), ..InstanceFilter::default() };
        let (done, trips) = node.run(vec![Op::PruneBulk { filter, options: PruneOptions::default() }]);
        assert!(
            matches!(&done.answers[..], [Ok(Answer::Pruned(pruned))] if pruned.executions_deleted == 2 * n),
            "{:?}",
            done.answers
        );
        counted.push(("in bulk", trips, 6));
        node.run(claimed.iter().map(|claim| commit(claim, Turn::later(claim).complete("done"))).collect());
        counted
    });
}
