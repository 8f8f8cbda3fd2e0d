//! Tests of the open calls of a history.

use super::*;
use crate::ErrorDetails;

/// A history of these events, with the calls that they complete or give up. Each event is made a second after the one before.
fn history(events: &[(EventKind, Option<u64>)]) -> Vec<Event> {
    let make = |(position, (kind, source)): (usize, &(EventKind, Option<u64>))| {
        let event_id = position as u64 + 1;
        let mut event = Event::with_event_id(event_id, "order", 1, *source, kind.clone());
        event.timestamp_ms = event_id * 1000;
        event
    };
    events.iter().enumerate().map(make).collect()
}

fn started(carried: &[&str]) -> (EventKind, Option<u64>) {
    let carried = carried.iter().map(|name| ((*name).to_owned(), "data".to_owned())).collect();
    let kind = EventKind::OrchestrationStarted {
        name: "Order".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: Some(carried),
        initial_custom_status: None,
    };
    (kind, None)
}

fn activity(name: &str) -> (EventKind, Option<u64>) {
    let (name, tag) = (name.to_owned(), Some("gpu".to_owned()));
    (EventKind::ActivityScheduled { name, input: String::new(), session_id: None, tag }, None)
}

fn wait(name: &str) -> (EventKind, Option<u64>) {
    (EventKind::ExternalSubscribed { name: name.to_owned() }, None)
}

fn raised(name: &str) -> (EventKind, Option<u64>) {
    (EventKind::ExternalEvent { name: name.to_owned(), data: String::new() }, None)
}

fn read(queue: &str) -> (EventKind, Option<u64>) {
    (EventKind::QueueSubscribed { name: queue.to_owned() }, None)
}

fn message(queue: &str) -> (EventKind, Option<u64>) {
    (EventKind::QueueEventDelivered { name: queue.to_owned(), data: String::new() }, None)
}

fn child() -> (EventKind, Option<u64>) {
    let (name, instance) = ("Ship".to_owned(), "sub::2".to_owned());
    (EventKind::SubOrchestrationScheduled { name, instance, input: String::new() }, None)
}

/// The ids of the open calls.
fn open(events: &[(EventKind, Option<u64>)]) -> Vec<u64> {
    let history = history(events);
    OpenCalls::of(&history).calls.iter().map(|call| call.event_id).collect()
}

#[test]
fn each_kind_of_call_is_open_until_it_is_completed() {
    let calls = [
        activity("Charge"),
        child(),
        wait("Approval"),
        (EventKind::CancellationSubscribed, None),
        read("lines"),
        (EventKind::TimerCreated { fire_at_ms: 9 }, None),
    ];
    let mut events = vec![started(&[])];
    events.extend(calls);
    let recorded = history(&events);
    let open_calls = OpenCalls::of(&recorded);
    assert_eq!(
        open_calls.calls.iter().map(|call| call.target).collect::<Vec<_>>(),
        [
            CallTarget::Activity { name: "Charge", tag: Some("gpu"), stop_requested: false },
            CallTarget::Child { name: "Ship", instance: "sub::2" },
            CallTarget::Event { name: "Approval" },
            CallTarget::Cancellation,
            CallTarget::Queue { name: "lines" },
            CallTarget::Timer { fire_at_ms: 9 },
        ]
    );
    assert_eq!(open_calls.calls[0].since_ms, 2000);

    let completions = [
        (EventKind::ActivityCompleted { result: String::new() }, Some(2)),
        (EventKind::SubOrchestrationFailed { details: ErrorDetails::orchestration_failed("no") }, Some(3)),
        raised("Approval"),
        (EventKind::OrchestrationCancelRequested { reason: String::new() }, None),
        message("lines"),
        (EventKind::TimerFired { fire_at_ms: 9 }, Some(7)),
    ];
    for (done, completion) in completions.into_iter().enumerate() {
        events.push(completion);
        assert_eq!(open(&events), (3 + done as u64..=7).collect::<Vec<_>>(), "after {done}");
    }
    assert_eq!(OpenCalls::of(&history(&events)), OpenCalls::default());
}

#[test]
fn calls_that_the_code_dropped_are_closed() {
    let reason = || "dropped_future".to_owned();
    let events = [
        started(&[]),
        activity("Charge"),
        child(),
        wait("Approval"),
        read("lines"),
        (EventKind::ActivityCancelRequested { reason: reason() }, Some(2)),
        (EventKind::SubOrchestrationCancelRequested { reason: reason() }, Some(3)),
        (EventKind::ExternalSubscribedCancelled { reason: reason() }, Some(4)),
        (EventKind::QueueSubscriptionCancelled { reason: reason() }, Some(5)),
    ];
    assert_eq!(open(&events), [] as [u64; 0]);
}

#[test]
fn an_activity_that_was_asked_to_stop_is_still_awaited() {
    let stop = (EventKind::ActivityCancelRequested { reason: CANCEL_AND_WAIT.to_owned() }, Some(2));
    let recorded = history(&[started(&[]), activity("Charge"), stop]);
    let open = OpenCalls::of(&recorded);
    let target = CallTarget::Activity { name: "Charge", tag: Some("gpu"), stop_requested: true };
    assert_eq!(open.calls[0].target, target);
}

/// 9.1: an event goes to the oldest wait for its name; without such a wait it is not delivered.
#[test]
fn an_unawaited_event_is_missed() {
    let events =
        [started(&[]), raised("early"), wait("a"), wait("a"), raised("A"), raised("a"), wait("early")];
    let recorded = history(&events);
    let calls = OpenCalls::of(&recorded);
    assert_eq!(calls.calls.iter().map(|call| call.event_id).collect::<Vec<_>>(), [4, 7]);
    assert_eq!(calls.missed_events, ["early", "A"]);
}

/// 10.1: a message waits for its read, over executions too, and a read that is given up loses no message.
#[test]
fn queue_messages_wait_for_reads() {
    let given_up = (EventKind::QueueSubscriptionCancelled { reason: String::new() }, Some(2));
    let events = [started(&["lines", "other"]), read("lines"), read("lines"), given_up];
    let recorded = history(&events);
    let calls = OpenCalls::of(&recorded);
    assert_eq!(calls.calls, [], "the second read has the carried message");
    assert_eq!(calls.unread_messages, ["other"]);
    let two_reads = [started(&[]), read("a"), read("a"), message("a"), message("b")];
    let recorded = history(&two_reads);
    let calls = OpenCalls::of(&recorded);
    assert_eq!(calls.calls.iter().map(|call| call.event_id).collect::<Vec<_>>(), [3]);
    assert_eq!(calls.unread_messages, ["b"]);
}

#[test]
fn an_execution_that_ended_waits_for_nothing() {
    let end = (EventKind::OrchestrationCompleted { output: String::new() }, None);
    assert_eq!(open(&[started(&[]), wait("a"), end]), [] as [u64; 0]);
}
