//! Instances that wait for something that may still come.

use std::time::Duration;

use duroxide::{EventKind, RuntimeOptions, providers::TagFilter};

use crate::{
    Stage,
    fixture::{ended, recorded},
    patient,
};

#[tokio::test]
async fn an_event_that_was_raised_under_another_name() {
    let stage = Stage::new().await;
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Approved", "").await.unwrap();
    stage.explained("order-1", "waits for event `Approval` since").await;
    stage.client.raise_event("order-1", "approval", "yes").await.unwrap();
    recorded(&stage.client, "order-1", |event| matches!(event.kind, EventKind::ExternalEvent { .. })).await;
    let lines = stage.explained("order-1", "; the last raised event was `approval`").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn a_timer() {
    let stage = Stage::new().await;
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Slept", "").await.unwrap();
    let lines = stage.explained("order-1", "timer due in 59 min").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn an_activity_that_runs() {
    let stage = Stage::new().await;
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Charged", "Charge").await.unwrap();
    let name = stage.node_name().await;
    let lines = stage.explained("order-1", &format!("activity `Charge` runs on node {name}, ")).await;
    assert!(lines[0].contains(", attempt 1 of 3, lease ends in "), "{lines:?}");
    runtime.shutdown(Some(0)).await;
}

#[tokio::test]
async fn a_child_that_waits_itself() {
    let stage = Stage::new().await;
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Delegated", "").await.unwrap();
    let lines = stage.explained("order-1", "; the child: waits for event `Approval`").await;
    assert!(lines[0].starts_with("waits for child `order-1::sub::2` (Approved) since "), "{lines:?}");
    runtime.shutdown(None).await;
}

/// A node that has no workers leaves the activity to a reader of its own, which puts it aside.
#[tokio::test]
async fn an_activity_that_became_a_dead_letter() {
    let stage = Stage::new().await;
    let runtime = stage.node(RuntimeOptions { worker_concurrency: 0, ..patient() }).await;
    stage.client.start_orchestration("order-1", "Charged", "Charge").await.unwrap();
    recorded(&stage.client, "order-1", |event| event.event_id == 2).await;
    let (lease, now) = (Duration::from_secs(30), Duration::ZERO);
    let fetched = stage.store.fetch_work_item(lease, now, None, &TagFilter::DefaultOnly).await.unwrap();
    let (_, token, _) = fetched.expect("the activity is queued");
    stage.store.dead_letter_work_item(&token, "the card reader is gone").await.unwrap();
    let lines = stage.explained("order-1", "dead letter 1 holds a message or an activity of it").await;
    assert!(lines[0].ends_with(": the card reader is gone"), "{lines:?}");
    assert!(
        lines[1].contains("waits for activity `Charge`") && lines[1].contains("is not queued"),
        "{lines:?}"
    );
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn a_request_to_cancel_that_no_node_has_taken() {
    let stage = Stage::new().await;
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Approved", "").await.unwrap();
    stage.explained("order-1", "waits for event").await;
    runtime.shutdown(None).await;
    stage.client.cancel_instance("order-1", "enough").await.unwrap();
    let lines = stage.explained("order-1", "was asked to cancel at ").await;
    assert_eq!(lines[0], "no live node runs orchestrations");
    let runtime = stage.node(patient()).await;
    ended(&stage.client, "order-1").await;
    let lines = stage.explained("order-1", "was cancelled at ").await;
    assert!(lines[0].ends_with(": enough"), "{lines:?}");
    runtime.shutdown(None).await;
}
