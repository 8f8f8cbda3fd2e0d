//! Tests that every provider call is measured and handed on.

use std::{collections::BTreeSet, path::Path, time::Duration};

use duroxide_core::WorkItem;
use duroxide_provider::{ExecutionMetadata, OrchestrationFetch, Round, TagFilter, WorkFetch};

use super::*;
use crate::{
    fixture::{FakeStore, Recorder},
    observability::ObservabilityConfig,
};

const SECOND: Duration = Duration::from_secs(1);

/// The async methods of the trait, in the order in which [`call_everything`] calls them.
const OPERATIONS: [&str; 31] = [
    "fetch_orchestration_item",
    "ack_orchestration_item",
    "abandon_orchestration_item",
    "renew_orchestration_item_lock",
    "read",
    "read_with_execution",
    "append_with_execution",
    "enqueue_for_worker",
    "enqueue_for_orchestrator",
    "fetch_work_item",
    "ack_work_item",
    "renew_work_item_lock",
    "abandon_work_item",
    "renew_session_lock",
    "cleanup_orphaned_sessions",
    "get_custom_status",
    "get_kv_value",
    "get_kv_all_values",
    "get_instance_stats",
    "commit_round",
    "commit_round_ref",
    "fetch_orchestration_items",
    "load_execution",
    "fetch_work_items",
    "read_status",
    "read_status_or_pending",
    "read_descriptor",
    "last_event_id",
    "mailbox_holds",
    "start_if_new",
    "dead_letter_work_item",
];

fn cancel() -> WorkItem {
    WorkItem::CancelInstance { instance: "order".to_owned(), reason: "enough".to_owned() }
}

/// Calls every async method once. Two of them fail; see [`FakeStore`].
async fn call_everything(store: &dyn Provider) {
    let tags = TagFilter::Any;
    store.fetch_orchestration_item(SECOND, SECOND, None).await.unwrap();
    let metadata = ExecutionMetadata::default();
    store.ack_orchestration_item("t", 1, vec![], vec![], vec![], metadata, vec![]).await.unwrap();
    store.abandon_orchestration_item("t", None, false).await.unwrap();
    store.renew_orchestration_item_lock("t", SECOND).await.unwrap();
    store.read("order").await.unwrap();
    store.read_with_execution("order", 1).await.unwrap();
    store.append_with_execution("order", 1, vec![]).await.unwrap();
    store.enqueue_for_worker(cancel()).await.unwrap();
    store.enqueue_for_orchestrator(cancel(), None).await.unwrap();
    store.fetch_work_item(SECOND, SECOND, None, &tags).await.unwrap();
    store.ack_work_item("t", None).await.unwrap_err();
    store.renew_work_item_lock("t", SECOND).await.unwrap_err();
    store.abandon_work_item("t", None, true).await.unwrap();
    store.renew_session_lock(&["me"], SECOND, SECOND).await.unwrap();
    store.cleanup_orphaned_sessions(SECOND).await.unwrap();
    store.get_custom_status("order", 0).await.unwrap();
    store.get_kv_value("order", "k").await.unwrap();
    store.get_kv_all_values("order").await.unwrap();
    store.get_instance_stats("order").await.unwrap();
    store.commit_round("t", Round::default()).await.unwrap();
    store.commit_round_ref("t", &Round::default()).await.unwrap();
    store.fetch_orchestration_items(&OrchestrationFetch::new(SECOND, SECOND)).await.unwrap();
    store.load_execution("order", 1).await.unwrap();
    store.fetch_work_items(&WorkFetch::new(SECOND, SECOND, &tags)).await.unwrap();
    store.read_status("order").await.unwrap();
    store.read_status_or_pending("order").await.unwrap();
    store.read_descriptor("order").await.unwrap();
    store.last_event_id("order", 1).await.unwrap();
    store.mailbox_holds("order", 1).await.unwrap();
    store.start_if_new(cancel()).await.unwrap();
    store.dead_letter_work_item("t", "why").await.unwrap();
}

fn metrics() -> Arc<MetricsProvider> {
    Arc::new(MetricsProvider::new(&ObservabilityConfig::default()).unwrap())
}

#[tokio::test]
async fn every_call_reaches_the_inner_provider_under_its_own_name() {
    let inner = FakeStore::telling();
    let wrapped = InstrumentedProvider::new(Arc::clone(&inner) as Arc<dyn Provider>, Some(metrics()));
    call_everything(&wrapped).await;
    assert_eq!(inner.calls(), OPERATIONS);
}

#[tokio::test]
async fn what_the_inner_provider_can_do_shows() {
    let inner = FakeStore::telling();
    let wrapped = InstrumentedProvider::new(Arc::clone(&inner) as Arc<dyn Provider>, None);
    assert_eq!((wrapped.name(), wrapped.version()), ("fake", "1.2.3"));
    assert!(wrapped.commits_rounds() && wrapped.serves_batches());
    assert!(wrapped.watch("order").is_some());
    assert!(wrapped.as_management_capability().is_none());
    wrapped.set_max_attempts(3);
    assert_eq!(inner.calls(), ["watch", "set_max_attempts"]);
}

#[tokio::test]
async fn every_call_is_measured_and_every_error_counted() {
    let recorder = Recorder::default();
    let metrics = metrics();
    let wrapped = InstrumentedProvider::new(FakeStore::telling(), Some(Arc::clone(&metrics)));
    {
        let _guard = metrics::set_default_local_recorder(&recorder);
        call_everything(&wrapped).await;
    }
    let failing = ["ack_work_item", "renew_work_item_lock"];
    let expected: BTreeSet<_> = OPERATIONS
        .iter()
        // It counts as what it is, a `commit_round`.
        .filter(|operation| **operation != "commit_round_ref")
        .map(|operation| {
            let status = if failing.contains(operation) { "error" } else { "success" };
            format!("duroxide_provider_operation_duration_seconds{{operation={operation},status={status}}}")
        })
        .collect();
    assert_eq!(recorder.histograms().into_keys().collect::<BTreeSet<_>>(), expected);
    let errors: Vec<_> = recorder.counters().into_iter().collect();
    let expected = [
        ("duroxide_provider_errors_total{error_type=permanent,operation=ack_work_item}".to_owned(), 1),
        ("duroxide_provider_errors_total{error_type=retryable,operation=renew_work_item_lock}".to_owned(), 1),
    ];
    assert_eq!(errors, expected);
    assert_eq!(metrics.snapshot().provider_errors, 2);
}

/// A method added to the trait and forgotten here would be answered by its default body, and nothing else would
/// notice.
#[test]
fn no_method_of_the_trait_is_left_to_its_default_body() {
    let forwarded = method_names(include_str!("provider.rs"));
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../duroxide-provider/src/provider.rs");
    let source = std::fs::read_to_string(contract).unwrap();
    let declared = method_names(source.split("\nimpl ").next().unwrap());
    assert_eq!(forwarded, declared);
}

fn method_names(source: &str) -> BTreeSet<&str> {
    let declarations = source.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?;
        line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "))
    });
    declarations.filter_map(|rest| rest.split(['(', '<']).next()).collect()
}
