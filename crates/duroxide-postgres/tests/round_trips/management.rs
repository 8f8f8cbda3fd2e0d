//! What operators do takes more than three round trips, and more of them the more rows it is about: dead letters are read one by
//! one, and the rows of deleted instances and pruned executions are removed table by table, each statement within the part of the
//! step that the ones before it have left. It is rare, and the store does a part of it at a time, so it is not worth statements of
//! its own for many rows. The counts are here so that they do not grow unnoticed.

use std::ops::RangeInclusive;

use duroxide_provider::{
    DeadLetter, InstanceFilter, OrchestrationClaim, PruneOptions,
    store::{Answer, MessageKind, Op, StoreReader as _},
    testing::{Turn, items},
};

use crate::fixture::{Node, claims, commit, fresh_options, ids, start};

/// How many rows of each kind a tour is about. One step deletes at most 25 families.
const SIZES: [usize; 3] = [1, 7, 20];

/// The name of a batch, its round trips, and how many they may be.
type Expected = Vec<(&'static str, u64, RangeInclusive<u64>)>;

fn exactly(round_trips: u64) -> RangeInclusive<u64> {
    round_trips..=round_trips
}

/// Makes a tour in each size, and checks the round trips of each batch.
fn check(tour: impl Fn(&mut Node, &str, usize) -> Expected) {
    let Some(server) = postgres_server::server() else { return };
    let mut node = Node::open(&fresh_options(server), 1);
    for size in SIZES {
        tour(&mut node, &format!("warm-up-{size}"), size);
    }
    for size in SIZES {
        for (batch, round_trips, expected) in tour(&mut node, &format!("of-{size}"), size) {
            assert!(expected.contains(&round_trips), "{batch} of {size}: {round_trips}, not {expected:?}");
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

/// Messages and activities that cannot be decoded run out of attempts with the first claim. A claim moves them one by one, and draws
/// numbers for 1, 1, 2, 4, … letters; what is left of these is for the next claim.
#[test]
fn dead_letters() {
    check(|node, prefix, size| {
        let (ids, n) = (ids(prefix, size), size as u64);
        node.run(vec![Op::SetMaxAttempts(0)]);
        let mut counted = Expected::new();
        let unreadable = |id: &String| Op::EnqueueMessage(items::undecodable_message(id, MessageKind::Start));
        node.run(ids.iter().map(unreadable).collect());
        let (claimed, trips) = node.claim(size + 5);
        assert_eq!(claimed.len(), 0);
        counted.push(("claims of undecodable messages", trips, 1..=2 * n + 2));
        counted.push(("retries of messages", retries(node, size), exactly(2 + 2 * n)));
        node.claim(size + 5);
        counted.push(("discards of messages", discards(node, size), exactly(2 + n)));

        let unreadable = |id: &String| Op::EnqueueActivity(items::undecodable_activity(id, 2));
        node.run(ids.iter().map(unreadable).collect());
        let (claimed, trips) = node.work(size + 5);
        assert_eq!(claimed.len(), 0);
        counted.push(("claims of undecodable activities", trips, 1..=3 * n + 2));
        counted.push(("retries of activities", retries(node, size), exactly(2 + 2 * n)));
        node.work(size + 5);
        counted.push(("discards of activities", discards(node, size), exactly(2 + n)));
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

/// Each instance takes 13 round trips: seven find and remove its rows in as many tables, and six its children, calls, activities
/// and dead letters, and the notes of what is to be removed.
#[test]
fn deleting() {
    check(|node, prefix, size| {
        let (names, n) = (ids(prefix, size), size as u64);
        let mut counted = Expected::new();
        families(node, &names);
        let ids = names.iter().flat_map(|id| [id.clone(), format!("{id}::sub::4")]).collect();
        counted.push((
            "a list",
            node.run(vec![Op::DeleteInstances { ids, force: false }]).1,
            exactly(4 + 26 * n),
        ));
        families(node, &names);
        let trees = names.iter().map(|id| Op::DeleteTree { instance: id.clone(), force: false });
        counted.push(("trees", node.run(trees.collect()).1, exactly(2 + 29 * n)));
        families(node, &names);
        let (done, trips) = node.run(vec![Op::DeleteBulk(InstanceFilter::default())]);
        assert!(matches!(done.answers[..], [Ok(Answer::Deleted(_))]), "{:?}", done.answers);
        counted.push(("in bulk", trips, exactly(3 + 30 * n)));
        assert_eq!(node.engine.snapshot().unwrap().instances.len(), 0);
        counted
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
        counted.push(("one by one", trips, exactly(2 + 13 * n)));
        continue_twice(node, &mut claimed);
        let filter = InstanceFilter { instance_ids: Some(names), ..InstanceFilter::default() };
        let (done, trips) = node.run(vec![Op::PruneBulk { filter, options: PruneOptions::default() }]);
        assert!(
            matches!(&done.answers[..], [Ok(Answer::Pruned(pruned))] if pruned.executions_deleted == 2 * n),
            "{:?}",
            done.answers
        );
        counted.push(("in bulk", trips, exactly(5 + 12 * n)));
        node.run(claimed.iter().map(|claim| commit(claim, Turn::later(claim).complete("done"))).collect());
        counted
    });
}
