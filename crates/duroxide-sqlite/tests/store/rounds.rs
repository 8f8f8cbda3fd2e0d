//! Rounds: all or nothing, under a lock.

use duroxide_core::EventKind;
use duroxide_provider::{
    Round,
    store::{MessageRow, Op, Refusal, StoreReader},
};

use crate::fixture::*;

/// The path of a one-activity orchestration: start, turn, activity, completion, last turn.
#[test]
fn an_instance_goes_from_its_start_over_an_activity_to_its_end() {
    let mut store = Store::in_memory();
    store.send(&start("order-1"));

    let claim = store.claim().unwrap();
    assert_eq!((claim.instance.as_str(), claim.orchestration_name.as_str()), ("order-1", "Pay"));
    assert_eq!((claim.version.as_str(), claim.execution_id, claim.attempt_count), ("1.0.0", 1, 1));
    assert_eq!(claim.messages, [start("order-1")]);
    assert!(store.claim().is_none(), "a locked instance is not handed out twice");
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    assert!(store.claim().is_none(), "its start is consumed");

    let work = store.claim_work().unwrap();
    assert_eq!((work.item, work.attempt_count), (activity("order-1", 2), 1));
    assert!(store.claim_work().is_none());
    let completion = MessageRow::completion(&completed("order-1", 2)).unwrap();
    store.apply(&Op::AckActivity { token: work.lock_token, completion: Some(completion) });

    let claim = store.claim().unwrap();
    assert_eq!(claim.messages, [completed("order-1", 2)]);
    let position = claim.position.unwrap();
    assert_eq!((position.last_event_id, position.turns), (2, 1));
    let last = Round {
        execution_id: 1,
        history_delta: vec![event("order-1", 3, EventKind::OrchestrationCompleted { output: "done".into() })],
        metadata: ended("Completed"),
        ..Round::default()
    };
    store.commit(&claim.lock_token, last).unwrap();

    let status = store.engine.status("order-1").unwrap().unwrap();
    assert!(status.terminal_event.unwrap().contains("OrchestrationCompleted"));
    assert_eq!(store.event_ids("order-1"), [1, 2, 3]);
    let snapshot = store.engine.snapshot().unwrap();
    let instance = &snapshot.instances[0];
    assert!(instance.messages.is_empty() && instance.activities.is_empty() && instance.lock.is_none());
}

/// C16, S4.13: a duplicate event id is refused, and nothing of the round is there.
#[test]
fn a_duplicate_event_id_refuses_the_whole_round() {
    let mut store = Store::in_memory();
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    store.send(&raise("order-1", "1"));
    let claim = store.claim().unwrap();
    let before = store.engine.snapshot().unwrap();

    let mut round = first_round("order-1");
    round.history_delta = vec![scheduled("order-1", 2)];
    let refusal = store.commit(&claim.lock_token, round).unwrap_err();

    assert_eq!(refusal, Refusal::DuplicateEvent { instance: "order-1".into(), execution_id: 1, event_id: 2 });
    assert_eq!(store.engine.snapshot().unwrap(), before);
}
