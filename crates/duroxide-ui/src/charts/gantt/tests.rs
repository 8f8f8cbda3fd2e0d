//! Histories in short notation, and the expected bars.

use duroxide::ErrorDetails;

use super::*;

fn event(event_id: u64, at: u64, source: Option<u64>, kind: EventKind) -> Event {
    Event {
        event_id,
        source_event_id: source,
        instance_id: "i".to_owned(),
        execution_id: 1,
        timestamp_ms: at,
        duroxide_version: "0.5.0".to_owned(),
        kind,
    }
}

fn started() -> EventKind {
    EventKind::OrchestrationStarted {
        name: "Order".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

fn activity(name: &str) -> EventKind {
    EventKind::ActivityScheduled { name: name.to_owned(), input: "x".to_owned(), session_id: None, tag: None }
}

fn failed() -> EventKind {
    EventKind::ActivityFailed { details: ErrorDetails::activity_failed("no") }
}

fn completed() -> EventKind {
    EventKind::ActivityCompleted { result: String::new() }
}

fn whole(history: &[Event], now_ms: u64) -> Gantt {
    gantt(history, history, now_ms, 100)
}

#[test]
fn a_retried_activity_has_a_bar_for_each_attempt() {
    let history = [
        event(1, 1_000, None, started()),
        event(2, 1_000, None, activity("Charge")),
        event(3, 1_500, Some(2), failed()),
        event(4, 1_500, None, activity("Charge")),
        event(5, 2_000, Some(4), completed()),
        event(6, 2_000, None, activity("Charge")),
        event(7, 3_000, None, EventKind::OrchestrationCompleted { output: String::new() }),
    ];
    let rows = whole(&history, 9_999).rows;
    let told: Vec<_> = rows.iter().map(|row| (row.attempt, row.state, row.x, row.width)).collect();
    assert_eq!(
        told,
        [(1, State::Failed, 0, 250), (2, State::Done, 250, 250), (1, State::Open, 500, 500)],
        "a call after a success is no retry, and no bar is longer than its execution"
    );
}

#[test]
fn an_event_ends_the_oldest_open_wait_for_its_name() {
    let wait = |name: &str| EventKind::ExternalSubscribed { name: name.to_owned() };
    let arrived = |name: &str| EventKind::ExternalEvent { name: name.to_owned(), data: String::new() };
    let history = [
        event(1, 0, None, started()),
        event(2, 0, None, wait("a")),
        event(3, 0, None, wait("b")),
        event(4, 0, None, wait("a")),
        event(5, 50, None, arrived("a")),
    ];
    let states: Vec<_> = whole(&history, 100).rows.iter().map(|row| row.state).collect();
    assert_eq!(states, [State::Done, State::Open, State::Open]);
}

#[test]
fn open_calls_last_until_now_and_given_up_ones_until_then() {
    let gave_up = EventKind::ActivityCancelRequested { reason: String::new() };
    let history = [
        event(1, 0, None, started()),
        event(2, 0, None, EventKind::TimerCreated { fire_at_ms: 5_000 }),
        event(3, 0, None, activity("Slow")),
        event(4, 40, Some(3), gave_up),
    ];
    let shown = whole(&history, 100);
    let told: Vec<_> = shown.rows.iter().map(|row| (row.kind, row.state, row.width)).collect();
    assert_eq!(told, [("timer", State::Open, 1_000), ("activity", State::GivenUp, 400)]);
    assert_eq!(shown.span, "100 ms");
}

#[test]
fn a_page_shows_the_calls_of_its_events() {
    let mut history = vec![event(1, 0, None, started())];
    for n in 0..50 {
        history.push(event(2 + n * 2, n * 10, None, activity("A")));
        history.push(event(3 + n * 2, n * 10 + 5, Some(2 + n * 2), completed()));
    }
    let page = gantt(&history, &history[41..61], 9_999, 100);
    assert_eq!(page.rows.first().map(|row| row.event_id), Some(42));
    assert_eq!(page.rows.last().map(|row| row.event_id), Some(60));
    let few = gantt(&history, &history, 9_999, 10);
    assert_eq!((few.rows.len(), few.left_out), (10, 40));
}

#[test]
fn an_empty_or_instant_history_is_no_division_by_zero() {
    assert_eq!(whole(&[], 0).rows, []);
    let history =
        [event(1, 7, None, started()), event(2, 7, None, activity("A")), event(3, 7, Some(2), completed())];
    assert_eq!(whole(&history, 7).rows.len(), 1);
    let clock_went_back = [event(1, 90, None, started()), event(2, 10, None, activity("A"))];
    assert_eq!(whole(&clock_went_back, 5).rows.len(), 1);
}
