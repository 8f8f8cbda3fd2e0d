//! Handles: the reads and messages of a client for one instance.

use std::time::Duration;

use duroxide::{prelude::*, runtime::RuntimeLimits, typed::TypedStatus};
use serde::{Deserialize, Serialize};

use super::store;
use crate::fixture::WAIT_MAX;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Step {
    Waiting { since: u32 },
    Approved,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Approval {
    by: String,
}

#[duroxide::orchestration]
async fn approve(ctx: OrchestrationContext, since: u32) -> Result<String, String> {
    ctx.set_status(&Step::Waiting { since });
    let approval = ctx.event::<Approval>("approval").await?;
    ctx.set_status(&Step::Approved);
    let remark: String = ctx.queue("remarks").await?;
    Ok(format!("{}: {remark}", approval.by))
}

#[tokio::test]
async fn a_handle_watches_and_signals_its_instance() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store).orchestration::<approve>().build().await.unwrap();
    let handle = client.start::<approve>("a-1", 7).await.unwrap();
    assert_eq!(handle.id(), "a-1");
    let waiting = handle.wait_until(|step| matches!(step, Step::Waiting { .. }), WAIT_MAX).await.unwrap();
    assert_eq!(waiting, Some(Step::Waiting { since: 7 }));
    assert_eq!(handle.status().await.unwrap(), TypedStatus::Running);
    let too_short = handle.result_within(Duration::ZERO).await.unwrap_err();
    assert!(matches!(too_short, ClientError::Timeout), "{too_short}");

    // Another process has nothing but the id.
    let again = client.handle::<approve>("a-1");
    let open = |event: &Event| matches!(event.kind, EventKind::ExternalSubscribed { .. });
    crate::fixture::recorded(&client, "a-1", open).await;
    again.raise("approval", &Approval { by: "Ada".to_owned() }).await.unwrap();
    assert_eq!(
        again.wait_until(|step| *step == Step::Approved, WAIT_MAX).await.unwrap(),
        Some(Step::Approved)
    );
    assert_eq!(again.custom_status().await.unwrap(), Some(Step::Approved));
    again.enqueue("remarks", "fine").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), Ok("Ada: fine".to_owned()));
    assert_eq!(handle.status().await.unwrap(), TypedStatus::Completed("Ada: fine".to_owned()));
    let never = handle.wait_until(|step| matches!(step, Step::Waiting { .. }), WAIT_MAX).await.unwrap();
    assert_eq!(never, None, "it ended with another status");
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn an_event_that_is_not_the_json_of_its_type_is_an_error_of_the_wait() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store).orchestration::<approve>().build().await.unwrap();
    let handle = client.start::<approve>("a-1", 7).await.unwrap();
    let open = |event: &Event| matches!(event.kind, EventKind::ExternalSubscribed { .. });
    crate::fixture::recorded(&client, "a-1", open).await;
    client.raise_event("a-1", "approval", "yes").await.unwrap();
    let CallError::Failed(text) = handle.result().await.unwrap().unwrap_err() else { panic!() };
    let place =
        "data of event 'approval' (instance 'a-1', orchestration 'approve' 1.0.0) is not the JSON of ";
    assert!(text.starts_with(place), "{text}");
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn an_instance_is_started_once() {
    let (store, client) = store().await;
    let unknown = client.handle::<approve>("a-1").status().await.unwrap();
    assert_eq!(unknown, TypedStatus::NotFound);
    client.start_or_get::<approve>("a-1", 7).await.unwrap();
    client.start_or_get::<approve>("a-1", 7).await.unwrap();
    let other = client.start_or_get::<approve>("a-1", 8).await.unwrap_err();
    assert_eq!(other.to_string(), "Invalid input: instance 'a-1' exists with another orchestration or input");
    drop(store);
}

/// Measured before its text is made, like the input of a start by name.
#[tokio::test]
async fn an_input_over_the_limit_is_refused() {
    let (store, _) = store().await;
    let limits = RuntimeLimits { max_payload_bytes: Some(10), ..RuntimeLimits::default() };
    let client = Client::with_limits(store, limits);
    let error = client.start::<noted>("n", "eight by".to_owned()).await.map(drop);
    assert!(error.is_ok(), "ten bytes with the quotes: {error:?}");
    let error = client.start::<noted>("n", "nine byte".to_owned()).await.unwrap_err().to_string();
    assert_eq!(error, "Invalid input: orchestration input size (11 bytes) exceeds limit (10 bytes)");
    let handle = client.handle::<noted>("n");
    let error = handle.raise("e", "nine byte").await.unwrap_err().to_string();
    assert_eq!(error, "Invalid input: event data size (11 bytes) exceeds limit (10 bytes)");
    let error = handle.enqueue("q", "nine byte").await.unwrap_err().to_string();
    assert_eq!(error, "Invalid input: queue message data size (11 bytes) exceeds limit (10 bytes)");
}

#[duroxide::orchestration]
async fn noted(_ctx: OrchestrationContext, note: String) -> Result<String, String> {
    Ok(note)
}

#[tokio::test]
async fn a_cancelled_instance_says_why() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store).orchestration::<approve>().build().await.unwrap();
    let handle = client.start::<approve>("a-1", 7).await.unwrap();
    handle.cancel("closing time").await.unwrap();
    let reason = "closing time".to_owned();
    assert_eq!(handle.result().await.unwrap(), Err(CallError::Cancelled { reason }));
    runtime.shutdown(None).await;
}
