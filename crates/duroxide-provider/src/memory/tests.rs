//! Stories, comparisons and changes of the memory engine.

mod kept_elsewhere;
mod rollback;

use std::collections::BTreeMap;

use duroxide_core::Timestamp;
use proptest::prelude::*;

use super::MemoryEngine;
use crate::{
    store::{
        Batch, DeadLetterReason, MessageKind, MessageRow, MessageSnapshot, Op, StoreEngine, StoreSnapshot,
        Submitted, WaitingFetch, bounds::CLAIM_MESSAGES_MAX,
    },
    testing::{
        Driver, ModelEngine, Observation, Scenario, Step, Subject, check_invariants, compare,
        items::{self, NONSENSE},
        scenario::batch_fetch,
    },
};

crate::engine_stories!(MemoryEngine::default());

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_invariants_hold_whatever_is_done(numbers in prop::collection::vec(any::<u64>(), 0..200)) {
        check_invariants(&mut Subject::new(MemoryEngine::default()), &numbers);
    }

    #[test]
    fn memory_agrees_with_the_model(numbers in prop::collection::vec(any::<u64>(), 1..150)) {
        let (model, memory) = (ModelEngine::default(), MemoryEngine::default());
        compare(&mut Subject::new(model), &mut Subject::new(memory), &numbers);
    }
}

/// 16.10: a claim whose bound is used up by rows that it cannot decode goes on behind them. No later event would wake
/// the instance, because it is ready.
#[test]
fn a_claim_goes_on_behind_rows_that_it_cannot_decode() {
    for mut s in [Scenario::new(MemoryEngine::default()), Scenario::new(ModelEngine::default())] {
        s.running("known");
        s.apply(&Op::EnqueueMessage(items::undecodable_message("new", MessageKind::Start))).unwrap();
        for number in 0..CLAIM_MESSAGES_MAX {
            s.send_unchecked(&items::raise("new", &number.to_string()));
            let unreadable = items::undecodable_message("known", MessageKind::Other);
            s.apply_unchecked(&Op::EnqueueMessage(unreadable));
        }
        s.send(&items::start("new"));
        s.send(&items::raise("known", "e"));
        let claimed = s.claim_all(&batch_fetch(2)).items;
        let counts: Vec<_> = claimed.iter().map(|claim| (&*claim.instance, claim.messages.len())).collect();
        assert_eq!(counts, [("new", CLAIM_MESSAGES_MAX + 1), ("known", 1)]);
    }
}

/// 24.11: other processes would be idle if the process that stores all starts also claimed them.
#[test]
fn a_transaction_claims_its_share_of_the_instances_that_it_begins() {
    for (shares, parts) in [(false, [7, 0]), (true, [3, 4])] {
        let mut engine = MemoryEngine::default();
        engine.rules().share_new_instances(shares);
        let message = |number: u32| MessageRow::new(items::start(&number.to_string()), None).unwrap();
        let starts: Vec<Op> = (0..7).map(message).map(Op::EnqueueMessage).collect();
        let claimed = |engine: &mut MemoryEngine, starts: &[Op], nonce| {
            let operations = starts.iter().map(Submitted::now).collect();
            let fetch = batch_fetch(100);
            let instance_fetches = vec![WaitingFetch::new(&fetch)];
            let batch = Batch { operations, instance_fetches, nonce, ..Batch::default() };
            let mut done = engine.transact(&batch).unwrap();
            done.instances.remove(0).unwrap().items.len()
        };
        let first = claimed(&mut engine, &starts, 1);
        assert_eq!([first, claimed(&mut engine, &[], 2)], parts, "shares: {shares}");
    }
}

/// A random test proves nothing about operations that it never reaches.
#[test]
fn the_random_driver_covers_all_operations() {
    let mut reached = BTreeMap::<&'static str, usize>::new();
    for run in 0..100_u64 {
        let mut subject = Subject::new(MemoryEngine::default());
        let mut driver = Driver::default();
        for number in 0..200_u64 {
            let step = driver.step(run * 1_000_003 + number * 7_919);
            let seen = subject.take(&step).unwrap();
            let claimed = claimed(&seen, &subject.snapshot().unwrap());
            for fact in facts(&step, &seen).into_iter().chain(claimed) {
                *reached.entry(fact).or_default() += 1;
            }
            driver.learn(&seen);
        }
        let snapshot = subject.snapshot().unwrap();
        if snapshot.instances.iter().any(|row| row.parent.is_some()) {
            *reached.entry("a child").or_default() += 1;
        }
        if snapshot.instances.iter().any(|row| row.execution_id > 3) {
            *reached.entry("many executions").or_default() += 1;
        }
    }
    for fact in FACTS {
        assert!(reached.get(fact).is_some_and(|times| *times > 2), "{fact} in {reached:#?}");
    }
}

const FACTS: [&str; 19] = [
    "a commit",
    "a commit after its lease",
    "a commit of a lost lock",
    "an ack",
    "a lost ack",
    "a batch of instances",
    "a redelivered batch",
    "a bounded batch",
    "a queue message held back",
    "a redelivered batch beside an undecodable row",
    "an undecodable row",
    "an orphan",
    "a stray queue message",
    "a delete",
    "a refused delete",
    "a prune",
    "a renewed session",
    "a child",
    "many executions",
];

/// Messages that claims have left in the mailboxes.
fn claimed(seen: &Observation, snapshot: &StoreSnapshot) -> Vec<&'static str> {
    let mut facts = Vec::new();
    let mut note = |holds: bool, fact| facts.extend(holds.then_some(fact));
    for claim in &seen.instances {
        let row = snapshot.instances.iter().find(|row| row.instance == claim.instance).unwrap();
        let is_hidden = |message: &&MessageSnapshot| message.hidden_until > Timestamp::ZERO;
        let is_queue = |message: &&MessageSnapshot| message.data.starts_with("{\"QueueMessage\"");
        let queue_is_hidden = row.messages.iter().filter(is_queue).any(|message| is_hidden(&message));
        let shown_queue = row.messages.iter().filter(is_queue).filter(|message| !is_hidden(message));
        let mut left = shown_queue.filter(|message| !message.locked && message.due_at_ms == 0);
        let undecodable = row.messages.iter().filter(is_hidden).any(|message| message.data == NONSENSE);
        let is_bounded = claim.messages.len() >= CLAIM_MESSAGES_MAX;
        note(is_bounded, "a bounded batch");
        note(!is_bounded && queue_is_hidden && left.next().is_some(), "a queue message held back");
        note(claim.attempt_count > 1 && undecodable, "a redelivered batch beside an undecodable row");
    }
    facts
}

fn facts(step: &Step, seen: &Observation) -> Vec<&'static str> {
    let mut facts = Vec::new();
    let mut note = |holds: bool, fact| facts.extend(holds.then_some(fact));
    note(seen.instances.len() > 1, "a batch of instances");
    note(seen.instances.iter().any(|claim| claim.attempt_count > 1), "a redelivered batch");
    for buried in &seen.buried {
        let letter = seen.dead_letters.iter().find(|letter| letter.id == buried.id.to_string());
        let queued = letter.is_some_and(|letter| letter.payload.starts_with("{\"QueueMessage\""));
        note(buried.reason == DeadLetterReason::NoInstance && queued, "a stray queue message");
        note(buried.reason == DeadLetterReason::NoInstance && !queued, "an orphan");
        note(buried.reason != DeadLetterReason::NoInstance, "an undecodable row");
    }
    let delete = matches!(step, Step::Apply(Op::DeleteTree { .. } | Op::DeleteInstances { .. }));
    match (step, &seen.answer) {
        (Step::Commit { .. }, Some(Ok(_))) => note(true, "a commit"),
        (Step::Commit { .. }, Some(Err(text))) => {
            note(text == "Instance lock expired", "a commit after its lease");
            note(text == "Invalid lock token", "a commit of a lost lock");
        }
        (Step::Ack { .. }, Some(answer)) => note(true, if answer.is_ok() { "an ack" } else { "a lost ack" }),
        (_, Some(Ok(answer))) => {
            note(delete && !answer.contains("instances_deleted: 0"), "a delete");
            note(answer.starts_with("Pruned") && !answer.contains("executions_deleted: 0"), "a prune");
            note(answer.starts_with("Count(") && answer != "Count(0)", "a renewed session");
        }
        (_, Some(Err(_))) => note(delete, "a refused delete"),
        (_, None) => {}
    }
    facts
}
