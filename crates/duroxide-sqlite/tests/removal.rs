//! 19: deletes and prunes through the provider. They run in steps, between which other calls are served, and a caller
//! may be dropped.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{pin::pin, time::Duration};

use duroxide_core::{Event, EventKind, WorkItem};
use duroxide_provider::{
    ExecutionMetadata, InstanceFilter, Provider, ProviderAdmin, PruneOptions, store::bounds::REMOVED_ROWS_MAX,
};
use duroxide_sqlite::SqliteProvider;

const EVENTS: u64 = 5 * REMOVED_ROWS_MAX as u64;

struct Store {
    provider: SqliteProvider,
    directory: tempfile::TempDir,
}

impl Store {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("store.db").display());
        Self { provider: SqliteProvider::new(&url, None).await.unwrap(), directory }
    }

    async fn file_bytes(&self) -> u64 {
        // The store may be in the middle of a checkpoint of its own.
        while self.provider.checkpoint().await.is_err_and(|error| error.retryable) {
            tokio::task::yield_now().await;
        }
        std::fs::metadata(self.directory.path().join("store.db")).unwrap().len()
    }

    fn admin(&self) -> &dyn ProviderAdmin {
        self.provider.as_management_capability().unwrap()
    }

    /// Runs an instance that completes with this many events.
    async fn ended(&self, instance: &str, events: u64) {
        self.provider.enqueue_for_orchestrator(start(instance), None).await.unwrap();
        let fetched = self.provider.fetch_orchestration_item(Duration::from_secs(60), Duration::ZERO, None);
        let (item, token, _) = fetched.await.unwrap().unwrap();
        assert_eq!(item.instance, instance);
        let metadata = ExecutionMetadata {
            status: Some("Completed".to_owned()),
            orchestration_name: Some("Order".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            ..ExecutionMetadata::default()
        };
        let history = (1..=events).map(|id| event(instance, 1, id)).collect();
        let none = Vec::new;
        self.provider
            .ack_orchestration_item(&token, 1, history, none(), none(), metadata, Vec::new())
            .await
            .unwrap();
    }

    async fn append(&self, instance: &str, execution_id: u64, events: u64) {
        let history = (1..=events).map(|id| event(instance, execution_id, id)).collect();
        self.provider.append_with_execution(instance, execution_id, history).await.unwrap();
    }

    async fn send(&self, item: WorkItem) {
        self.provider.enqueue_for_orchestrator(item, None).await.unwrap();
    }
}

fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Order".to_owned(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn event(instance: &str, execution_id: u64, event_id: u64) -> Event {
    let (name, data) = ("e".to_owned(), "x".repeat(20));
    Event {
        event_id,
        source_event_id: None,
        instance_id: instance.to_owned(),
        execution_id,
        timestamp_ms: 1,
        duroxide_version: "0.5.0".to_owned(),
        kind: EventKind::ExternalEvent { name, data },
    }
}

/// Work that waits is done before the next step of a delete, and the counts are exact.
#[tokio::test]
async fn others_get_through_between_the_steps_of_a_delete() {
    let store = Store::new().await;
    store.ended("large", EVENTS).await;
    let mut delete = pin!(store.admin().delete_instance("large", false));
    for n in 0..4 {
        tokio::select! {
            biased;
            done = &mut delete => panic!("step {n} was the last: {done:?}"),
            () = store.send(start(&format!("order-{n}"))) => {}
        }
    }
    let deleted = delete.await.unwrap();
    assert_eq!((deleted.instances_deleted, deleted.executions_deleted), (1, 1));
    assert_eq!((deleted.events_deleted, deleted.queue_messages_deleted), (EVENTS, 0));
}

/// A delete takes effect even if its caller is dropped.
#[tokio::test]
async fn a_delete_that_is_dropped_after_its_first_step_has_happened() {
    let store = Store::new().await;
    store.ended("large", EVENTS).await;
    {
        let mut delete = pin!(store.admin().delete_instance("large", false));
        tokio::select! {
            biased;
            done = &mut delete => panic!("there was one step only: {done:?}"),
            () = store.send(start("other")) => {}
        }
    }
    let gone = store.admin().delete_instance("large", false).await.unwrap_err();
    assert!(gone.message.contains("not found"), "{gone}");
    assert_eq!(store.admin().get_system_metrics().await.unwrap().total_events, 0);
    store.send(start("large")).await;
    let fetched = store.provider.fetch_orchestration_item(Duration::from_secs(9), Duration::ZERO, None);
    assert_eq!(fetched.await.unwrap().unwrap().0.instance, "other");
}

/// 19.2: a bulk delete leaves the instances beyond its limit to the next call.
#[tokio::test]
async fn a_bulk_delete_can_be_interrupted_and_repeated() {
    let store = Store::new().await;
    for n in 0..4 {
        store.ended(&format!("order-{n}"), EVENTS).await;
    }
    {
        let mut delete = pin!(store.admin().delete_instance_bulk(InstanceFilter::default()));
        let mut left = 4;
        while left == 4 {
            tokio::select! {
                biased;
                done = &mut delete => panic!("it was not interrupted: {done:?}"),
                there = store.admin().list_instances() => left = there.unwrap().len(),
            }
        }
    }
    let left = store.admin().list_instances().await.unwrap().len() as u64;
    assert!((1..=3).contains(&left), "{left} of 4 are left");
    let deleted = store.admin().delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!((deleted.instances_deleted, deleted.events_deleted), (left, left * EVENTS));
    assert!(store.admin().list_instances().await.unwrap().is_empty());
}

/// 19.2: the limit comes last, and more instances are visited than one step can take.
#[tokio::test]
async fn a_bulk_delete_keeps_its_limit_over_many_steps() {
    let store = Store::new().await;
    for n in 0..150 {
        store.ended(&format!("order-{n}"), 20).await;
    }
    let limited = InstanceFilter { limit: Some(140), ..InstanceFilter::default() };
    let deleted = store.admin().delete_instance_bulk(limited).await.unwrap();
    assert_eq!((deleted.instances_deleted, deleted.events_deleted), (140, 140 * 20));
    assert_eq!(store.admin().list_instances().await.unwrap().len(), 10);
}

/// 19.3
#[tokio::test]
async fn prunes_count_exactly_over_many_steps() {
    let store = Store::new().await;
    for instance in ["order-1", "order-2"] {
        store.ended(instance, EVENTS).await;
        store.append(instance, 2, 1).await;
    }
    let keep = PruneOptions::default();
    let one = store.admin().prune_executions("order-1", keep.clone()).await.unwrap();
    assert_eq!((one.instances_processed, one.executions_deleted, one.events_deleted), (1, 1, EVENTS));
    let all = store.admin().prune_executions_bulk(InstanceFilter::default(), keep).await.unwrap();
    assert_eq!((all.instances_processed, all.executions_deleted, all.events_deleted), (2, 1, EVENTS));
    assert_eq!(store.admin().list_executions("order-2").await.unwrap(), [2]);
}

/// The first call writes the file anew; the second goes in steps. The rows stay, and the store goes on.
#[tokio::test]
async fn compact_gives_the_pages_of_deleted_rows_back() {
    let store = Store::new().await;
    store.ended("kept", 10).await;
    for round in 0..2 {
        let id = format!("large-{round}");
        store.ended(&id, 4 * EVENTS).await;
        let full = store.file_bytes().await;
        store.admin().delete_instance(&id, false).await.unwrap();
        assert!(store.file_bytes().await >= full, "free pages are kept for later rows");
        let given_back = store.provider.compact().await.unwrap();
        let left = store.file_bytes().await;
        assert!(given_back > full / 2 && left < full / 2, "{given_back} of {full} bytes, {left} are left");
        assert_eq!(store.provider.read("kept").await.unwrap().len(), 10);
    }
    assert_eq!(store.provider.compact().await.unwrap(), 0);
    store.ended("later", 10).await;
    assert_eq!(SqliteProvider::new_in_memory().await.unwrap().compact().await.unwrap(), 0);
}
