//! Reads of status and descriptor, which do not load the history.

use duroxide_core::{EventKind, OrchestrationDescriptor, TraceContext, TracedInput, WorkItem};
use duroxide_provider::{InstanceQuery, StartOutcome, StatusSnapshot};

use crate::{
    factory::ProviderFactory,
    fixture::Fixture,
    message::{ORCHESTRATION, raised, start, start_of},
    round::{
        activity_scheduled, completion, continuation, failure, first_round, started, status_updated,
        turn_round,
    },
};

async fn status(fixture: &Fixture, instance: &str) -> Option<StatusSnapshot> {
    fixture.provider.read_status(instance).await.expect("read_status must work")
}

/// An unknown instance has no status and no descriptor (A17.3).
pub async fn test_status_of_unknown_instance<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    assert_eq!(status(&fixture, "unknown").await, None);
    let descriptor = fixture.provider.read_descriptor("unknown").await.expect("read_descriptor must work");
    assert_eq!(descriptor, None);
}

/// An instance whose start is queued is shown to clients as running and listed as pending, until its first round; a
/// stray message makes no instance. The plain reads do not find the instance. A provider may not support this (20.2a).
pub async fn test_queued_start_is_visible_to_clients<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let Some(admin) = fixture.provider.as_management_capability() else { return };
    let count =
        || async { admin.count_pending_instances().await.expect("count_pending_instances must work") };
    let Some(none) = count().await else { return };
    assert_eq!(none, 0, "an empty store has no pending instances");
    fixture.send(start("accepted")).await;
    fixture.send(raised("stray", "event")).await;

    let shown = |instance: &'static str| {
        let read = fixture.provider.read_status_or_pending(instance);
        async { read.await.expect("read_status_or_pending must work") }
    };
    let accepted = shown("accepted").await.expect("an accepted start must be visible");
    assert_eq!((accepted.terminal_event, accepted.custom_status_version), (None, 0));
    assert_eq!(shown("stray").await, None, "a message without a start makes no instance");
    assert_eq!(status(&fixture, "accepted").await, None, "the plain read must not know it");
    assert_eq!(count().await, Some(1));
    let pending = InstanceQuery::default().status(InstanceQuery::PENDING);
    for query in [pending.clone(), InstanceQuery::default()] {
        let page = admin.query_instances(&query).await.expect("query_instances must work");
        let listed: Vec<_> = page.instances.iter().map(|info| (&*info.instance_id, &*info.status)).collect();
        assert_eq!(listed, [("accepted", "Pending")], "the queued start must be listed by {query:?}");
        assert_eq!(page.instances[0].orchestration_name, ORCHESTRATION);
    }

    let claim = fixture.claim_instance("accepted").await;
    assert_eq!(count().await, Some(1), "a claimed start is still queued");
    fixture.commit(&claim, first_round("accepted")).await;
    assert_eq!(count().await, Some(0), "an instance that has begun is no longer pending");
    let page = admin.query_instances(&pending).await.expect("query_instances must work");
    assert!(page.instances.is_empty(), "an instance that has begun is no longer pending");
    assert_eq!(shown("accepted").await, status(&fixture, "accepted").await);
}

/// A running instance has no terminal event (20.2).
pub async fn test_status_of_running_instance<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("runs").await;
    let expected = StatusSnapshot {
        execution_id: 1,
        terminal_event: None,
        custom_status: None,
        custom_status_version: 0,
    };
    assert_eq!(status(&fixture, "runs").await, Some(expected));
}

/// An instance that ended shows its last event (20.2, I19).
pub async fn test_status_of_ended_instance<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.completed("completed").await;
    fixture.running("failed").await;
    fixture.turn("failed", failure("failed", 1, 2, "broken")).await;
    for instance in ["completed", "failed"] {
        let history = fixture.provider.read(instance).await.expect("read must work");
        let shown = status(&fixture, instance).await.expect("the instance is known").terminal_event;
        assert_eq!(shown.as_ref(), history.last(), "the terminal event of {instance} must be shown");
    }
}

/// An instance whose execution continued as new is running (20.2).
pub async fn test_status_across_continue_as_new<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("chain").await;
    fixture.turn("chain", continuation("chain", 1, 2)).await;
    let between = status(&fixture, "chain").await.expect("the instance is known");
    assert_eq!((between.execution_id, between.terminal_event), (1, None), "it waits for its successor");
    let claim = fixture.claim_instance("chain").await;
    fixture.commit(&claim, crate::round::next_execution_round("chain", 2)).await;
    fixture.turn("chain", completion("chain", 2, 2, "done")).await;
    let ended = status(&fixture, "chain").await.expect("the instance is known");
    assert_eq!(ended.execution_id, 2, "the status is that of the current execution");
    let output = EventKind::OrchestrationCompleted { output: "done".to_owned() };
    assert_eq!(ended.terminal_event.map(|event| event.kind), Some(output));
}

/// The status shows the custom status and its version (12.1).
pub async fn test_status_shows_custom_status<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("i").await;
    fixture.turn("i", turn_round(1, vec![status_updated("i", 1, 2, Some("half way"))])).await;
    let shown = status(&fixture, "i").await.expect("the instance is known");
    assert_eq!((shown.custom_status.as_deref(), shown.custom_status_version), (Some("half way"), 1));
    fixture.turn("i", turn_round(1, vec![status_updated("i", 1, 3, None)])).await;
    let shown = status(&fixture, "i").await.expect("the instance is known");
    assert_eq!((shown.custom_status, shown.custom_status_version), (None, 2));
}

/// An instance that has history but no row is found; its execution is the highest one with events (A11).
pub async fn test_status_of_instance_without_row<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    for execution_id in [1, 2] {
        let events = vec![started("rowless", execution_id)];
        let appended = fixture.provider.append_with_execution("rowless", execution_id, events).await;
        appended.expect("append_with_execution must work");
    }
    assert_eq!(status(&fixture, "rowless").await.expect("it has history").execution_id, 2);
    let history = fixture.provider.read("rowless").await.expect("read must work");
    assert_eq!(history.first().map(|event| event.execution_id), Some(2));
}

/// The descriptor contains the fields of the current execution's `OrchestrationStarted` (A17.3).
pub async fn test_read_descriptor<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let mut round = first_round("child");
    if let EventKind::OrchestrationStarted { parent_instance, parent_id, .. } =
        &mut round.history_delta[0].kind
    {
        (*parent_instance, *parent_id) = (Some("parent".to_owned()), Some(7));
    }
    fixture.running_with("child", round).await;
    let expected = OrchestrationDescriptor {
        name: ORCHESTRATION.to_owned(),
        version: "1.0.0".to_owned(),
        parent_instance: Some("parent".to_owned()),
        parent_id: Some(7),
    };
    let descriptor = fixture.provider.read_descriptor("child").await.expect("read_descriptor must work");
    assert_eq!(descriptor, Some(expected));
}

/// The last event id is read without decoding events, so it can be read from an undecodable history too. A provider may
/// not support this (16.6, A17.3).
pub async fn test_last_event_id<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("i").await;
    let events = vec![activity_scheduled("i", 1, 2), activity_scheduled("i", 1, 3)];
    fixture.turn("i", turn_round(1, events)).await;
    let last = fixture.provider.last_event_id("i", 1).await.expect("last_event_id must work");
    assert!(matches!(last, None | Some(3)), "the last stored event is 3, but {last:?} was said");
    if last.is_some() {
        factory.corrupt_instance_history("i").await;
        let last =
            fixture.provider.last_event_id("i", 1).await.expect("last_event_id must not decode events");
        assert_eq!(last, Some(3), "the last stored event must be known although it cannot be decoded");
    }
    let unknown =
        fixture.provider.last_event_id("unknown", 1).await.expect("an unknown instance is no error");
    assert!(matches!(unknown, None | Some(0)), "an unknown instance has no events, but {unknown:?} was said");
}

/// Of several starts of one id exactly one creates the instance. The others find it, in any state, and report
/// whether its start was the same. A provider that does not support this starts nothing (20.1, 20.2a).
pub async fn test_start_if_new<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let provider = &fixture.provider;
    let first = provider.start_if_new(start("one")).await;
    if let Err(error) = &first {
        assert!(
            !error.is_retryable(),
            "a provider that cannot tell must say so for good, but said {error:?}"
        );
        assert!(fixture.try_claim().await.is_none(), "a refused start must not be queued");
        return;
    }
    assert_eq!(first, Ok(StartOutcome::Created));
    let same = || async { provider.start_if_new(start("one")).await.expect("start_if_new must work") };
    let traced =
        || async { provider.start_if_new(traced_start("one")).await.expect("start_if_new must work") };
    let different = || async {
        let other = start_of("one", "Another", None);
        provider.start_if_new(other).await.expect("start_if_new must work")
    };
    assert_eq!([same().await, different().await], [StartOutcome::Found, StartOutcome::FoundDifferent]);
    assert_eq!(traced().await, StartOutcome::Found, "a start from another trace is the same start");
    let claim = fixture.claim_instance("one").await;
    fixture.commit(&claim, first_round("one")).await;
    assert_eq!([same().await, different().await], [StartOutcome::Found, StartOutcome::FoundDifferent]);
    assert_eq!(traced().await, StartOutcome::Found, "a start from another trace is the same start");
    fixture.completed("two").await;
    let ended = provider.start_if_new(start("two")).await;
    assert_eq!(ended, Ok(StartOutcome::Found), "an instance that has ended exists");

    let calls = (0..8).map(|_| provider.start_if_new(start("three")));
    let outcomes = futures_util::future::join_all(calls).await;
    let created = outcomes.iter().filter(|outcome| **outcome == Ok(StartOutcome::Created)).count();
    assert_eq!(created, 1, "exactly one of several starts creates the instance, but {outcomes:?}");
    assert_eq!(fixture.claim_instance("three").await.item.messages.len(), 1, "only one start is queued");
}

/// The start of [`start`] with a trace context.
fn traced_start(instance: &str) -> WorkItem {
    let mut item = start(instance);
    if let WorkItem::StartOrchestration { input, .. } = &mut item {
        let context = TraceContext::new(1, 2, 1);
        *input = TracedInput { input: std::mem::take(input), context }.into_text();
    }
    item
}
