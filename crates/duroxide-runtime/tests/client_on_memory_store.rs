//! A client on a real store. The tests commit rounds by hand instead of running a runtime.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "../src/fixture/recorder.rs"]
mod recorder;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use duroxide_core::{ErrorDetails, Event, EventKind, WorkItem};
use duroxide_provider::{
    ExecutionMetadata, InstanceFilter, InstanceQuery, Provider, ProviderError, PruneOptions, QueuedWork,
    Round,
    testing::intercept::{FullyIntercepted, Intercept},
};
use duroxide_runtime::{
    Client, ClientError, ObservabilityConfig, OrchestrationStatus, StartOutcome,
    instrumented::InstrumentedProvider, observability::MetricsProvider,
};
use duroxide_store::MemoryProvider;
use recorder::Recorder;

/// The timeout of every wait in these tests.
const WAIT_MAX: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_secs(60);

fn memory_store() -> Arc<dyn Provider> {
    Arc::new(MemoryProvider::new())
}

/// Commits one turn of the next instance: its start if it has none yet, then these events.
async fn commit_turn(store: &dyn Provider, kinds: Vec<EventKind>, status: Option<&str>) {
    let (item, token, _) = store.fetch_orchestration_item(LEASE, WAIT_MAX, None).await.unwrap().unwrap();
    let started = item.history.is_empty().then(|| started_by(&item.messages));
    let first_id = item.history.len() as u64 + 1;
    let history_delta = (first_id..)
        .zip(started.into_iter().chain(kinds))
        .map(|(id, kind)| Event::with_event_id(id, item.instance.clone(), 1, None, kind))
        .collect();
    let metadata = ExecutionMetadata {
        status: status.map(str::to_owned),
        orchestration_name: Some(item.orchestration_name),
        orchestration_version: Some("1.0.0".to_owned()),
        ..Default::default()
    };
    store
        .commit_round(&token, Round { execution_id: 1, history_delta, metadata, ..Default::default() })
        .await
        .unwrap();
}

fn started_by(messages: &[WorkItem]) -> EventKind {
    let Some(WorkItem::StartOrchestration { orchestration, input, .. }) = messages.first() else {
        panic!("no start in {messages:?}");
    };
    EventKind::OrchestrationStarted {
        name: orchestration.clone(),
        version: "1.0.0".to_owned(),
        input: input.clone(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

fn completed(output: &str) -> EventKind {
    EventKind::OrchestrationCompleted { output: output.to_owned() }
}

fn failed(reason: &str) -> EventKind {
    EventKind::OrchestrationFailed { details: ErrorDetails::orchestration_failed(reason) }
}

/// 20.2a: an instance is visible from the moment its start was accepted. The plain provider calls do not know it yet.
#[tokio::test]
async fn an_accepted_start_is_visible_before_its_first_turn() {
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    let started = OrchestrationStatus::Running { custom_status: None, custom_status_version: 0 };
    let pending = InstanceQuery::default().status(InstanceQuery::PENDING);
    assert_eq!(client.get_orchestration_status("order").await.unwrap(), OrchestrationStatus::NotFound);
    client.start_orchestration("order", "Order", "apples").await.unwrap();
    assert_eq!(client.get_orchestration_status("order").await.unwrap(), started);
    let page = client.query_instances(&pending).await.unwrap();
    assert_eq!((page.instances.len(), page.instances[0].instance_id.as_str()), (1, "order"));
    assert_eq!(client.count_pending_instances().await.unwrap(), Some(1));
    assert!(client.list_all_instances().await.unwrap().is_empty());
    assert!(client.get_instance_info("order").await.is_err());
    assert!(store.read("order").await.unwrap().is_empty());

    commit_turn(&*store, vec![], None).await;
    assert_eq!(client.get_orchestration_status("order").await.unwrap(), started);
    assert_eq!(client.count_pending_instances().await.unwrap(), Some(0));
    client.delete_instance("order", true).await.unwrap();
    assert_eq!(client.get_orchestration_status("order").await.unwrap(), OrchestrationStatus::NotFound);
}

/// 20.1
#[tokio::test]
async fn exactly_one_of_several_starts_creates_the_instance() {
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    let starts = (0..20).map(|_| client.start_orchestration_if_new("order", "Order", "apples"));
    let outcomes = futures_util::future::join_all(starts).await;
    let created = |outcome: &StartOutcome| *outcome == StartOutcome::Created;
    let outcomes: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    assert_eq!(outcomes.iter().filter(|outcome| created(outcome)).count(), 1);
    assert!(outcomes.iter().all(|outcome| created(outcome) || *outcome == StartOutcome::Found));
    commit_turn(&*store, vec![completed("1")], Some("Completed")).await;
    let again = |name: &'static str, input: &'static str| {
        let client = client.clone();
        async move { client.start_orchestration_if_new("order", name, input).await.unwrap() }
    };
    assert_eq!(again("Order", "apples").await, StartOutcome::Found);
    assert_eq!(again("Order", "pears").await, StartOutcome::FoundDifferent);
    assert_eq!(again("Bill", "apples").await, StartOutcome::FoundDifferent);
    client.start_orchestration_if_new_typed("typed", "Order", vec![1, 2]).await.unwrap();
    let typed =
        client.start_orchestration_versioned_if_new("typed", "Order", "2.0.0", "[1,2]").await.unwrap();
    assert_eq!(typed, StartOutcome::Found);
    client.delete_instance("order", false).await.unwrap();
    assert_eq!(again("Order", "pears").await, StartOutcome::Created);
}

/// 20.2
#[tokio::test]
async fn a_waiting_client_is_notified_of_the_end() {
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("order", "Order", "apples").await.unwrap();
    let ended = client.wait_for_orchestration_typed::<u32>("order", WAIT_MAX);
    let turn = commit_turn(&*store, vec![completed("42")], Some("Completed"));
    let (ended, ()) = tokio::join!(ended, turn);
    assert_eq!(ended.unwrap(), Ok(42));
}

/// 20.3, 12.1
#[tokio::test]
async fn custom_status_and_values_of_a_running_instance_are_seen() {
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("order", "Order", "apples").await.unwrap();
    let status = client.wait_for_status_change("order", 0, Duration::from_millis(5), WAIT_MAX);
    let value = client.wait_for_kv_value_typed::<Vec<u32>>("order", "picked", WAIT_MAX);
    let set =
        EventKind::KeyValueSet { key: "picked".to_owned(), value: "[1,2]".to_owned(), last_updated_at_ms: 1 };
    let told = EventKind::CustomStatusUpdated { status: Some("picking".to_owned()) };
    let turn = commit_turn(&*store, vec![set, told], None);
    let (status, value, ()) = tokio::join!(status, value, turn);
    let expected =
        OrchestrationStatus::Running { custom_status: Some("picking".to_owned()), custom_status_version: 1 };
    assert_eq!(status.unwrap(), expected);
    assert_eq!(value.unwrap(), [1, 2]);
    assert_eq!(client.get_kv_all_values("order").await.unwrap().len(), 1);
    assert_eq!(client.get_orchestration_stats("order").await.unwrap().unwrap().history_event_count, 3);
}

/// B22, 20.2
#[tokio::test]
async fn status_and_waits_never_read_a_long_history() {
    let store = memory_store();
    let starter = Client::new(Arc::clone(&store));
    starter.start_orchestration("order", "Order", "").await.unwrap();
    let waits = (0..20_000).map(|n| EventKind::ExternalSubscribed { name: format!("wait-{n}") }).collect();
    commit_turn(&*store, waits, None).await;

    let recorder = Recorder::default();
    let guard = metrics::set_default_local_recorder(&recorder);
    let metrics = MetricsProvider::new(&ObservabilityConfig::default()).unwrap();
    let client = Client::new(Arc::new(InstrumentedProvider::new(store, Some(Arc::new(metrics)))));
    let waits = (0..100).map(|_| client.wait_for_orchestration("order", Duration::from_millis(20)));
    let waited = futures_util::future::join_all(waits).await;
    assert!(waited.iter().all(|end| matches!(end, Err(ClientError::Timeout))));
    for _ in 0..1_000 {
        client.get_orchestration_status("order").await.unwrap();
    }
    drop(guard);
    let calls: Vec<_> = recorder.histograms().into_keys().collect();
    let only = "duroxide_provider_operation_duration_seconds{operation=read_status,status=success}";
    assert_eq!(calls, [only]);
}

/// A misspelt status would silently select nothing.
#[tokio::test]
async fn a_status_that_no_instance_can_have_is_refused() {
    let client = Client::new(memory_store());
    for known in ["Running", "Completed", "Failed", "ContinuedAsNew", "Pending"] {
        client.list_instances_by_status(known).await.unwrap();
        client.query_instances(&InstanceQuery::default().status(known)).await.unwrap();
    }
    for misspelt in ["running", "Runing", ""] {
        let listed = client.list_instances_by_status(misspelt).await.unwrap_err();
        let query = InstanceQuery::default().status(misspelt);
        let selected = client.query_instances(&query).await.unwrap_err();
        for error in [listed, selected] {
            let ClientError::InvalidInput { message } = &error else { panic!("{error:?}") };
            assert!(
                message.starts_with(&format!("unknown status '{misspelt}': an instance is one of Running, "))
            );
        }
    }
}

#[tokio::test]
async fn instances_are_listed_inspected_and_deleted() {
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    assert!(client.has_management_capability());
    client.start_orchestration("done", "Order", "").await.unwrap();
    commit_turn(&*store, vec![failed("no stock")], Some("Failed")).await;
    client.start_orchestration("open", "Order", "").await.unwrap();
    commit_turn(&*store, vec![], None).await;

    assert_eq!(client.list_all_instances().await.unwrap().len(), 2);
    assert_eq!(client.list_instances_by_status("Running").await.unwrap(), ["open"]);
    assert_eq!(client.get_instance_info("done").await.unwrap().status, "Failed");
    let unknown = client.get_instance_info("nobody").await.unwrap_err();
    assert!(
        matches!(&unknown, ClientError::InstanceNotFound { instance_id } if instance_id == "nobody"),
        "{unknown:?}"
    );
    assert_eq!(client.list_executions("done").await.unwrap(), [1]);
    assert_eq!(client.get_execution_info("done", 1).await.unwrap().event_count, 2);
    assert_eq!(client.read_execution_history("done", 1).await.unwrap().len(), 2);
    assert_eq!(client.get_system_metrics().await.unwrap().failed_instances, 1);
    assert_eq!(client.get_queue_depths().await.unwrap().orchestrator_queue, 0);
    assert!(client.get_instance_tree("open").await.unwrap().is_root_only());
    assert_eq!(client.get_running_duroxide_version_spread().await.unwrap().values().sum::<u64>(), 1);
    assert_eq!(client.prune_executions("open", PruneOptions::default()).await.unwrap().executions_deleted, 0);

    let error = client.delete_instance("open", false).await.unwrap_err();
    assert!(matches!(error, ClientError::InstanceStillRunning { .. }), "{error:?}");
    let error = client.delete_instance("ghost", false).await.unwrap_err();
    assert!(matches!(error, ClientError::InstanceNotFound { .. }), "{error:?}");
    let deleted = client.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!(deleted.instances_deleted, 1, "only what has ended");
    client.delete_instance("open", true).await.unwrap();
    assert!(client.list_all_instances().await.unwrap().is_empty());
}

#[tokio::test]
async fn dead_letters_that_do_not_exist_are_an_error() {
    let client = Client::new(memory_store());
    assert!(client.list_dead_letters(None).await.unwrap().is_empty());
    let error = client.retry_dead_letter("7").await.unwrap_err();
    assert!(error.to_string().contains("Dead letter 7 not found"), "{error}");
    assert!(client.discard_dead_letter("7").await.is_err());
}

/// A user interface passes cursors on from outside, so a wrong one is the caller's mistake, not the store's failure.
#[tokio::test]
async fn instances_are_paged_and_an_unknown_cursor_is_refused() {
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    for instance in ["first", "second", "third"] {
        client.start_orchestration(instance, "Order", "").await.unwrap();
        commit_turn(&*store, vec![], None).await;
    }
    let mut query = InstanceQuery::default().limit(1);
    let mut listed = Vec::new();
    loop {
        let page = client.query_instances(&query).await.unwrap();
        listed.extend(page.instances.into_iter().map(|info| info.instance_id));
        let Some(next) = page.next else { break };
        query = query.after(next);
    }
    assert_eq!(listed, ["third", "second", "first"]);

    let refused = client.query_instances(&InstanceQuery::default().after("nobody's")).await;
    assert!(matches!(&refused, Err(ClientError::InvalidInput { message }) if message.contains("nobody's")));
}

/// Begins the instance that waits in the store as soon as its status is asked for.
struct BeginsBeforeStatus(Arc<dyn Provider>);

#[async_trait]
impl Intercept for BeginsBeforeStatus {
    async fn before(&self, method: &'static str) -> Result<(), ProviderError> {
        if method.starts_with("read_status") {
            commit_turn(&*self.0, vec![], None).await;
        }
        Ok(())
    }
}

/// An instance that a node begins between the two reads of the client is there, and not an error of the store.
#[tokio::test]
async fn an_instance_that_begins_while_it_is_looked_for_is_found() {
    let store = memory_store();
    Client::new(Arc::clone(&store)).start_orchestration("order", "Order", "").await.unwrap();
    let client = Client::new(FullyIntercepted::new(Arc::clone(&store), BeginsBeforeStatus(store)));
    assert_eq!(client.get_instance_info("order").await.unwrap().status, "Running");
}

#[tokio::test]
async fn an_instance_is_found_before_and_after_a_node_begins_it() {
    let store = memory_store();
    let client = Client::new(Arc::clone(&store));
    let unknown = client.find_instance("order").await;
    assert!(matches!(unknown, Err(ClientError::InstanceNotFound { instance_id }) if instance_id == "order"));

    client.raise_event("stray", "Early", "").await.unwrap();
    let stray = client.find_instance("stray").await;
    assert!(matches!(stray, Err(ClientError::InstanceNotFound { .. })), "a message makes no instance");

    client.start_orchestration_versioned("order", "Order", "2.0.0", "").await.unwrap();
    let pending = client.find_instance("order").await.unwrap();
    assert_eq!(
        (pending.orchestration_name.as_str(), pending.orchestration_version.as_str()),
        ("Order", "2.0.0")
    );
    assert_eq!(pending.status, InstanceQuery::PENDING);
    assert!(pending.created_at > 0);

    commit_turn(&*store, vec![], None).await;
    assert_eq!(client.find_instance("order").await.unwrap().status, "Running");
}

/// Queued work shows the first messages of a mailbox only.
#[tokio::test]
async fn an_instance_is_found_whose_start_is_behind_many_messages() {
    let client = Client::new(memory_store());
    for _ in 0..=QueuedWork::LIMIT {
        client.raise_event("order", "Early", "").await.unwrap();
    }
    client.start_orchestration("order", "Order", "").await.unwrap();
    assert_eq!(client.find_instance("order").await.unwrap().orchestration_name, "Order");
    assert_eq!(client.explain("order").await.unwrap().name, "Order");
}

#[tokio::test]
async fn an_instance_is_found_that_begins_between_the_reads() {
    let store = memory_store();
    Client::new(Arc::clone(&store)).start_orchestration("order", "Order", "").await.unwrap();
    let client = Client::new(FullyIntercepted::new(Arc::clone(&store), BeginsBeforeStatus(store)));
    assert_eq!(client.find_instance("order").await.unwrap().status, "Running");
}
