//! Histories with events that this build does not know.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use duroxide::{
    Client, ErrorDetails, OrchestrationStatus, PoisonMessageType,
    providers::{Provider, ProviderAdmin, ProviderError},
};

use crate::{
    fixture::{
        File, ended, failure,
        intercept::{FullyIntercepted, Intercept, Intercepted, Queue},
        logs::Logs,
        node, output, quick_options,
    },
    no_activities, pinned, supporting, waiting,
};

/// Filters as the store does, and makes every abandoned item visible at once.
struct Impatient;

impl Intercept for Impatient {
    fn abandon(&self, _: Queue, _: Option<Duration>, _: bool) -> Option<Duration> {
        None
    }
}

/// An event as a later version may store it: a kind that this build does not know.
const FROM_THE_FUTURE: &str = r#"{"event_id":2,"source_event_id":null,"instance_id":"future","execution_id":1,
    "timestamp_ms":1,"duroxide_version":"99.0.0","type":"FromTheFuture","name":"go"}"#;

/// S3.T29, S3.29, S3.43, C10: an operator widens the range of one node. Executions that it
/// cannot decode end in poison, the others go on.
#[tokio::test]
async fn wide_supported_range_drains_stuck_items_via_deserialization_error() {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let inner = file.open().await;
    pinned(&inner, "future", "99.0.0").await;
    pinned(&inner, "plain", "99.0.0").await;
    pinned(&inner, "present", "0.5.0").await;
    file.overwrite_event("future", 2, FROM_THE_FUTURE);
    let client = Client::new(inner.clone());
    let store: Arc<dyn Provider> = Intercepted::new(inner, Impatient);
    let runtime = node(&store, no_activities(), waiting(), supporting("0.0.0", "99.9.9")).await;

    for compatible in ["plain", "present"] {
        assert_eq!(output(ended(&client, compatible).await), "went");
    }
    let details = failure(ended(&client, "future").await);

    let ErrorDetails::Poison { attempt_count: 4, max_attempts: 3, message_type, message } = &details else {
        panic!("{details:?}")
    };
    let PoisonMessageType::FailedDeserialization { instance, execution_id: 1, error } = message_type else {
        panic!("{details:?}")
    };
    assert_eq!(instance, "future");
    let start = "Failed to deserialize event at position 1: unknown variant `FromTheFuture`";
    assert!(error.starts_with(start), "S3.37: {error}");
    assert_eq!(message, error, "S1.12: the decode error is the message");
    runtime.shutdown(None).await;
    assert_eq!(
        logs.with("supported replay versions reach above this build").len(),
        1,
        "C10: the node says so"
    );
}

/// S3.T42, S3.38, Q1: a damaged history stops its own instance, with a diagnosis; all others progress.
#[tokio::test]
async fn fetch_deserialization_error_eventually_reaches_poison() {
    let file = File::new();
    let inner = file.open().await;
    pinned(&inner, "damaged", "0.1.0").await;
    pinned(&inner, "healthy", "0.1.0").await;
    file.overwrite_event("damaged", 1, "not even JSON");
    let client = Client::new(inner.clone());
    let store: Arc<dyn Provider> = Intercepted::new(inner, Impatient);
    let runtime = node(&store, no_activities(), waiting(), quick_options()).await;

    assert_eq!(output(ended(&client, "healthy").await), "went");
    let details = failure(ended(&client, "damaged").await);

    assert!(
        details.display_message().contains("history deserialization failed after 4 attempts (max 3)"),
        "{details:?}"
    );
    runtime.shutdown(None).await;
}

/// S2.16: an execution that no node can decode can still be inspected, and the pinned versions of running ones counted, without
/// decoding a history.
#[tokio::test]
async fn a_history_with_unknown_events_can_be_read_raw() {
    let file = File::new();
    let store = file.open().await;
    pinned(&store, "future", "99.0.0").await;
    file.overwrite_event("future", 2, FROM_THE_FUTURE);
    let client = Client::new(store.clone());
    assert!(client.read_execution_history("future", 1).await.is_err());

    let admin = store.as_management_capability().unwrap();
    let raw = admin.read_raw_history("future", 1).await.unwrap();
    let seen: Vec<_> = raw.iter().map(|event| (event.event_id, event.event_type.as_str())).collect();
    assert_eq!(seen, [(1, "OrchestrationStarted"), (2, "FromTheFuture")]);
    assert_eq!(raw[1].data, FROM_THE_FUTURE);
    assert!(admin.read_raw_history("nobody", 1).await.unwrap().is_empty());
    let spread = client.get_running_duroxide_version_spread().await.unwrap();
    assert_eq!(spread, [("99.0.0".to_owned(), 1)].into());
}

/// S3.15, S3.33: an execution that the filter excludes is never decoded, so it is neither counted nor ended.
#[tokio::test]
async fn an_excluded_history_is_never_decoded() {
    let file = File::new();
    let store = file.open().await;
    pinned(&store, "future", "99.0.0").await;
    pinned(&store, "healthy", "0.1.0").await;
    file.overwrite_event("future", 2, FROM_THE_FUTURE);
    let runtime = node(&store, no_activities(), waiting(), quick_options()).await;
    let client = Client::new(store);

    assert_eq!(output(ended(&client, "healthy").await), "went");
    let status = client.get_orchestration_status("future").await.unwrap();

    assert!(matches!(status, OrchestrationStatus::Running { .. }), "{status:?}");
    runtime.shutdown(None).await;
}

/// Makes every abandoned item visible at once, has no management calls, and fails the first questions about an instance's
/// status.
#[derive(Default)]
struct ForgetfulOfStatus {
    questions: std::sync::atomic::AtomicU32,
}

#[async_trait]
impl Intercept for ForgetfulOfStatus {
    fn management<'a>(&'a self, _: &'a dyn Provider) -> Option<&'a dyn ProviderAdmin> {
        None
    }

    fn abandon(&self, _: Queue, _: Option<Duration>, _: bool) -> Option<Duration> {
        None
    }

    async fn before(&self, method: &'static str) -> Result<(), ProviderError> {
        let asked =
            method == "read_status" && self.questions.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 2;
        if asked { Err(ProviderError::retryable(method, "come back later")) } else { Ok(()) }
    }
}

/// An instance that has completed, one of whose events cannot be decoded any more, and a message for it.
async fn completed_and_damaged(file: &File, which: &str) -> Client {
    let store = file.open().await;
    pinned(&store, "ended", "0.1.0").await;
    let runtime = node(&store, no_activities(), waiting(), quick_options()).await;
    let client = Client::new(store);
    assert_eq!(output(ended(&client, "ended").await), "went");
    runtime.shutdown(None).await;
    let damaged: u32 = file
        .connect()
        .query_row(&format!("SELECT {which}(event_id) FROM history"), [], |row| row.get(0))
        .expect("the history is there");
    file.overwrite_event("ended", damaged, "not even JSON");
    client.raise_event("ended", "late", "").await.unwrap();
    client
}

/// Whether the instance is as it was: completed, with nothing behind its last event, and its messages dropped.
async fn stays_completed(file: &File, client: &Client, store: Arc<dyn Provider>) {
    let rows = |table: &str| -> u32 {
        let count = format!("SELECT count(*) FROM {table}");
        file.connect().query_row(&count, [], |row| row.get(0)).expect("a number")
    };
    assert_eq!(rows("message"), 1);
    let before = rows("history");
    let runtime = node(&store, no_activities(), waiting(), quick_options()).await;
    crate::fixture::until("the message is gone", async || rows("message") == 0).await;
    runtime.shutdown(None).await;
    assert_eq!(rows("history"), before, "3.3: nothing stands behind the terminal event");
    assert_eq!(client.get_instance_info("ended").await.unwrap().status, "Completed");
}

/// 2.2 (a) and (d), 16.10: ended is decided by the stored status, without decoding.
#[tokio::test]
async fn an_ended_instance_whose_last_event_is_damaged_is_not_failed() {
    let file = File::new();
    let client = completed_and_damaged(&file, "max").await;
    let store: Arc<dyn Provider> = FullyIntercepted::new(file.open().await, Impatient);
    stays_completed(&file, &client, store).await;
}

/// 2.2 (a) and (d): the same with the default bodies of the contract.
#[tokio::test]
async fn an_ended_instance_is_not_failed_by_a_provider_with_default_bodies() {
    let file = File::new();
    let client = completed_and_damaged(&file, "max").await;
    let store: Arc<dyn Provider> = Intercepted::new(file.open().await, Impatient);
    stays_completed(&file, &client, store).await;
}

/// 2.2 (d), 16.9: a store that cannot say now whether the instance has ended is asked again.
#[tokio::test]
async fn an_ended_instance_is_not_failed_by_a_transient_error() {
    let file = File::new();
    let client = completed_and_damaged(&file, "min").await;
    let store: Arc<dyn Provider> = FullyIntercepted::new(file.open().await, ForgetfulOfStatus::default());
    stays_completed(&file, &client, store).await;
}
