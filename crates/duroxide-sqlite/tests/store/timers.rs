//! Many timers that are due at once.

use std::time::Duration;

use duroxide_core::{EventKind, Timestamp, WorkItem};
use duroxide_provider::{Round, store::InstanceFetch};

use crate::fixture::*;

/// A timer that is due at this time.
fn timer_at(instance: &str, id: u64, due: Timestamp) -> WorkItem {
    WorkItem::TimerFired { instance: instance.to_owned(), execution_id: 1, id, fire_at_ms: due.as_millis() }
}

/// Instances, each of which waits for a timer that is due in a minute.
fn waiting(store: &mut Store, instances: usize) -> Vec<String> {
    let due = store.now.saturating_add(Duration::from_secs(60));
    let names: Vec<String> = (0..instances).map(|n| format!("order-{n:04}")).collect();
    for name in &names {
        store.send(&start(name));
        let claim = store.claim().unwrap();
        let round = Round {
            execution_id: 1,
            history_delta: vec![started(name)],
            orchestrator_items: vec![timer_at(name, 2, due)],
            metadata: described(),
            ..Round::default()
        };
        store.commit(&claim.lock_token, round).unwrap();
    }
    names
}

fn all_at_once(max: usize) -> InstanceFetch {
    InstanceFetch { max, free_slots: max, ..one_instance() }
}

/// Instances that are due together become ready with one statement each, and are claimed with four.
///
/// These numbers are a guard: raise one only with a reason.
#[test]
fn a_due_timer_costs_one_statement_until_it_is_claimed() {
    let statements = |instances: usize| {
        let mut store = Store::in_memory();
        waiting(&mut store, instances);
        store.pass(Duration::from_secs(60));
        let trace = store.engine.trace_statements();
        assert_eq!(store.claim_with(&all_at_once(instances)).items.len(), instances);
        trace.statements().len()
    };
    assert_eq!(statements(101) - statements(1), 100 * (1 + 2));
}

/// The commit of a timer's turn that goes on with an activity.
#[test]
fn a_turn_of_a_timer_costs_a_fixed_number_of_statements() {
    let mut store = Store::in_memory();
    let names = waiting(&mut store, 2);
    store.pass(Duration::from_secs(60));
    let trace = store.engine.trace_statements();
    for claim in store.claim_with(&all_at_once(2)).items {
        trace.clear();
        let fired = event(&claim.instance, 3, EventKind::TimerFired { fire_at_ms: 1 });
        let round = Round { execution_id: 1, history_delta: vec![fired], ..Round::default() };
        store.commit(&claim.lock_token, round).unwrap();
        // Begin, sequence twice, commit; and of the turn: consume, find other messages, event, execution, instance. The next
        // due time is read later, after the callers were answered.
        assert_eq!(trace.statements().len(), 4 + 5, "{} {:#?}", names.len(), trace.statements());
    }
}

/// Instances become ready by due time; those due together in the order of their rows.
#[test]
fn due_timers_are_claimed_in_the_order_of_their_times() {
    let mut store = Store::in_memory();
    let names = waiting(&mut store, 3);
    store.pass(Duration::from_secs(60));
    let claimed = store.claim_with(&all_at_once(3));
    let order: Vec<&str> = claimed.items.iter().map(|claim| claim.instance.as_str()).collect();
    assert_eq!(order, names);
}

/// An instance whose lease ended goes through `decide`: it becomes ready as possible poison.
#[test]
fn an_ended_lease_is_no_plain_timer() {
    let mut store = Store::in_memory();
    waiting(&mut store, 1);
    store.pass(Duration::from_secs(60));
    assert!(store.claim().is_some());
    store.pass(LEASE);
    let busy = InstanceFetch { free_slots: 0, ..one_instance() };
    assert!(store.claim_with(&busy).items.is_empty(), "not ahead of a free slot");
    assert_eq!(store.claim().unwrap().attempt_count, 2);
}
