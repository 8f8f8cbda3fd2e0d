//! Continue-as-new, results for a parent of another process, cancelling, and what runs out of attempts.

use duroxide_core::WorkItem;
use duroxide_provider::{
    OrchestrationClaim, WorkClaim,
    store::{Answer, MessageRow, Op},
    testing::{Turn, items, scenario},
};

use crate::{
    Counted, SIZES, check,
    fixture::{Node, claims, commit, fresh_options, ids, send, start, works},
};

/// Starts instances and claims them, in one transaction.
fn started(node: &mut Node, ids: &[String]) -> Vec<OrchestrationClaim> {
    let batch = node.batch(ids.iter().map(|id| start(id)).collect(), ids.len(), 0);
    let claimed = claims(node.transact(&batch).0);
    assert_eq!(claimed.len(), ids.len());
    claimed
}

/// Claims all these instances, in one transaction, which is counted.
fn claimed(
    node: &mut Node,
    size: usize,
    name: &'static str,
    counted: &mut Counted,
) -> Vec<OrchestrationClaim> {
    let (claimed, trips) = node.claim(size + 5);
    assert_eq!(claimed.len(), size, "{name}");
    counted.push((name, trips));
    claimed
}

/// The first turn of the next execution, the wake-up and the end of an instance, with values that one execution leaves to the next and
/// an activity that the old one had queued.
#[test]
fn continue_as_new() {
    check(2, |node, prefix, size| {
        let mut counted = Counted::new();
        let claims = started(node, &ids(prefix, size));
        let turns = claims.iter().map(|claim| {
            let next = Turn::start_of(&claim.instance, 2).set("a", "2").activity();
            commit(claim, Turn::first(&claim.instance).set("a", "1").set("b", "1").continue_with(next))
        });
        counted.push(("first rounds", node.run(turns.collect()).1));
        let claims = claimed(node, size, "claims of second executions", &mut counted);
        assert!(claims.iter().all(|claim| claim.execution_id == 2));
        let turns = claims.iter().map(|claim| {
            let next = Turn::start_of(&claim.instance, 3);
            let turn = Turn::later(claim).clear("b").status(Some("busy")).cancel_activity(3);
            commit(claim, turn.continue_with(next))
        });
        counted.push(("second rounds", node.run(turns.collect()).1));
        assert_eq!(node.work(size).0.len(), 0, "the activities were cancelled");
        let claims = claimed(node, size, "claims of third executions", &mut counted);
        let turns = claims.iter().map(|claim| commit(claim, Turn::later(claim).complete("done")));
        counted.push(("ends", node.run(turns.collect()).1));
        counted
    });
}

fn completed_child(parent: &str) -> WorkItem {
    let (parent_instance, result) = (parent.to_owned(), "done".to_owned());
    WorkItem::SubOrchCompleted { parent_instance, parent_execution_id: 1, parent_id: 2, result }
}

/// A node runs parents, another one their children. The end of a child reaches a parent that waits, or one that another
/// event has woken.
#[test]
fn children_of_another_process() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let (mut node, mut other) = (Node::open(&options, 1), Node::open(&options, 2));
    let mut tour = |prefix: &str, size: usize| {
        let mut counted = Counted::new();
        let parents = ids(prefix, size);
        let claims = started(&mut node, &parents);
        let turns = claims.iter().map(|claim| commit(claim, Turn::first(&claim.instance).child("sub::2")));
        counted.push(("calls", node.run(turns.collect()).1));
        let children = claimed(&mut other, size, "claims of children", &mut counted);
        let woken = parents.iter().step_by(2).map(|id| send(items::raise(id, "go"))).collect();
        node.run(woken);
        let ends = children.iter().map(|claim| {
            let (parent, _) = claim.instance.split_once("::").unwrap();
            let turn = Turn::first_of_child(&claim.instance, parent, 1, 2).complete("done");
            commit(claim, turn.send(completed_child(parent)))
        });
        counted.push(("ends of children", other.run(ends.collect()).1));
        let claims = claimed(&mut node, size, "claims of results", &mut counted);
        assert_eq!(claims.iter().map(|claim| claim.messages.len()).sum::<usize>(), size + size.div_ceil(2));
        let ends = claims.iter().map(|claim| commit(claim, Turn::later(claim).complete("done")));
        counted.push(("ends of parents", node.run(ends.collect()).1));
        counted
    };
    for size in SIZES {
        tour(&format!("warm-up-{size}"), size);
    }
    for size in SIZES {
        let counted = tour(&format!("of-{size}"), size);
        println!("batches of {size}: {counted:?}");
        assert!(counted.iter().all(|(_, trips)| *trips <= 2), "batches of {size}: {counted:?}");
    }
}

fn renew(work: &WorkClaim) -> Op {
    Op::RenewActivity { token: work.lock_token.clone(), extend_for: scenario::LEASE }
}

/// Instances with an activity that runs, one that is queued, a timer and a child are cancelled.
#[test]
fn cancelling() {
    check(2, |node, prefix, size| {
        let mut counted = Counted::new();
        let parents = ids(prefix, size);
        let claims = started(node, &parents);
        let turns = claims.iter().map(|claim| {
            let turn = Turn::first(&claim.instance).activity().activity();
            commit(claim, turn.child("sub::4").timer(u64::MAX / 4_000))
        });
        node.run(turns.collect());
        let children = node.claim(size).0;
        let turns = children.iter().map(|claim| {
            let (parent, _) = claim.instance.split_once("::").unwrap();
            commit(claim, Turn::first_of_child(&claim.instance, parent, 1, 4))
        });
        node.run(turns.collect());
        let work = node.work(size).0;
        assert_eq!(work.len(), size);

        let cancels = parents.iter().map(|id| send(items::cancel(id))).collect();
        counted.push(("cancellations", node.run(cancels).1));
        let claims = claimed(node, size, "claims of cancellations", &mut counted);
        let turns = claims.iter().map(|claim| {
            let child = format!("{}::sub::4", claim.instance);
            let turn = Turn::later(claim).stop_activity(2).stop_activity(3).cancel_timer(5);
            commit(claim, turn.send(items::cancel(&child)))
        });
        counted.push(("rounds that cancel", node.run(turns.collect()).1));
        let (done, trips) = node.run(work.iter().map(renew).collect());
        counted.push(("renewals of activities that are to stop", trips));
        let stops = |answer: &_| matches!(answer, Ok(Answer::Renewed { stop_requested: true }));
        assert!(done.answers.iter().any(stops), "{:?}", done.answers);
        let acks = work.iter().map(|work| {
            let WorkItem::ActivityExecute { instance, id, .. } = &work.item else { unreachable!() };
            let completion = Some(MessageRow::completion(items::failed(instance, *id)).unwrap());
            Op::AckActivity { token: work.lock_token.clone(), completion }
        });
        counted.push(("acks of activities that have stopped", node.run(acks.collect()).1));
        let claims = claimed(node, 2 * size, "claims of parents and children", &mut counted);
        let ends = claims.iter().map(|claim| commit(claim, Turn::later(claim).fail()));
        counted.push(("ends", node.run(ends.collect()).1));
        assert_eq!(node.work(size).0.len(), 0);
        counted
    });
}

fn abandon_turn(claim: &OrchestrationClaim) -> Op {
    Op::AbandonInstance { token: claim.lock_token.clone(), delay: None, ignore_attempt: false }
}

fn abandon_work(work: &WorkClaim) -> Op {
    Op::AbandonActivity { token: work.lock_token.clone(), delay: None, ignore_attempt: false }
}

/// An activity runs out of attempts and fails, then its instance does.
#[test]
fn failures_after_the_last_attempt() {
    check(2, |node, prefix, size| {
        let mut counted = Counted::new();
        let claims = started(node, &ids(prefix, size));
        let turns = claims.iter().map(|claim| commit(claim, Turn::first(&claim.instance).activity()));
        let batch = node.batch(turns.collect(), 0, size);
        let work = works(node.transact(&batch).0);
        assert_eq!(work.len(), size);
        counted.push(("abandoned activities", node.run(work.iter().map(abandon_work).collect()).1));
        let (work, trips) = node.work(size);
        assert!(work.len() == size && work.iter().all(|work| work.attempt_count == 2), "{work:?}");
        counted.push(("claims of second attempts", trips));
        let failures = work.iter().map(|work| {
            let WorkItem::ActivityExecute { instance, id, .. } = &work.item else { unreachable!() };
            let completion = Some(MessageRow::completion(items::failed(instance, *id)).unwrap());
            Op::AckActivity { token: work.lock_token.clone(), completion }
        });
        counted.push(("failures of activities", node.run(failures.collect()).1));
        let claims = claimed(node, size, "claims of failures", &mut counted);
        counted.push(("abandoned turns", node.run(claims.iter().map(abandon_turn).collect()).1));
        let claims = claimed(node, size, "claims of second attempts", &mut counted);
        assert!(claims.iter().all(|claim| claim.attempt_count == 2), "{claims:?}");
        let ends = claims.iter().map(|claim| commit(claim, Turn::later(claim).fail()));
        counted.push(("failures of instances", node.run(ends.collect()).1));
        counted
    });
}
