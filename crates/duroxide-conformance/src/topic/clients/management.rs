//! Management reads: instances, executions, counts and statistics.

mod inspection;
mod listing;

use duroxide_core::EventKind;
use duroxide_provider::{Provider, Round};

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, assert_refused, now_ms},
    message::{activity, raised, start},
    round::{
        activity_scheduled, completion, event, failure, first_round, kv_cleared, kv_set, started, turn_round,
    },
};

pub use inspection::*;
pub use listing::*;

/// Instances are listed newest first (A12).
pub async fn test_list_instances<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let none = fixture.admin().list_instances().await.expect("list_instances must work");
    assert!(none.is_empty(), "an empty store has no instances");
    for instance in ["first", "second", "third"] {
        fixture.running(instance).await;
        next_millisecond().await;
    }
    let listed = fixture.admin().list_instances().await.expect("list_instances must work");
    assert_eq!(listed, ["third", "second", "first"], "instances must be listed newest first");
}

/// Waits, so that the next instance has a later creation time. Creation times are in milliseconds.
async fn next_millisecond() {
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
}

/// One instance runs, one has completed, one has failed, and one runs its second execution.
async fn one_instance_of_each_kind(fixture: &Fixture) {
    fixture.running("runs").await;
    fixture.completed("completed").await;
    fixture.running("failed").await;
    fixture.turn("failed", failure("failed", 1, 2, "broken")).await;
    fixture.running("continued").await;
    fixture.continue_as_new("continued", 1, 2).await;
}

/// The status filter compares the status of the current execution (A12).
pub async fn test_list_instances_by_status<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    one_instance_of_each_kind(&fixture).await;

    for (status, expected) in [
        ("Running", vec!["continued", "runs"]),
        ("Completed", vec!["completed"]),
        ("Failed", vec!["failed"]),
        ("Nonsense", vec![]),
    ] {
        let mut listed = fixture.admin().list_instances_by_status(status).await.expect("the call must work");
        listed.sort();
        assert_eq!(listed, expected, "instances with status {status}");
    }
}

/// Executions are listed ascending; an unknown instance has none (A12).
pub async fn test_list_executions<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("many").await;
    fixture.continue_as_new("many", 1, 2).await;
    fixture.continue_as_new("many", 2, 2).await;
    let admin = fixture.admin();
    assert_eq!(admin.list_executions("many").await.expect("the call must work"), [1, 2, 3]);
    let unknown = admin.list_executions("unknown").await.expect("an unknown instance is no error here");
    assert!(unknown.is_empty(), "an unknown instance has no executions");
    let latest = admin.latest_execution_id("unknown").await.expect("an unknown instance is no error here");
    assert_eq!(latest, 1, "the latest execution of an unknown instance is 1");
    assert_eq!(admin.read_history("many").await.expect("the call must work")[0].execution_id, 3);
    let old = admin.read_history_with_execution_id("many", 2).await.expect("the call must work");
    assert_eq!(old.len(), 2, "an old execution must be readable");
}

/// An instance is described by its current execution; an unknown one is the error `Instance {id} not found` (A12).
pub async fn test_get_instance_info<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let before = now_ms();
    fixture.running("known").await;
    let info = fixture.admin().get_instance_info("known").await.expect("a known instance must be described");
    assert_eq!(info.instance_id, "known");
    assert_eq!(
        (info.orchestration_name.as_str(), info.orchestration_version.as_str()),
        ("Conformance", "1.0.0")
    );
    assert_eq!((info.current_execution_id, info.status.as_str()), (1, "Running"));
    assert_eq!((info.output, info.parent_instance_id), (None, None));
    assert!(info.created_at + 1_000 >= before, "created_at must be in milliseconds since the epoch");
    assert!(info.updated_at >= info.created_at, "updated_at must not be before created_at");

    fixture.turn("known", completion("known", 1, 2, "result")).await;
    let info = fixture.admin().get_instance_info("known").await.expect("a known instance must be described");
    assert_eq!((info.status.as_str(), info.output.as_deref()), ("Completed", Some("result")));
    let unknown = fixture.admin().get_instance_info("unknown").await;
    assert_refused(unknown, "Instance unknown not found", "an unknown instance");
}

/// The information about an execution is that of its own rounds; an unknown execution is an error (A12).
pub async fn test_get_execution_info<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("known").await;
    fixture.continue_as_new("known", 1, 2).await;
    let first = fixture.admin().get_execution_info("known", 1).await.expect("execution 1 must be described");
    assert_eq!((first.execution_id, first.status.as_str(), first.event_count), (1, "ContinuedAsNew", 2));
    assert_eq!(first.output.as_deref(), Some("next"));
    let completed_at = first.completed_at.expect("an execution that ended has an end");
    assert!(completed_at >= first.started_at, "an execution ends after it began");

    let second = fixture.admin().get_execution_info("known", 2).await.expect("execution 2 must be described");
    assert_eq!((second.execution_id, second.status.as_str(), second.event_count), (2, "Running", 1));
    assert_eq!((second.output, second.completed_at), (None, None), "a running execution has no end");
    let unknown = fixture.admin().get_execution_info("known", 9).await;
    assert_refused(unknown, "Execution 9 not found for instance known", "an unknown execution");
}

/// The counts cover the whole store; an instance is counted by its current execution (A12).
pub async fn test_get_system_metrics<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let empty = fixture.admin().get_system_metrics().await.expect("get_system_metrics must work");
    assert_eq!((empty.total_instances, empty.total_events), (0, 0), "an empty store has nothing");
    one_instance_of_each_kind(&fixture).await;

    let metrics = fixture.admin().get_system_metrics().await.expect("get_system_metrics must work");
    assert_eq!((metrics.total_instances, metrics.total_executions), (4, 5), "instances and executions");
    assert_eq!(
        (metrics.running_instances, metrics.completed_instances, metrics.failed_instances),
        (2, 1, 1),
        "instances by status of the current execution"
    );
    assert_eq!(metrics.total_events, 1 + 2 + 2 + 3, "events of all executions");
}

/// Queue depths count unlocked rows; timers count in the orchestrator queue (A12).
pub async fn test_get_queue_depths<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("deep").await;
    fixture.schedule(activity("deep", 1, 2)).await;
    fixture.schedule(activity("deep", 1, 3)).await;
    fixture.send(raised("deep", "wake")).await;
    fixture.send(start("waiting")).await;
    let depths = fixture.admin().get_queue_depths().await.expect("get_queue_depths must work");
    assert_eq!((depths.orchestrator_queue, depths.worker_queue, depths.timer_queue), (2, 2, 0));

    let _work = fixture.work().await;
    let _claim = fixture.claim().await;
    let depths = fixture.admin().get_queue_depths().await.expect("get_queue_depths must work");
    assert_eq!((depths.orchestrator_queue, depths.worker_queue), (1, 1), "locked rows must not be counted");
}

async fn stats(provider: &dyn Provider, instance: &str) -> duroxide_core::SystemStats {
    let stats = provider.get_instance_stats(instance).await.expect("get_instance_stats must work");
    stats.expect("a known instance has stats")
}

/// An unknown instance has no stats (A11).
pub async fn test_get_instance_stats_nonexistent<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let stats =
        fixture.provider.get_instance_stats("unknown").await.expect("an unknown instance is no error");
    assert!(stats.is_none(), "an unknown instance has no stats, but has {stats:?}");
}

/// The history statistics cover the current execution (A11).
pub async fn test_get_instance_stats_history<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("measured").await;
    let small = stats(&*fixture.provider, "measured").await;
    assert_eq!(small.history_event_count, 1, "one event is stored");
    fixture.turn("measured", turn_round(1, vec![activity_scheduled("measured", 1, 2)])).await;
    let large = stats(&*fixture.provider, "measured").await;
    assert_eq!(large.history_event_count, 2, "two events are stored");
    assert!(
        large.history_size_bytes > small.history_size_bytes,
        "an event must add to the size of the history"
    );
    assert!(small.history_size_bytes > 0, "a stored event has a size");

    fixture.continue_as_new("measured", 1, 3).await;
    let next = stats(&*fixture.provider, "measured").await;
    assert_eq!(next.history_event_count, 1, "the stats must be of the current execution");
}

/// The key-value statistics cover the merged state (A11, 11.2).
pub async fn test_get_instance_stats_kv<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let mut round = first_round("keys");
    round.history_delta.extend([kv_set("keys", 1, 2, "a", "12345"), kv_set("keys", 1, 3, "b", "123")]);
    fixture.running_with("keys", round).await;
    let stats = stats(&*fixture.provider, "keys").await;
    assert_eq!(
        (stats.kv_user_key_count, stats.kv_total_value_bytes),
        (2, 8),
        "keys and bytes of their values"
    );
}

/// `queue_pending_count` is the number of messages carried into the current execution (A11, 8.3).
pub async fn test_get_instance_stats_carry_forward<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("carried").await;
    assert_eq!(stats(&*fixture.provider, "carried").await.queue_pending_count, 0, "nothing was carried yet");
    fixture.turn("carried", crate::round::continuation("carried", 1, 2)).await;
    let claim = fixture.claim_instance("carried").await;
    fixture.commit(&claim, round_with_carried_messages("carried")).await;
    let stats = stats(&*fixture.provider, "carried").await;
    assert_eq!(stats.queue_pending_count, 2, "two messages were carried into this execution");
}

/// The first round of execution 2, into which two queue messages were carried.
fn round_with_carried_messages(instance: &str) -> Round {
    let carried = [("queue".to_owned(), "m1".to_owned()), ("queue".to_owned(), "m2".to_owned())];
    let mut round = crate::round::next_execution_round(instance, 2);
    let mut first = started(instance, 2);
    if let EventKind::OrchestrationStarted { carry_forward_events, .. } = &mut first.kind {
        *carry_forward_events = Some(carried.to_vec());
    }
    round.history_delta = vec![first];
    for (event_id, (name, data)) in (2..).zip(carried) {
        round.history_delta.push(event(instance, 2, event_id, EventKind::QueueEventDelivered { name, data }));
    }
    round
}

/// Changes of the current execution count although they are not merged yet (11.2).
pub async fn test_get_instance_stats_kv_delta_only<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("delta").await;
    fixture.turn("delta", turn_round(1, vec![kv_set("delta", 1, 2, "a", "12345")])).await;
    let stats = stats(&*fixture.provider, "delta").await;
    assert_eq!((stats.kv_user_key_count, stats.kv_total_value_bytes), (1, 5), "changes must count at once");
}

/// Keys left by earlier executions and changes of this one are counted as one state (11.2).
pub async fn test_get_instance_stats_kv_merged<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let mut round = first_round("merged");
    round.history_delta.extend([kv_set("merged", 1, 2, "kept", "1"), kv_set("merged", 1, 3, "gone", "22")]);
    fixture.running_with("merged", round).await;
    fixture.continue_as_new("merged", 1, 4).await;
    let changes = vec![
        kv_cleared("merged", 2, 2, "gone"),
        kv_set("merged", 2, 3, "kept", "333"),
        kv_set("merged", 2, 4, "new", "4444"),
    ];
    fixture.turn("merged", turn_round(2, changes)).await;
    let stats = stats(&*fixture.provider, "merged").await;
    assert_eq!(
        (stats.kv_user_key_count, stats.kv_total_value_bytes),
        (2, 7),
        "keys `kept` and `new` are there"
    );
}
