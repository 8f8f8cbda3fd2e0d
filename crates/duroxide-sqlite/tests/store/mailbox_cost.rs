//! A message costs the same, however many wait in its mailbox. Instructions of SQLite are counted, not time.

use std::time::Duration;

use duroxide_core::{EventKind, WorkItem};
use duroxide_provider::{
    Round,
    store::{Op, StoreReader},
};

use crate::fixture::*;

const FEW: u64 = 10;
const MANY: u64 = 5_000;

/// The cost of one call of the store.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    statements: Vec<String>,
    steps: u64,
}

fn cost(store: &mut Store, call: impl FnOnce(&mut Store)) -> Cost {
    let trace = store.engine.trace_statements();
    trace.clear();
    call(store);
    Cost { statements: trace.statements(), steps: trace.steps() }
}

/// Sends messages; those with the numbers `FEW` and `MANY` must cost the same.
fn assert_flat(store: &mut Store, message: impl Fn(u64) -> WorkItem) {
    let mut costs = Vec::new();
    for n in 1..=MANY {
        let item = message(n);
        if n == FEW || n == MANY {
            costs.push(cost(store, |store| store.send(&item)));
        } else {
            store.send(&item);
        }
    }
    let [few, many] = costs.try_into().unwrap();
    assert_eq!(few.statements, many.statements);
    assert!(many.steps <= few.steps, "message {MANY} took {} steps, message {FEW} {}", many.steps, few.steps);
}

fn event(n: u64) -> WorkItem {
    raise("order-1", &n.to_string())
}

fn queue(n: u64) -> WorkItem {
    queued("order-1", &n.to_string())
}

#[test]
fn a_message_to_an_unclaimed_instance_costs_the_same_in_a_long_mailbox() {
    for message in [event, queue] {
        let mut store = Store::in_memory();
        store.send(&start("order-1"));
        assert_flat(&mut store, message);
    }
}

#[test]
fn a_start_behind_many_messages_is_found_at_once() {
    let mut store = Store::in_memory();
    (0..MANY).for_each(|n| store.send(&event(n)));
    store.send(&start("order-1"));
    assert_flat(&mut store, event);
    let claim = store.claim_with(&one_bounded_instance()).items.remove(0);
    assert!(claim.messages.iter().any(|item| matches!(item, WorkItem::StartOrchestration { .. })));
}

#[test]
fn a_message_to_an_unknown_instance_costs_the_same_in_a_long_mailbox() {
    for message in [event, queue] {
        assert_flat(&mut Store::in_memory(), message);
    }
}

/// 16.8: its start bounced and is hidden for a while.
#[test]
fn a_message_to_an_instance_whose_start_is_hidden_costs_the_same_in_a_long_mailbox() {
    for message in [event, queue] {
        let mut store = Store::in_memory();
        store.send(&start("order-1"));
        let token = store.claim().unwrap().lock_token;
        let delay = Some(Duration::from_secs(60));
        store.apply(&Op::AbandonInstance { token, delay, ignore_attempt: false });
        assert_flat(&mut store, message);
    }
}

/// 8.6
#[test]
fn a_message_to_an_instance_that_waits_for_its_successor_costs_the_same_in_a_long_mailbox() {
    for message in [event, queue] {
        let mut store = Store::in_memory();
        store.send(&start("order-1"));
        let claim = store.claim().unwrap();
        let continued = EventKind::OrchestrationContinuedAsNew { input: "{}".to_owned() };
        let mut round = Round {
            history_delta: vec![started("order-1"), crate::fixture::event("order-1", 2, continued)],
            worker_items: Vec::new(),
            ..first_round("order-1")
        };
        round.metadata.status = Some("ContinuedAsNew".to_owned());
        store.commit(&claim.lock_token, round).unwrap();
        assert_flat(&mut store, message);
    }
}

#[test]
fn a_message_to_a_running_instance_costs_the_same_in_a_long_mailbox() {
    for message in [event, queue] {
        let mut store = Store::in_memory();
        store.send(&start("order-1"));
        let claim = store.claim().unwrap();
        store.commit(&claim.lock_token, first_round("order-1")).unwrap();
        assert_flat(&mut store, message);
    }
}

/// 15.3: clients ask before every message whether the mailbox is full. Messages of other instances lie between those of
/// the instance, so that their numbers do not give the count.
#[test]
fn the_question_whether_a_mailbox_is_full_costs_the_same_in_a_long_mailbox() {
    let mut store = Store::in_memory();
    store.send(&start("order-1"));
    let limit = MANY + 100;
    let mut steps = Vec::new();
    for n in 0..MANY {
        store.send(&event(n));
        (0..9).for_each(|_| store.send(&raise("other", "between")));
        let asked = cost(&mut store, |store| assert!(!store.engine.mailbox_holds("order-1", limit).unwrap()));
        steps.push(asked.steps);
    }
    let total: u64 = steps.iter().sum();
    let all_at_first: u64 = steps.iter().take(100).sum();
    assert!(total <= 2 * 50 * all_at_first, "{total} steps in all, {all_at_first} for the first 100");
}

/// 15.3: the answer stays exact while messages are consumed.
#[test]
fn a_mailbox_is_full_exactly_when_it_holds_as_many_messages() {
    let mut store = Store::in_memory();
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    for _ in 0..3 {
        for held in 0..20 {
            let full = store.engine.mailbox_holds("order-1", 20).unwrap();
            assert!(!full, "{held} messages are less than 20");
            store.send(&event(held));
            (0..5).for_each(|_| store.send(&raise("other", "between")));
        }
        assert!(store.engine.mailbox_holds("order-1", 20).unwrap());
        assert!(!store.engine.mailbox_holds("order-1", 21).unwrap());
        let claim = store.claim().unwrap();
        store.commit(&claim.lock_token, Round { execution_id: 1, ..Round::default() }).unwrap();
    }
}
