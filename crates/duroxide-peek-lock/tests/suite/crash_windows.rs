//! S4.33 to S4.40: crashes between any two writes, and how the next process recovers from them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use duroxide_core::{Event, EventKind, WorkItem};
use duroxide_peek_lock::{MemoryOptions, PeekLockEngine, QueueItem, WhichQueue};
use duroxide_provider::{
    invariant,
    testing::{
        Scenario, Turn,
        items::{completed, raise, start},
    },
};

use crate::table_store::{Call, Stop, TableStore};

/// Opens the store in a process that does not know whether another one still uses it.
fn process(store: &TableStore) -> Scenario {
    let engine = PeekLockEngine::open(store.revived(), MemoryOptions::default());
    Scenario::new(engine.expect("the tables can be read"))
}

/// Opens the store in the next process, which knows that the one before has ended. The store must be sound.
fn next_process(store: &TableStore) -> Scenario {
    let engine = PeekLockEngine::open(store.revived().alone(), MemoryOptions::default());
    let mut scenario = Scenario::new(engine.expect("the tables can be read"));
    assert_eq!(invariant::check(&scenario.snapshot()), []);
    scenario
}

/// Runs a call during which the process dies.
fn die(store: &TableStore, stop: Stop, call: impl FnOnce()) {
    store.revived().stop(stop);
    let died = catch_unwind(AssertUnwindSafe(call));
    assert!(
        died.is_err() && store.has_stopped(),
        "the call did not come to the write at which it was to stop"
    );
}

fn events(scenario: &mut Scenario, instance: &str, execution_id: u64) -> Vec<Event> {
    let rows = scenario.read().history(instance, Some(execution_id)).expect("history can be read");
    rows.iter().map(|row| serde_json::from_str(&row.data).expect("an event")).collect()
}

fn count(events: &[Event], kind: impl Fn(&EventKind) -> bool) -> usize {
    events.iter().filter(|event| kind(&event.kind)).count()
}

/// An instance that has run its first turn and waits for activity 2.
fn waiting_for_an_activity(store: &TableStore) -> Scenario {
    let mut scenario = process(store);
    scenario.run_first_turn(Turn::first("a").activity(), &start("a"));
    scenario
}

/// Like [`waiting_for_an_activity`], and the activity's result is queued.
fn with_a_result(store: &TableStore) -> Scenario {
    let mut scenario = waiting_for_an_activity(store);
    let work = scenario.work().expect("the activity is queued");
    scenario.ack(&work, Some(&completed("a", 2))).expect("its lock is held");
    scenario
}

/// S4.33, S4.40
#[test]
fn a_crash_between_append_and_enqueue_enqueues_once() {
    let store = TableStore::default();
    let mut before = process(&store);
    before.send(&start("a"));
    let claim = before.claim().expect("the start is queued");
    die(&store, Stop::Before(Call::Enqueue), || {
        let _ = before.commit(&claim, Turn::first("a").activity());
    });
    assert_eq!(store.with_tables(|tables| tables.events.len()), 2, "the events were appended");
    assert_eq!(store.with_tables(|tables| tables.queued(WhichQueue::Worker, "a")), 0);

    for _ in 0..2 {
        let mut after = next_process(&store);
        assert_eq!(events(&mut after, "a", 1).len(), 2);
        assert_eq!(store.with_tables(|tables| tables.queued(WhichQueue::Worker, "a")), 1);
        assert!(after.claim().is_none(), "the start was acknowledged");
    }
    assert!(next_process(&store).work().is_some());
}

/// S4.36
#[test]
fn a_crash_before_the_append_is_a_safe_retry() {
    let store = TableStore::default();
    let mut before = with_a_result(&store);
    let claim = before.claim().expect("the result is queued");
    die(&store, Stop::Before(Call::Note), || {
        let _ = before.commit(&claim, Turn::later(&claim).completed(2).complete("done"));
    });

    let mut after = next_process(&store);
    assert_eq!(events(&mut after, "a", 1).len(), 2, "nothing of the round is stored");
    let claim = after.claim().expect("the result is delivered again");
    assert_eq!((claim.messages.as_slice(), claim.attempt_count), ([completed("a", 2)].as_slice(), 2));
    after.commit(&claim, Turn::later(&claim).completed(2).complete("done")).expect("its lock is held");
    let recorded = events(&mut next_process(&store), "a", 1);
    assert_eq!(count(&recorded, |kind| matches!(kind, EventKind::ActivityCompleted { .. })), 1);
}

/// S4.36, S4.41
#[test]
fn a_crash_between_append_and_ack_records_one_completion_and_acks_it() {
    let store = TableStore::default();
    let mut before = with_a_result(&store);
    let claim = before.claim().expect("the result is queued");
    die(&store, Stop::Before(Call::Ack), || {
        let _ = before.commit(&claim, Turn::later(&claim).completed(2).activity());
    });
    assert_eq!(store.with_tables(|tables| tables.queued(WhichQueue::Orchestrator, "a")), 1);

    let mut after = next_process(&store);
    let recorded = events(&mut after, "a", 1);
    assert_eq!(count(&recorded, |kind| matches!(kind, EventKind::ActivityCompleted { .. })), 1);
    assert!(after.claim().is_none(), "the result is not delivered again");
    assert_eq!(store.with_tables(|tables| tables.queued(WhichQueue::Orchestrator, "a")), 0);
    let work = after.work().expect("the next activity is handed out");
    assert!(matches!(work.item, WorkItem::ActivityExecute { id: 4, .. }));
    assert!(after.work().is_none(), "and only once");
}

/// S4.34: only the fast path recovers, because the store lost the recorded steps.
#[test]
fn a_completion_that_is_in_history_is_acked_and_not_delivered() {
    let store = TableStore::default();
    let mut before = with_a_result(&store);
    let claim = before.claim().expect("the result is queued");
    die(&store, Stop::Before(Call::Ack), || {
        let _ = before.commit(&claim, Turn::later(&claim).completed(2));
    });
    store.with_tables(|tables| tables.unfinished.clear());

    let mut after = next_process(&store);
    assert!(after.claim().is_none());
    assert_eq!(store.with_tables(|tables| tables.queued(WhichQueue::Orchestrator, "a")), 0);
    assert_eq!(events(&mut after, "a", 1).len(), 3);
}

/// S4.34: an activity whose result is queued has run; it does not run again.
#[test]
fn a_crash_between_a_result_and_the_ack_of_its_activity_runs_it_no_more() {
    let store = TableStore::default();
    let mut before = waiting_for_an_activity(&store);
    let work = before.work().expect("the activity is queued");
    die(&store, Stop::Before(Call::Ack), || {
        let _ = before.ack(&work, Some(&completed("a", 2)));
    });
    assert_eq!(store.with_tables(|tables| tables.queued(WhichQueue::Worker, "a")), 1);

    let mut after = next_process(&store);
    assert!(after.work().is_none());
    assert_eq!(store.with_tables(|tables| tables.queued(WhichQueue::Worker, "a")), 0);
    let claim = after.claim().expect("the result is queued");
    assert_eq!(claim.messages, [completed("a", 2)]);
}

/// 7.1: an activity whose result was not stored runs again, with the attempt counted.
#[test]
fn a_crash_before_the_result_is_stored_delivers_the_activity_again() {
    let store = TableStore::default();
    let mut before = waiting_for_an_activity(&store);
    let work = before.work().expect("the activity is queued");
    die(&store, Stop::Before(Call::Enqueue), || {
        let _ = before.ack(&work, Some(&completed("a", 2)));
    });
    let again = next_process(&store).work().expect("the activity is delivered again");
    assert_eq!(again.attempt_count, 2);
}

/// S4.37, S4.18: an external event has no schedule to recognise it by. The recorded steps show that it was consumed.
#[test]
fn a_crash_between_append_and_ack_records_an_external_event_once() {
    let store = TableStore::default();
    let mut before = waiting_for_an_activity(&store);
    before.send(&raise("a", "1"));
    let claim = before.claim().expect("the event is queued");
    let recorded = EventKind::ExternalEvent { name: "approval".to_owned(), data: "1".to_owned() };
    die(&store, Stop::Before(Call::Ack), || {
        let _ = before.commit(&claim, Turn::later(&claim).event(None, recorded.clone()));
    });

    let mut after = next_process(&store);
    let seen = events(&mut after, "a", 1);
    assert_eq!(count(&seen, |kind| matches!(kind, EventKind::ExternalEvent { .. })), 1);
    assert!(after.claim().is_none(), "the event is not delivered again");
    after.send(&raise("a", "1"));
    assert!(after.claim().is_some(), "another one with the same data is");
}

/// S4.38: at whichever write the process dies, the next execution begins once and is woken once.
#[test]
fn a_crash_in_a_continue_as_new_begins_the_next_execution_once() {
    let mut windows = 0;
    for stop in 1.. {
        let store = TableStore::default();
        let mut before = with_a_result(&store);
        let claim = before.claim().expect("the result is queued");
        let next = Turn::start_of("a", 2).activity();
        let turn = Turn::later(&claim).completed(2).continue_with(next);
        store.revived().stop(Stop::At(stop));
        if catch_unwind(AssertUnwindSafe(|| before.commit(&claim, turn))).is_ok() {
            break;
        }
        windows += 1;

        let mut after = next_process(&store);
        let (old, new) = (events(&mut after, "a", 1), events(&mut after, "a", 2));
        assert_eq!(count(&old, |kind| matches!(kind, EventKind::OrchestrationContinuedAsNew { .. })), 1);
        assert_eq!(count(&new, |kind| matches!(kind, EventKind::OrchestrationStarted { .. })), 1);
        assert_eq!(after.read().current_execution("a"), Ok(Some(2)));
        let claim = after.claim().expect("the next execution is woken");
        assert_eq!((claim.execution_id, claim.messages.len()), (2, 1));
        assert!(after.work().is_some());
        assert!(after.work().is_none(), "its activity is queued once");
    }
    assert!(windows >= 6, "only {windows} windows");
}

/// S4.39: at no moment is work enqueued whose schedule is not in the history, and no item is acknowledged before the
/// events that it caused are stored.
#[test]
fn nothing_is_enqueued_before_its_schedule_and_nothing_acked_before_its_append() {
    for stop in 0.. {
        let store = TableStore::default();
        let mut before = with_a_result(&store);
        let claim = before.claim().expect("the result is queued");
        let turn = Turn::later(&claim).completed(2).activity().timer(2_000_000).child("sub::6");
        store.revived().stop(Stop::At(stop));
        let done = catch_unwind(AssertUnwindSafe(|| before.commit(&claim, turn))).is_ok();
        store.with_tables(|tables| {
            let recorded = |id: u64| tables.events.contains_key(&("a".to_owned(), 1, id));
            for item in tables.items.values() {
                match item {
                    QueueItem::Activity(activity) => assert!(recorded(activity.row.activity_id)),
                    QueueItem::Message(message) if message.instance == "a::sub::6" => assert!(recorded(6)),
                    QueueItem::Message(message) if message.row.due_at.as_millis() == 2_000_000 => assert!(recorded(5)),
                    QueueItem::Message(_) => {}
                }
            }
            let result_is_queued = tables.items.values().any(|item| {
                matches!(item, QueueItem::Message(message) if message.instance == "a" && message.row.due_at.as_millis() != 2_000_000)
            });
            assert!(result_is_queued || recorded(3), "acknowledged before its append, at {stop}");
        });
        if done {
            break;
        }
    }
}

/// S4.32: a store that does not know whether its former process still runs keeps locks until their deadline.
#[test]
fn a_lock_holds_until_its_deadline_unless_its_holder_is_known_to_be_dead() {
    let store = TableStore::default();
    let mut before = process(&store);
    before.send(&start("a"));
    before.claim().expect("the start is queued");
    drop(before);

    let mut cautious = process(&store);
    assert!(cautious.claim().is_none());
    cautious.pass_lease();
    assert_eq!(cautious.claim().expect("the deadline has passed").attempt_count, 2);
    drop(cautious);

    let again = next_process(&store).claim().expect("the holder is gone");
    assert_eq!(again.attempt_count, 3);
}

/// An instance with two events in its mailbox.
fn with_two_events(store: &TableStore) -> Scenario {
    let mut scenario = process(store);
    scenario.running("a");
    scenario.send(&raise("a", "1"));
    scenario.send(&raise("a", "2"));
    scenario
}

/// 16.4: the attempt of a lock is counted once, by the lock or in the messages that it gives back.
#[test]
fn a_crash_in_an_abandon_counts_the_attempt_once() {
    for (delay, ignored) in [(None, false), (Some(std::time::Duration::from_secs(1)), false), (None, true)] {
        for stop in 0.. {
            let store = TableStore::default();
            let mut before = with_two_events(&store);
            let claim = before.claim().expect("the events are queued");
            store.revived().stop(Stop::At(stop));
            let done = catch_unwind(AssertUnwindSafe(|| before.abandon(&claim, delay, ignored))).is_ok();

            let mut after = next_process(&store);
            after.pass(std::time::Duration::from_secs(2));
            let again = after.claim().expect("the events are delivered again");
            let taken_back = ignored && stop > 0;
            assert_eq!(after.attempts("a"), [if taken_back { 1 } else { 2 }; 2], "at {stop}");
            assert_eq!(again.messages.len(), 2);
            if done {
                assert!(ignored || stop > 3, "both messages and the lock are written");
                break;
            }
        }
    }
}

/// 16.4: a fetch after a lost lock counts the attempt for all messages of that lock, or for none.
#[test]
fn a_crash_in_a_fetch_after_a_lost_lock_counts_all_messages_alike() {
    for stop in 0.. {
        let store = TableStore::default();
        with_two_events(&store).claim().expect("the events are queued");
        let mut before = next_process(&store);
        store.revived().stop(Stop::At(stop));
        let done = catch_unwind(AssertUnwindSafe(|| before.claim())).is_ok();

        let mut after = next_process(&store);
        after.claim().expect("the events are delivered again");
        let happened = stop > 0;
        assert_eq!(after.attempts("a"), [if happened { 3 } else { 2 }; 2], "at {stop}");
        if done {
            assert!(stop > 3, "both messages and the lock are written");
            break;
        }
    }
}

/// 19.1: a tree is deleted whole, even if a crash interrupts the deletion.
#[test]
fn a_crash_in_a_delete_deletes_the_whole_tree() {
    for stop in 0.. {
        let store = TableStore::default();
        let mut before = process(&store);
        before.run_first_turn(Turn::first("a").child("sub::2").complete("done"), &start("a"));
        let child = before.claim().expect("the child is started");
        let turn = Turn::first_of_child("a::sub::2", "a", 1, 2).complete("done");
        before.commit(&child, turn).expect("its lock is held");
        store.revived().stop(Stop::At(stop));
        let done = catch_unwind(AssertUnwindSafe(|| before.force_delete("a"))).is_ok();
        let left = next_process(&store).read().instances(None).expect("instances can be listed");
        assert!(left.is_empty() || (left.len() == 2 && stop == 0), "{left:?} at {stop}");
        if done {
            assert!(stop > 2, "the delete writes something");
            break;
        }
    }
}

/// A failed write is not a crash: the same process reads its store again, and its locks still hold.
#[test]
fn a_process_goes_on_after_a_failed_write() {
    let store = TableStore::default();
    let mut scenario = with_a_result(&store);
    let claim = scenario.claim().expect("the result is queued");
    die(&store, Stop::Before(Call::Note), || {
        let _ = scenario.commit(&claim, Turn::later(&claim).completed(2));
    });
    store.revived();
    scenario.commit(&claim, Turn::later(&claim).completed(2).complete("done")).expect("its lock is held");
    assert_eq!(events(&mut next_process(&store), "a", 1).len(), 4);
}
