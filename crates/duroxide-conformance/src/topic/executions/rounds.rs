//! `commit_round`: ends one execution and begins the next in one commit, and deletes cancelled timers with it.
//!
//! A provider that keeps the default body says so by `commits_rounds()`; most validations check nothing for it.

use duroxide_core::{Event, EventKind};
use duroxide_provider::{ExecutionMetadata, NextExecution, ProviderError, Round, ScheduledTimerIdentifier};
use semver::Version;

use crate::{
    factory::ProviderFactory,
    fixture::{Claim, Fixture, LONG_LEASE, assert_permanent, assert_refused, now_ms},
    message::{activity, continuation_start, raised, start, timer_fired, wake_up},
    round::{
        activity_of, activity_scheduled, continuation, event, first_metadata, first_round, kv_set, started,
        status_updated, turn_round,
    },
};

/// A fixture, if the provider commits whole rounds.
async fn round_fixture<F: ProviderFactory + ?Sized>(factory: &F) -> Option<Fixture> {
    let fixture = Fixture::new(factory).await;
    fixture.provider.commits_rounds().then_some(fixture)
}

/// Commits as the runtime does.
async fn commit_round(fixture: &Fixture, claim: &Claim, round: Round) {
    let committed = fixture.provider.commit_round_ref(&claim.token, &round).await;
    committed.expect("commit_round_ref must accept a round");
}

/// The second execution of `instance`, which has started and schedules activity 2.
fn successor(instance: &str) -> NextExecution {
    NextExecution {
        execution_id: 2,
        history_delta: vec![started(instance, 2), activity_scheduled(instance, 2, 2)],
        worker_items: vec![activity(instance, 2, 2)],
        orchestrator_items: vec![wake_up(instance, 2)],
        metadata: ExecutionMetadata {
            pinned_duroxide_version: Some(Version::new(2, 0, 0)),
            ..first_metadata()
        },
        start: continuation_start(instance),
    }
}

/// The round that ends the first execution with event `event_id` and begins the second.
fn handing_over(instance: &str, event_id: u64) -> Round {
    Round {
        orchestrator_items: Vec::new(),
        next_execution: Some(successor(instance)),
        ..continuation(instance, 1, event_id)
    }
}

/// A round without next execution and timers is the same as `ack_orchestration_item` (A17.3, S4.30).
pub async fn test_commit_round_is_ack<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("plain")).await;
    let claim = fixture.claim_instance("plain").await;
    let mut round = first_round("plain");
    round.history_delta.push(activity_scheduled("plain", 1, 2));
    round.worker_items = vec![activity("plain", 1, 2)];
    commit_round(&fixture, &claim, round).await;

    assert_eq!(fixture.provider.read("plain").await.expect("read must work").len(), 2);
    assert_eq!(fixture.work().await.item, activity("plain", 1, 2));
    let again = fixture.provider.commit_round(&claim.token, turn_round(1, vec![])).await;
    assert_refused(again, "Invalid lock token", "a round under a used token");
}

/// The end of the old execution and the start of the next are one commit (8.1, S4.19, I10).
pub async fn test_commit_round_with_next_execution<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = round_fixture(factory).await else { return };
    fixture.running("chain").await;
    fixture.send(raised("chain", "wake")).await;
    let claim = fixture.claim_instance("chain").await;
    commit_round(&fixture, &claim, handing_over("chain", 2)).await;

    let ids = |history: Vec<Event>| {
        history.iter().map(|event| (event.execution_id, event.event_id)).collect::<Vec<_>>()
    };
    let provider = &fixture.provider;
    let old = provider.read_with_execution("chain", 1).await.expect("execution 1 is there");
    assert_eq!(ids(old), [(1, 1), (1, 2)], "the old execution must have its end");
    let current = provider.read("chain").await.expect("read must work");
    assert_eq!(ids(current), [(2, 1), (2, 2)], "the next execution must be current");
    let next = fixture.claim_instance("chain").await;
    assert_eq!(next.item.execution_id, 2, "the wake-up must find the next execution");
    assert_eq!(
        next.item.messages,
        [wake_up("chain", 2)],
        "the wake-up must be delivered, and no ContinueAsNew"
    );
    assert_eq!(next.item.history.len(), 2, "the next execution must have its history");
    assert_eq!(fixture.work().await.item, activity("chain", 2, 2), "its activities must be queued");
    if let Some(admin) = provider.as_management_capability() {
        let old = admin.get_execution_info("chain", 1).await.expect("execution 1 is known");
        assert_eq!((old.status.as_str(), old.output.as_deref()), ("ContinuedAsNew", Some("next")));
        let info = admin.get_instance_info("chain").await.expect("the instance is known");
        assert_eq!((info.current_execution_id, info.status.as_str()), (2, "Running"));
    }
}

/// The next execution has the pin of its own metadata (S3.7, 8.2).
pub async fn test_commit_round_pins_next_execution<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = round_fixture(factory).await else { return };
    fixture.running("pins").await;
    fixture.send(raised("pins", "wake")).await;
    let claim = fixture.claim_instance("pins").await;
    let round = handing_over("pins", 2);
    fixture.provider.commit_round(&claim.token, round).await.expect("commit_round must accept a round");
    let only = |version: Version| duroxide_provider::DispatcherCapabilityFilter {
        supported_duroxide_versions: vec![duroxide_provider::SemverRange::new(version.clone(), version)],
    };
    let other = fixture.try_claim_filtered(&only(Version::new(1, 0, 0))).await;
    assert!(other.is_none(), "the next execution is pinned to 2.0.0");
    let claim = fixture.try_claim_filtered(&only(Version::new(2, 0, 0))).await;
    assert_eq!(claim.expect("the next execution is pinned to 2.0.0").item.instance, "pins");
}

/// Each execution raises the status version, and the keys of the first are merged before the second (12.1, 11.2).
pub async fn test_commit_round_applies_state_of_both_executions<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = round_fixture(factory).await else { return };
    fixture.running("state").await;
    fixture.send(raised("state", "wake")).await;
    let claim = fixture.claim_instance("state").await;
    let mut round = handing_over("state", 4);
    round
        .history_delta
        .splice(0..0, [status_updated("state", 1, 2, Some("old")), kv_set("state", 1, 3, "old", "1")]);
    let next = round.next_execution.as_mut().expect("the round has a next execution");
    next.history_delta
        .extend([status_updated("state", 2, 3, Some("new")), kv_set("state", 2, 4, "new", "2")]);
    commit_round(&fixture, &claim, round).await;

    let status = fixture.provider.get_custom_status("state", 0).await.expect("get_custom_status must work");
    assert_eq!(status, Some((Some("new".to_owned()), 2)), "each delta raises the version");
    let values = fixture.provider.get_kv_all_values("state").await.expect("get_kv_all_values must work");
    assert_eq!(values.len(), 2, "clients see the keys of both executions: {values:?}");
    let claim = fixture.claim_instance("state").await;
    let left: Vec<&str> = claim.item.kv_snapshot.keys().map(String::as_str).collect();
    assert_eq!(left, ["old"], "the snapshot holds what the old execution left");
}

/// Timers that a round cancels are deleted with it, due or not; other timers stay (14.2, 5.3).
pub async fn test_commit_round_deletes_cancelled_timers<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = round_fixture(factory).await else { return };
    let hour = now_ms() + 3_600_000;
    let mut round = first_round("timers");
    round.orchestrator_items =
        vec![timer_fired("timers", 2, hour), timer_fired("timers", 3, 1), timer_fired("timers", 4, 1)];
    fixture.send(start("timers")).await;
    let claim = fixture.claim_instance("timers").await;
    fixture.send(raised("timers", "wake")).await;
    commit_round(&fixture, &claim, round).await;

    let timer =
        |timer_id| ScheduledTimerIdentifier { instance: "timers".to_owned(), execution_id: 1, timer_id };
    let claim = fixture.claim_instance("timers").await;
    assert_eq!(claim.item.messages.len(), 3, "the event and the two timers that are due");
    fixture.abandon(&claim, None, true).await;
    let claim = fixture.claim_instance("timers").await;
    let cancelled = Round { cancelled_timers: vec![timer(2), timer(3), timer(99)], ..turn_round(1, vec![]) };
    commit_round(&fixture, &claim, cancelled).await;
    fixture.expect_no_claim("the batch is consumed and the other timer is cancelled").await;
    if let Some(admin) = fixture.provider.as_management_capability() {
        let depths = admin.get_queue_depths().await.expect("get_queue_depths must work");
        assert_eq!(depths.orchestrator_queue, 0, "a cancelled timer must not stay in the queue (B18)");
    }
}

/// A round may create a timer and cancel it: no timer is left (5.3, deletes come after the inserts).
pub async fn test_commit_round_timer_created_and_cancelled<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = round_fixture(factory).await else { return };
    fixture.send(start("noop")).await;
    let claim = fixture.claim_instance("noop").await;
    let mut round = first_round("noop");
    round.orchestrator_items = vec![timer_fired("noop", 2, 1)];
    round.cancelled_timers =
        vec![ScheduledTimerIdentifier { instance: "noop".to_owned(), execution_id: 1, timer_id: 2 }];
    commit_round(&fixture, &claim, round).await;
    fixture.expect_no_claim("a timer that its own round cancels must not fire").await;
}

/// Rounds that each fail at another step, with the reason.
fn broken_rounds(instance: &str) -> Vec<(&'static str, Round)> {
    let whole = || {
        let mut round = handing_over(instance, 4);
        round.history_delta.splice(
            0..0,
            [status_updated(instance, 1, 2, Some("never")), kv_set(instance, 1, 3, "never", "1")],
        );
        round.worker_items = vec![activity(instance, 1, 10)];
        round.orchestrator_items = vec![start("other")];
        round.cancelled_activities = vec![activity_of(instance, 7)];
        round.cancelled_timers =
            vec![ScheduledTimerIdentifier { instance: instance.to_owned(), execution_id: 1, timer_id: 8 }];
        round
    };
    let mut broken = Vec::new();
    let mut push = |what, change: &dyn Fn(&mut Round)| {
        let mut round = whole();
        change(&mut round);
        broken.push((what, round));
    };
    let subscribed = |execution_id| {
        event(instance, execution_id, 1, EventKind::ExternalSubscribed { name: "again".to_owned() })
    };
    push("a stored event id", &|round| round.history_delta.push(subscribed(1)));
    push("an event id twice in the next execution", &|round| {
        round.next_execution.iter_mut().for_each(|next| next.history_delta.push(subscribed(2)));
    });
    push("an activity among the messages", &|round| round.orchestrator_items.push(activity(instance, 1, 9)));
    push("a message among the activities", &|round| round.worker_items.push(raised(instance, "wrong")));
    push("an activity among the next execution's messages", &|round| {
        round
            .next_execution
            .iter_mut()
            .for_each(|next| next.orchestrator_items.push(activity(instance, 2, 9)));
    });
    push("a message among the next execution's activities", &|round| {
        round.next_execution.iter_mut().for_each(|next| next.worker_items.push(raised(instance, "wrong")));
    });
    broken
}

/// A round that fails at any step leaves nothing behind, and its lock stays valid (S4.22, S4.25, I10).
pub async fn test_commit_round_rolls_back_at_every_step<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = round_fixture(factory).await else { return };
    let mut round = first_round("steps");
    round.worker_items = vec![activity("steps", 1, 7)];
    round.orchestrator_items = vec![timer_fired("steps", 8, now_ms() + 3_600_000)];
    fixture.running_with("steps", round).await;
    fixture.send(raised("steps", "wake")).await;
    let claim = fixture.claim_instance("steps").await;
    let before = visible_state(&fixture).await.expect("reads must work");

    for (what, round) in broken_rounds("steps") {
        let result = fixture.provider.commit_round(&claim.token, round).await;
        assert_permanent(result, &format!("a round with {what} must fail"));
        let after = visible_state(&fixture).await.expect("reads must work");
        assert_eq!(after, before, "a round with {what} must change nothing");
        fixture.expect_no_claim("the lock must be kept").await;
    }
    let lost = fixture.provider.commit_round("no-such-token", handing_over("steps", 2)).await;
    assert_refused(lost, "Invalid lock token", "a round under an unknown token");
    assert_eq!(visible_state(&fixture).await.expect("reads must work"), before, "it must change nothing");

    assert_eq!(fixture.work().await.item, activity("steps", 1, 7), "no activity was cancelled or added");
    fixture.expect_no_work("no activity was cancelled or added").await;
    commit_round(&fixture, &claim, handing_over("steps", 2)).await;
    assert_eq!(
        fixture.claim_instance("steps").await.item.execution_id,
        2,
        "the whole round must be accepted"
    );
}

/// The state of the instance `steps` that can be read without taking locks.
async fn visible_state(fixture: &Fixture) -> Result<String, ProviderError> {
    let provider = &fixture.provider;
    let depths = match provider.as_management_capability() {
        Some(admin) => {
            let executions = admin.list_executions("steps").await?;
            let info = admin.get_instance_info("steps").await?;
            let depths = admin.get_queue_depths().await?;
            format!("{executions:?} {info:?} {depths:?}")
        }
        None => String::new(),
    };
    Ok(format!(
        "{:?} {:?} {:?} {:?} {depths}",
        provider.read_with_execution("steps", 1).await?,
        provider.read_with_execution("steps", 2).await?,
        provider.get_custom_status("steps", 0).await?,
        provider.get_kv_all_values("steps").await?,
    ))
}

/// A commit that is repeated after a lost answer fails with an invalid token and changes nothing (S4.24, 16.5).
pub async fn test_commit_round_repeated_after_lost_answer<F: ProviderFactory + ?Sized>(factory: &F) {
    let Some(fixture) = round_fixture(factory).await else { return };
    fixture.running("repeat").await;
    fixture.send(raised("repeat", "wake")).await;
    let claim = fixture.claim_instance("repeat").await;
    commit_round(&fixture, &claim, handing_over("repeat", 2)).await;
    let repeated = fixture.provider.commit_round(&claim.token, handing_over("repeat", 2)).await;
    let error = repeated.expect_err("a repeated commit must be refused");
    assert!(error.is_lock_lost(), "a repeated commit must show as a lost lock, but is {error}");
    let history = fixture.provider.read_with_execution("repeat", 2).await.expect("execution 2 is there");
    assert_eq!(history.len(), 2, "the round must be stored once");
    let renewed = fixture.provider.renew_orchestration_item_lock(&claim.token, LONG_LEASE).await;
    assert_permanent(renewed, "the lock of a committed round is gone");
}
