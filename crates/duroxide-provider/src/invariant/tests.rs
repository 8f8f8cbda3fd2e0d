//! Each invariant finds its damage, and reports nothing of a healthy store.

use duroxide_core::{EventKind, Timestamp};

use super::check;
use crate::{
    memory::MemoryEngine,
    store::{EventRow, InstanceSnapshot, LockSnapshot, StoreSnapshot},
    testing::{
        Scenario, Turn,
        items::{cancel, completed, raise, start},
    },
};

/// A parent `p` with an activity (2), a timer (3), a child `c` (4), a key and a status; an ended instance `e`; and
/// `n`, which continued as new.
fn healthy() -> StoreSnapshot {
    let mut s = Scenario::new(MemoryEngine::default());
    let turn = Turn::first("p").activity().timer(u64::MAX).child("c").set("k", "v").status(Some("busy"));
    s.run_first_turn(turn, &start("p"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::first_of_child("c", "p", 1, 4)).unwrap();
    s.ended("e");
    s.running("n");
    s.send(&raise("n", "go"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::later(&claim).continue_with(Turn::start_of("n", 2))).unwrap();
    s.claim().unwrap();
    s.work().unwrap();
    s.snapshot()
}

fn instance<'a>(snapshot: &'a mut StoreSnapshot, id: &str) -> &'a mut InstanceSnapshot {
    snapshot.instances.iter_mut().find(|row| row.instance == id).unwrap()
}

fn events<'a>(snapshot: &'a mut StoreSnapshot, id: &str) -> &'a mut Vec<EventRow> {
    &mut instance(snapshot, id).executions[0].events
}

/// The names of the invariants that a damaged store breaks.
fn broken(damage: impl FnOnce(&mut StoreSnapshot)) -> Vec<&'static str> {
    let mut snapshot = healthy();
    damage(&mut snapshot);
    let mut names: Vec<_> = check(&snapshot).into_iter().map(|violation| violation.invariant).collect();
    names.dedup();
    names
}

/// An event that follows the history of `p`, which has 6.
fn event_of_p(source: Option<u64>, kind: EventKind) -> EventRow {
    EventRow::new(&Turn::after("p", 1, 6).event(source, kind).round().history_delta[0])
}

#[test]
fn a_healthy_store_breaks_nothing() {
    assert_eq!(check(&healthy()), []);
}

/// I01
#[test]
fn a_history_that_does_not_begin_with_its_start_is_found() {
    let found = broken(|snapshot| {
        events(snapshot, "c").remove(0);
        let raised = EventKind::ExternalEvent { name: "e".to_owned(), data: String::new() };
        let event = Turn::after("c", 1, 0).event(None, raised).round().history_delta;
        events(snapshot, "c").push(EventRow::new(&event[0]));
    });
    assert!(found.contains(&"I01 SingleStart"), "{found:?}");
}

/// I02
#[test]
fn an_event_after_the_end_is_found() {
    let found = broken(|snapshot| {
        let late = Turn::after("e", 1, 2).status(None).round().history_delta;
        events(snapshot, "e").push(EventRow::new(&late[0]));
    });
    assert!(found.contains(&"I02 TerminalLast"), "{found:?}");
}

/// I03
#[test]
fn a_missing_event_is_found() {
    let found = broken(|snapshot| {
        events(snapshot, "p").remove(2);
    });
    assert!(found.contains(&"I03 Contiguous"), "{found:?}");
}

/// I04
#[test]
fn a_completion_of_another_kind_is_found() {
    let fired = event_of_p(Some(2), EventKind::TimerFired { fire_at_ms: 1 });
    let found = broken(|snapshot| events(snapshot, "p").push(fired));
    assert!(found.contains(&"I04 MatchedCompletion"), "{found:?}");
}

/// I05
#[test]
fn a_second_completion_is_found() {
    let turn = Turn::after("p", 1, 6).completed(2).completed(2).round().history_delta;
    let found = broken(|snapshot| events(snapshot, "p").extend(turn.iter().map(EventRow::new)));
    assert!(found.contains(&"I05 OneCompletion"), "{found:?}");
}

/// I06
#[test]
fn a_lost_activity_is_found_and_so_is_one_that_is_in_two_places() {
    let lost = broken(|snapshot| instance(snapshot, "p").activities.clear());
    assert_eq!(lost, ["I06 WorkConserved"]);
    let doubled = broken(|snapshot| {
        let mut s = Scenario::new(MemoryEngine::default());
        s.send(&completed("p", 2));
        let message = s.instance("p").unwrap().messages.remove(0);
        instance(snapshot, "p").messages.push(message);
    });
    assert_eq!(doubled, ["I06 WorkConserved"]);
}

/// I06
#[test]
fn a_lost_child_is_found() {
    let found = broken(|snapshot| snapshot.instances.retain(|row| row.instance != "c"));
    assert_eq!(found, ["I06 WorkConserved"]);
}

/// I07
#[test]
fn work_of_an_ended_execution_is_found() {
    let found = broken(|snapshot| {
        let activity = instance(snapshot, "p").activities[0].clone();
        instance(snapshot, "e").activities.push(activity);
        let lock = LockSnapshot { token: "other".to_owned(), until: Timestamp::MAX };
        instance(snapshot, "e").activities[0].lock = Some(lock);
    });
    assert_eq!(found, ["I07 TerminalHoldsNothing"]);
    let found = broken(|snapshot| {
        let timer = instance(snapshot, "p").messages[0].clone();
        instance(snapshot, "e").messages.push(timer);
    });
    assert_eq!(found, ["I07 TerminalHoldsNothing"]);
}

/// I08
#[test]
fn a_token_used_twice_and_a_lock_without_messages_are_found() {
    let found = broken(|snapshot| {
        let lock = instance(snapshot, "n").lock.clone();
        instance(snapshot, "e").lock = lock;
    });
    assert_eq!(found, ["I08 LockExclusive"]);
    let found = broken(|snapshot| instance(snapshot, "n").lock = None);
    assert_eq!(found, ["I08 LockExclusive"]);
}

/// I12
#[test]
fn a_locked_row_without_an_attempt_is_found() {
    let found = broken(|snapshot| instance(snapshot, "n").messages[0].attempt_count = 0);
    assert_eq!(found, ["I12 AttemptsMonotone"]);
    let found = broken(|snapshot| instance(snapshot, "p").activities[0].attempt_count = 0);
    assert_eq!(found, ["I12 AttemptsMonotone"]);
}

/// I16
#[test]
fn a_wrong_current_execution_is_found() {
    let found = broken(|snapshot| instance(snapshot, "n").execution_id = 1);
    assert_eq!(found, ["I16 StartIdempotent"]);
    let found = broken(|snapshot| {
        let execution = &mut instance(snapshot, "n").executions[0];
        execution.events.pop();
        (execution.status, execution.output) = ("Running".to_owned(), None);
    });
    assert_eq!(found, ["I16 StartIdempotent"]);
}

/// I17
#[test]
fn a_child_without_a_call_is_found() {
    let found = broken(|snapshot| instance(snapshot, "c").parent = None);
    assert!(found.contains(&"I17 FamilyAgrees"), "{found:?}");
    let found = broken(|snapshot| {
        let mut s = Scenario::new(MemoryEngine::default());
        s.run_first_turn(Turn::first_of_child("stranger", "p", 1, 2), &start("stranger"));
        snapshot.instances.push(s.instance("stranger").unwrap());
    });
    assert_eq!(found, ["I17 FamilyAgrees"]);
}

/// I19
#[test]
fn stored_values_that_history_does_not_give_are_found() {
    type Damage = fn(&mut StoreSnapshot);
    let damages: [Damage; 6] = [
        |snapshot| instance(snapshot, "e").executions[0].status = "Running".to_owned(),
        |snapshot| instance(snapshot, "e").executions[0].output = None,
        |snapshot| instance(snapshot, "p").custom_status = None,
        |snapshot| instance(snapshot, "e").custom_status = Some((None, 1)),
        |snapshot| instance(snapshot, "p").kv_changes.clear(),
        |snapshot| instance(snapshot, "p").executions[0].status = "Completed".to_owned(),
    ];
    for damage in damages {
        assert_eq!(broken(damage), ["I19 StatusAgrees"]);
    }
}

/// Q1: a corrupt row stops only its own instance.
#[test]
fn an_event_that_cannot_be_read_is_no_violation() {
    let found = broken(|snapshot| events(snapshot, "c")[0].data = "{}".to_owned());
    assert_eq!(found, Vec::<&str>::new());
}

/// I07: a message that still arrives is drained.
#[test]
fn a_message_for_an_ended_instance_is_no_violation() {
    let mut s = Scenario::new(MemoryEngine::default());
    s.ended("e");
    s.send(&cancel("e"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::later(&claim)).unwrap();
    assert_eq!(check(&s.snapshot()), []);
}
