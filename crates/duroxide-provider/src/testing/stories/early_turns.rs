//! Turns that run before the claims of their instances are committed.

use duroxide_core::WorkItem;

use crate::{
    OrchestrationClaim, WorkClaim,
    store::{ActivityFetch, Batch, Done, InstanceFetch, MessageRow, Op, Submitted, WaitingFetch},
    testing::{
        Scenario, Turn, TurnsInTransaction,
        early::commit_op,
        items::{activity, completed, raise, start},
        scenario::{batch_fetch, work_fetch},
    },
};

/// The result of a transaction with early turns, and the turns that ran.
struct Ran {
    done: Done,
    early: Vec<OrchestrationClaim>,
}

impl Ran {
    /// The instances that ran early, in order.
    fn instances(&self) -> Vec<&str> {
        self.early.iter().map(|claim| claim.instance.as_str()).collect()
    }

    /// The claims that are handed over after the commit.
    fn claims(&self) -> Vec<&OrchestrationClaim> {
        self.done.instances.iter().flatten().flat_map(|claimed| &claimed.items).collect()
    }
}

/// Carries out an operation for two waiting fetches, and runs turns early.
fn apply_with_turns(s: &mut Scenario, op: &Op, turn: &dyn Fn(&OrchestrationClaim) -> Option<Turn>) -> Ran {
    let (instances, activities): (InstanceFetch, ActivityFetch) = (batch_fetch(8), work_fetch(8));
    let turns = TurnsInTransaction::new(turn);
    let mut done = s.transact(Batch {
        operations: vec![Submitted::now(op)],
        instance_fetches: vec![WaitingFetch::new(&instances)],
        activity_fetches: vec![WaitingFetch::new(&activities)],
        turns: Some(&turns),
        ..Batch::default()
    });
    done.answers.pop().expect("the operation is answered").unwrap();
    Ran { done, early: turns.ran() }
}

fn ack(work: &WorkClaim, completion: WorkItem) -> Op {
    let completion = MessageRow::completion(completion).unwrap();
    Op::AckActivity { token: work.lock_token.clone(), completion: Some(completion) }
}

/// An instance whose first turn scheduled an activity, which is claimed.
fn with_activity(s: &mut Scenario, instance: &str) -> WorkClaim {
    s.run_first_turn(Turn::first(instance).activity(), &start(instance));
    s.work().unwrap()
}

fn ends(claim: &OrchestrationClaim) -> Option<Turn> {
    Some(Turn::later(claim).completed(2).complete("done"))
}

/// 24.13, I10, I11: the result, the turn and the end are one commit, and the message between them is consumed.
pub fn the_round_of_an_early_turn_is_part_of_its_transaction(mut s: Scenario) {
    let work = with_activity(&mut s, "a");
    let ran = apply_with_turns(&mut s, &ack(&work, completed("a", 2)), &ends);
    assert_eq!(ran.instances(), ["a"]);
    assert_eq!(ran.early[0].messages, [completed("a", 2)]);
    assert_eq!(ran.early[0].attempt_count, 1);
    assert!(ran.claims().is_empty(), "it was handed over");
    let row = s.instance("a").unwrap();
    assert_eq!(row.executions[0].status, "Completed");
    assert_eq!(row.executions[0].events.len(), 4);
    assert!(row.messages.is_empty() && row.activities.is_empty() && row.lock.is_none());
    assert!(s.claim().is_none());
}

/// Work that an early turn schedules is claimed by the same transaction, and handed over after its commit.
pub fn an_early_turn_hands_out_work(mut s: Scenario) {
    let work = with_activity(&mut s, "a");
    let next = |claim: &OrchestrationClaim| Some(Turn::later(claim).completed(2).activity());
    let ran = apply_with_turns(&mut s, &ack(&work, completed("a", 2)), &next);
    assert_eq!(ran.instances(), ["a"]);
    let works: Vec<_> = ran.done.activities.iter().flatten().flat_map(|claimed| &claimed.items).collect();
    assert_eq!(works.len(), 1);
    assert_eq!((&works[0].item, works[0].attempt_count), (&activity("a", 4), 1));
    assert_eq!(s.ack(works[0], Some(&completed("a", 4))), Ok(()));
}

/// 24.12, I12: if an early turn kills the process, the attempt of the activity is all that is counted. So the second attempt of
/// an activity leads to a claim that is stored first.
pub fn only_a_first_attempt_leads_to_an_early_turn(mut s: Scenario) {
    with_activity(&mut s, "a");
    s.pass_lease();
    let second = s.work().unwrap();
    assert_eq!(second.attempt_count, 2);
    let ran = apply_with_turns(&mut s, &ack(&second, completed("a", 2)), &ends);
    assert!(ran.early.is_empty());
    assert_eq!(ran.claims().len(), 1);
    let claim = ran.claims()[0].clone();
    s.commit(&claim, ends(&claim).unwrap()).unwrap();
}

/// 24.12, I12: attempts of a client's sending are not counted.
pub fn messages_of_clients_do_not_run_early(mut s: Scenario) {
    s.running("a");
    for item in [raise("a", "e"), start("b")] {
        let op = Op::EnqueueMessage(MessageRow::new(item, None).unwrap());
        let ran = apply_with_turns(&mut s, &op, &|_| panic!("the claim is not stored"));
        assert_eq!(ran.claims().len(), 1);
    }
}

/// 24.12, I12: a message that was stored before has attempts of its own.
pub fn a_mailbox_with_stored_messages_does_not_run_early(mut s: Scenario) {
    let work = with_activity(&mut s, "a");
    s.send(&raise("a", "e"));
    let ran = apply_with_turns(&mut s, &ack(&work, completed("a", 2)), &ends);
    assert!(ran.early.is_empty());
    assert_eq!(ran.claims()[0].messages.len(), 2);
}

/// Messages of a round do not run early, whether the round itself was early or not; the transaction claims it all the same.
pub fn messages_of_a_round_are_handed_over_after_the_commit(mut s: Scenario) {
    let work = with_activity(&mut s, "a");
    let calls = |claim: &OrchestrationClaim| {
        assert_eq!(claim.instance, "a");
        Some(Turn::later(claim).completed(2).child("child"))
    };
    let ran = apply_with_turns(&mut s, &ack(&work, completed("a", 2)), &calls);
    assert_eq!(ran.instances(), ["a"]);
    assert_eq!(ran.claims().len(), 1);
    let child = ran.claims()[0].clone();
    let end = Turn::first_of_child(&child.instance, "a", 1, 4).child("grandchild");
    let ran = apply_with_turns(&mut s, &commit_op(&child, &end), &|_| panic!("the claim is not stored"));
    assert_eq!(ran.claims().len(), 1);
}

/// 24.12: until the round of an instance is committed, its execution is not back for another turn.
pub fn an_instance_has_one_round_in_a_transaction(mut s: Scenario) {
    s.run_first_turn(Turn::first("a").activity().activity(), &start("a"));
    let works = s.work_all(&work_fetch(2)).items;
    s.ack(&works[0], Some(&completed("a", 2))).unwrap();
    let claim = s.claim().unwrap();
    let round = commit_op(&claim, &Turn::later(&claim).completed(2));
    let ack = ack(&works[1], completed("a", 3));
    let (fetch, turns) = (batch_fetch(8), TurnsInTransaction::new(&|_| panic!("its round is not committed")));
    let done = s.transact(Batch {
        operations: vec![Submitted::now(&round), Submitted::now(&ack)],
        instance_fetches: vec![WaitingFetch::new(&fetch)],
        turns: Some(&turns),
        ..Batch::default()
    });
    assert_eq!(done.instances.iter().flatten().flat_map(|claimed| &claimed.items).count(), 1);
}

/// A claim that could not be taken in time is as good as any other.
pub fn a_claim_that_is_not_taken_early_is_handed_over_after_the_commit(mut s: Scenario) {
    let work = with_activity(&mut s, "a");
    let ran = apply_with_turns(&mut s, &ack(&work, completed("a", 2)), &|_| None);
    let claim = ran.claims()[0].clone();
    assert_eq!(claim.messages, [completed("a", 2)]);
    s.commit(&claim, ends(&claim).unwrap()).unwrap();
    assert_eq!(s.instance("a").unwrap().executions[0].status, "Completed");
}
