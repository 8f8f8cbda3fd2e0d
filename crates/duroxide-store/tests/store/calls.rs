//! The provider calls themselves: decoding, refusals, notifications.

use std::{pin::pin, time::Duration};

use duroxide_core::{Event, EventKind};
use duroxide_provider::{Provider, ProviderAdmin, Round, store::FailureClass};

use crate::support::*;

/// Commits the first round of a new instance, with these events after its start.
fn run_first_round(f: &mut Fixture, instance: &str, more: Vec<Event>) {
    let claim = claim_new(f, instance);
    let mut round = first_round(instance);
    round.history_delta.extend(more);
    complete(&mut f.store, f.provider.commit_round(&claim.lock_token, round)).unwrap();
}

/// S3.35 to S3.37, S3.T41: the claim is made and counted, the events before the bad one are returned, the text names
/// position, instance and execution.
#[test]
fn a_fetch_of_corrupt_history_returns_the_readable_events_and_the_error() {
    let mut f = fixture();
    run_first_round(&mut f, "a", vec![event("a", 2, EventKind::TimerCreated { fire_at_ms: 1 })]);
    f.plan.corrupt_second_event_of("a");
    let Fixture { provider, mut store, .. } = f;
    complete(&mut store, provider.enqueue_for_orchestrator(completed("a", 2), None)).unwrap();
    let fetch = provider.fetch_orchestration_item(LOCK, Duration::ZERO, None);
    let (item, _, attempt_count) = complete(&mut store, fetch).unwrap().unwrap();
    let error = item.history_error.unwrap();
    assert_eq!((item.history.len(), attempt_count), (1, 1));
    assert!(error.starts_with("Failed to deserialize event at position 1: "), "{error}");
    assert!(error.contains("instance a") && error.contains("execution 1"), "{error}");
}

/// C9, S3.35: unreadable rows are reported like undecodable events, so that attempts count and the instance ends as
/// poison. Rows that may be readable later are given back uncounted.
#[test]
fn a_plain_fetch_of_an_unreadable_history_counts_its_attempts() {
    let mut f = fixture();
    run_first_round(&mut f, "a", Vec::new());
    complete(&mut f.store, f.provider.enqueue_for_orchestrator(completed("a", 2), None)).unwrap();
    for attempt in 1..=3 {
        f.plan.fail_next(Point::Read, FailureClass::Retryable);
        let fetch = f.provider.fetch_orchestration_item(LOCK, Duration::ZERO, None);
        assert!(complete(&mut f.store, fetch).unwrap_err().is_retryable());

        f.plan.fail_next(Point::Read, FailureClass::Permanent);
        let fetch = f.provider.fetch_orchestration_item(LOCK, Duration::ZERO, None);
        let (item, token, attempt_count) = complete(&mut f.store, fetch).unwrap().unwrap();
        assert_eq!((item.instance.as_str(), attempt_count), ("a", attempt));
        assert!(item.history.is_empty() && item.history_error.unwrap().contains("planned failure"));
        complete(&mut f.store, f.provider.abandon_orchestration_item(&token, None, false)).unwrap();
    }
}

/// S3.40: a plain read never skips an event; the raw read shows it.
#[test]
fn reads_of_corrupt_history_are_permanent_errors_and_the_raw_read_shows_it() {
    let mut f = fixture();
    run_first_round(&mut f, "a", vec![event("a", 2, EventKind::TimerCreated { fire_at_ms: 1 })]);
    f.plan.corrupt_second_event_of("a");
    let Fixture { provider, mut store, .. } = f;
    for error in [
        complete(&mut store, provider.read("a")).unwrap_err(),
        complete(&mut store, provider.read_with_execution("a", 1)).unwrap_err(),
        complete(&mut store, provider.read_history("a")).unwrap_err(),
    ] {
        assert!(!error.is_retryable() && error.message.contains("position 1"), "{error}");
    }
    let raw = complete(&mut store, provider.read_raw_history("a", 1)).unwrap();
    let kinds: Vec<_> = raw.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(kinds, ["OrchestrationStarted", ""]);
    assert_eq!(complete(&mut store, provider.last_event_id("a", 1)).unwrap(), Some(2));
}

#[test]
fn an_instance_is_described_by_its_first_event_and_counted_by_its_stamp() {
    let mut f = fixture();
    run_first_round(&mut f, "a", Vec::new());
    run_first_round(&mut f, "b", Vec::new());
    let Fixture { provider, mut store, .. } = f;
    let descriptor = complete(&mut store, provider.read_descriptor("a")).unwrap().unwrap();
    assert_eq!((descriptor.name.as_str(), descriptor.version.as_str()), ("Hello", "1.0.0"));
    assert!(complete(&mut store, provider.read_descriptor("nobody")).unwrap().is_none());
    let spread = complete(&mut store, provider.get_running_duroxide_version_spread()).unwrap();
    assert_eq!(spread.into_iter().collect::<Vec<_>>(), [("0.5.0".to_owned(), 2)]);
}

/// The number of carried messages is in the first event, which the store does not read.
#[test]
fn stats_count_the_messages_carried_into_the_execution() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    let mut first = started("a");
    if let EventKind::OrchestrationStarted { carry_forward_events, .. } = &mut first.kind {
        *carry_forward_events =
            Some(vec![("q".to_owned(), "1".to_owned()), ("q".to_owned(), "2".to_owned())]);
    }
    let round = Round { history_delta: vec![first], ..first_round("a") };
    complete(&mut f.store, f.provider.commit_round(&claim.lock_token, round)).unwrap();
    let stats = complete(&mut f.store, f.provider.get_instance_stats("a")).unwrap().unwrap();
    assert_eq!((stats.history_event_count, stats.queue_pending_count), (1, 2));
    assert!(complete(&mut f.store, f.provider.get_instance_stats("nobody")).unwrap().is_none());
}

#[test]
fn unknown_instances_and_executions_are_named_in_the_error() {
    let Fixture { provider, mut store, .. } = fixture();
    let error = complete(&mut store, provider.get_instance_info("x")).unwrap_err();
    assert_eq!((error.message.as_str(), error.retryable), ("Instance x not found", false));
    let error = complete(&mut store, provider.get_parent_id("x")).unwrap_err();
    assert_eq!(error.message, "Instance x not found");
    let error = complete(&mut store, provider.get_execution_info("x", 3)).unwrap_err();
    assert_eq!(error.message, "Execution 3 not found for instance x");
    assert_eq!(complete(&mut store, provider.latest_execution_id("x")).unwrap(), 1);
    assert!(complete(&mut store, provider.read("x")).unwrap().is_empty());
}

#[test]
fn a_watch_reports_only_a_newer_custom_status() {
    let mut f = fixture();
    let status = EventKind::CustomStatusUpdated { status: Some("half".to_owned()) };
    run_first_round(&mut f, "a", vec![event("a", 2, status)]);
    let Fixture { provider, mut store, .. } = f;
    let seen = complete(&mut store, provider.get_custom_status("a", 0)).unwrap();
    assert_eq!(seen, Some((Some("half".to_owned()), 1)));
    assert_eq!(complete(&mut store, provider.get_custom_status("a", 1)).unwrap(), None);
}

/// Everything a wrapper with the plain contract relies on is still true of the native calls.
#[test]
fn a_plain_ack_is_a_round() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    let round = first_round("a");
    let ack = f.provider.ack_orchestration_item(
        &claim.lock_token,
        round.execution_id,
        round.history_delta,
        round.worker_items,
        round.orchestrator_items,
        round.metadata,
        round.cancelled_activities,
    );
    complete(&mut f.store, ack).unwrap();
    assert_eq!(complete(&mut f.store, fetch_activities(&f.provider, 8)).len(), 1);
    assert!(f.provider.commits_rounds() && f.provider.serves_batches());
}

// ---- watching -----------------------------------------------------------------------------------------------

#[test]
fn a_new_status_notifies_the_watches_of_its_instance() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    let Fixture { provider, mut store, .. } = f;
    let (mut a, mut b) = (provider.watch("a").unwrap(), provider.watch("b").unwrap());
    let (mut a, mut b) = (pin!(a.changed()), pin!(b.changed()));
    hand_in(&mut a);
    hand_in(&mut b);
    let mut round = first_round("a");
    round.metadata.status = Some("Completed".to_owned());
    complete(&mut store, provider.commit_round(&claim.lock_token, round)).unwrap();
    answer(&mut a);
    assert!(poll(&mut b).is_pending());
}

/// The only round of a new instance.
fn only_round(instance: &str, status: Option<&str>) -> Round {
    let mut round = first_round(instance);
    round.worker_items.clear();
    let status = status.map(|status| EventKind::CustomStatusUpdated { status: Some(status.to_owned()) });
    let end = EventKind::OrchestrationCompleted { output: "done".to_owned() };
    let events = status.into_iter().chain([end]).zip(2..).map(|(kind, id)| event(instance, id, kind));
    round.history_delta.extend(events);
    round.metadata.status = Some("Completed".to_owned());
    round
}

/// 20.2: a watcher gets the end with all values that a read would return.
#[test]
fn a_reported_end_equals_the_status_that_a_read_returns() {
    for status in [None, Some("all picked")] {
        let mut f = fixture();
        let claim = claim_new(&mut f, "a");
        let Fixture { provider, mut store, .. } = f;
        let (mut watch, mut other) = (provider.watch("a").unwrap(), provider.watch("b").unwrap());
        complete(&mut store, provider.commit_round(&claim.lock_token, only_round("a", status))).unwrap();
        answer(&mut pin!(watch.changed()));
        let told = watch.told();
        assert!(told.as_ref().unwrap().terminal_event.is_some());
        assert_eq!(told.as_ref().unwrap().custom_status.as_deref(), status);
        assert_eq!(told, complete(&mut store, provider.read_status("a")).unwrap());
        assert_eq!((watch.told(), other.told()), (None, None));
    }
}

/// 20.2: watchers are notified of committed rounds only, not of refused ones or those with an unknown outcome.
#[test]
fn an_end_is_reported_only_after_its_commit() {
    for (point, class) in [
        (Point::Apply, FailureClass::Permanent),
        (Point::Commit, FailureClass::Retryable),
        (Point::AfterCommit, FailureClass::OutcomeUnknown),
    ] {
        let mut f = fixture();
        let claim = claim_new(&mut f, "a");
        let Fixture { provider, mut store, plan, .. } = f;
        let mut watch = provider.watch("a").unwrap();
        // The second attempt of the round alone fails too.
        (0..2).for_each(|_| plan.fail_next(point, class));
        complete(&mut store, provider.commit_round(&claim.lock_token, only_round("a", None))).unwrap_err();
        assert!(poll(&mut pin!(watch.changed())).is_pending(), "{point:?}");
        assert_eq!(watch.told(), None, "{point:?}");
    }
}

/// B22: a caller that waits for an instance started here need not read first.
#[test]
fn an_instance_begun_here_counts_as_running() {
    let mut f = fixture();
    let has_not_ended = |f: &Fixture, instance| f.provider.watch(instance).unwrap().has_not_ended();
    let claim = claim_new(&mut f, "a");
    assert!(has_not_ended(&f, "a"));
    complete(&mut f.store, f.provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    assert!(has_not_ended(&f, "a"), "a second start changes nothing");
    complete(&mut f.store, f.provider.commit_round(&claim.lock_token, only_round("a", None))).unwrap();
    assert!(!has_not_ended(&f, "a"));
    complete(&mut f.store, f.provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    assert!(!has_not_ended(&f, "a"), "what has ended is not begun again by a start");

    complete(&mut f.store, f.provider.enqueue_for_orchestrator(start("b"), Some(LOCK))).unwrap();
    assert!(!has_not_ended(&f, "b"), "nobody can tell when it begins");
    complete(&mut f.store, f.provider.enqueue_for_orchestrator(completed("c", 2), None)).unwrap();
    complete(&mut f.store, f.provider.enqueue_for_orchestrator(start("c"), None)).unwrap();
    assert!(!has_not_ended(&f, "c"), "it had a mailbox");
}

/// Changes by other processes are polled for while a watch exists, and reported: a watch whose state is outdated is
/// corrected.
#[test]
fn after_a_change_by_another_process_nothing_is_known_of_ends() {
    let mut f = fixture();
    claim_new(&mut f, "a");
    let Fixture { provider, mut store, clock, plan } = f;
    let mut watch = provider.watch("a").unwrap();
    assert!(watch.has_not_ended());
    plan.change_elsewhere();
    clock.advance(Duration::from_millis(50));
    store.run();
    assert!(!provider.watch("a").unwrap().has_not_ended());
    answer(&mut pin!(watch.changed()));
}

/// A notification that is delayed, because of many watches, is not lost.
#[test]
fn changes_by_others_count_before_their_notification() {
    let mut f = fixture();
    let _watches: Vec<_> = (0..800).map(|n| f.provider.watch(&n.to_string())).collect();
    for instance in ["first", "second"] {
        claim_new(&mut f, instance);
        assert!(f.provider.watch(instance).unwrap().has_not_ended());
        f.plan.change_elsewhere();
        f.clock.advance(Duration::from_millis(50));
        f.store.run();
        assert!(!f.provider.watch(instance).unwrap().has_not_ended());
    }
}

/// 8.5, 20.2: an execution that is continued, a custom status, a delete and changes by other processes are reported
/// without an end.
#[test]
fn changes_without_an_end_are_reported_without_a_status() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    let Fixture { provider, mut store, clock, plan } = f;
    let mut watch = provider.watch("a").unwrap();
    let mut round = only_round("a", Some("half"));
    round.history_delta.pop();
    round.history_delta.push(event("a", 3, EventKind::OrchestrationContinuedAsNew { input: "2".to_owned() }));
    round.metadata.status = Some("ContinuedAsNew".to_owned());
    complete(&mut store, provider.commit_round(&claim.lock_token, round)).unwrap();
    answer(&mut pin!(watch.changed()));
    assert_eq!(watch.told(), None);

    let mut f = Fixture { provider, store, clock, plan };
    let claim = claim_new(&mut f, "b");
    let Fixture { provider, mut store, clock, plan } = f;
    let mut watch = provider.watch("b").unwrap();
    complete(&mut store, provider.commit_round(&claim.lock_token, only_round("b", None))).unwrap();
    complete(&mut store, provider.delete_instance("b", true)).unwrap();
    answer(&mut pin!(watch.changed()));
    assert_eq!(watch.told(), None, "it is gone since");
    plan.change_elsewhere();
    clock.advance(Duration::from_millis(50));
    store.run();
    answer(&mut pin!(watch.changed()));
    assert_eq!(watch.told(), None);
}

/// 20.2: values are waited for too.
#[test]
fn a_new_value_notifies_the_watches_of_its_instance() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    let Fixture { provider, mut store, .. } = f;
    let mut watch = provider.watch("a").unwrap();
    let mut round = first_round("a");
    let (key, value) = ("count".to_owned(), "3".to_owned());
    round.history_delta.push(event("a", 2, EventKind::KeyValueSet { key, value, last_updated_at_ms: 1 }));
    complete(&mut store, provider.commit_round(&claim.lock_token, round)).unwrap();
    answer(&mut pin!(watch.changed()));
    assert_eq!(watch.told(), None);
}

/// Clients wait for an end, a custom status or a value. Notified of every turn, each would read the store for nothing.
#[test]
fn a_round_in_the_middle_notifies_no_watch() {
    let mut f = fixture();
    let claim = claim_new(&mut f, "a");
    let Fixture { provider, mut store, .. } = f;
    let mut watch = provider.watch("a").unwrap();
    let mut changed = pin!(watch.changed());
    hand_in(&mut changed);
    complete(&mut store, provider.commit_round(&claim.lock_token, first_round("a"))).unwrap();
    assert!(poll(&mut changed).is_pending());
}

#[test]
fn a_delete_and_a_change_by_another_process_notify_all_watches() {
    let mut f = fixture();
    run_first_round(&mut f, "a", Vec::new());
    let Fixture { provider, mut store, clock, plan } = f;
    let mut watch = provider.watch("a").unwrap();
    {
        let mut changed = pin!(watch.changed());
        hand_in(&mut changed);
        complete(&mut store, provider.delete_instance("a", true)).unwrap();
        answer(&mut changed);
    }
    let mut changed = pin!(watch.changed());
    hand_in(&mut changed);
    plan.change_elsewhere();
    clock.advance(Duration::from_millis(50));
    store.run();
    answer(&mut changed);
}

/// A watch makes the store poll for changes by other processes; without one, and without fetches, it sleeps.
#[test]
fn the_store_polls_for_changes_only_while_watches_exist() {
    let Fixture { provider, mut store, .. } = fixture();
    let watch = provider.watch("a");
    assert!(matches!(store.run(), duroxide_store::Idle::Until(_)));
    drop(watch);
    assert_eq!(store.run(), duroxide_store::Idle::UntilRequest);
}
