//! Instances that wait for something that may still come.

use std::time::Duration;

use duroxide::{ActivityState, EventKind, Finding, RuntimeOptions, providers::TagFilter};

use crate::{
    Stage,
    fixture::{ended, recorded},
    patient, stories,
};

stories![
    an_event_that_was_raised_under_another_name,
    a_timer,
    a_pause_between_two_attempts,
    an_activity_that_runs,
    a_session_that_another_worker_holds,
    a_child_that_waits_itself,
    an_activity_that_became_a_dead_letter,
    a_request_to_cancel_that_no_node_has_taken,
];

async fn an_event_that_was_raised_under_another_name(stage: Stage) {
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Approved", "").await.unwrap();
    stage.explained("order-1", "waits for event `Approval` since").await;
    stage.client.raise_event("order-1", "approval", "yes").await.unwrap();
    recorded(&stage.client, "order-1", |event| matches!(event.kind, EventKind::ExternalEvent { .. })).await;
    let lines = stage.explained("order-1", "; the last raised event was `approval`").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    runtime.shutdown(None).await;
}

async fn a_timer(stage: Stage) {
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Slept", "").await.unwrap();
    let lines = stage.explained("order-1", "timer due in 59 min").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    runtime.shutdown(None).await;
}

async fn a_pause_between_two_attempts(stage: Stage) {
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Retried", "").await.unwrap();
    let lines = stage.explained("order-1", "timer due in ").await;
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].starts_with("before that, activity `Refuse` failed at "), "{lines:?}");
    assert!(lines[1].ends_with("the bank did not answer"), "{lines:?}");
    runtime.shutdown(None).await;
}

async fn an_activity_that_runs(stage: Stage) {
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Charged", "Charge").await.unwrap();
    let name = stage.node_name().await;
    let lines = stage.explained("order-1", &format!("activity `Charge` runs on node {name}, ")).await;
    assert!(lines[0].contains(", attempt 1 of 3, lease ends in "), "{lines:?}");
    runtime.shutdown(Some(0)).await;
}

/// A slot of the node holds the session for the first order, and the activity of the second order belongs to it too.
async fn a_session_that_another_worker_holds(stage: Stage) {
    let runtime = stage.node(RuntimeOptions { worker_concurrency: 2, ..patient() }).await;
    for order in ["order-1", "order-2"] {
        stage.client.start_orchestration(order, "Loaded", "").await.unwrap();
        let running = stage.explained("order-1", "activity `Charge` runs on node ").await;
        assert_eq!(running.len(), 1, "{running:?}");
    }
    let lines = stage.explained("order-2", " for session `cart-7`, which worker work-").await;
    let name = stage.node_name().await;
    assert!(lines[0].starts_with("activity `Charge` waits since "), "{lines:?}");
    assert!(lines[0].contains(&format!("-{name} holds, lease ends in ")), "{lines:?}");
    let [Finding::Activity { state: ActivityState::SessionHeld { session, owner, lease_ends_ms }, .. }] =
        &stage.client.explain("order-2").await.unwrap().findings[..]
    else {
        panic!("{lines:?}");
    };
    assert_eq!(session, "cart-7");
    assert!(owner.starts_with("work-") && *lease_ends_ms > 0, "{owner}");
    runtime.shutdown(Some(0)).await;
}

async fn a_child_that_waits_itself(stage: Stage) {
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Delegated", "").await.unwrap();
    let lines = stage.explained("order-1", "; the child: waits for event `Approval`").await;
    assert!(lines[0].starts_with("waits for child `order-1::sub::2` (Approved) since "), "{lines:?}");
    runtime.shutdown(None).await;
}

/// A node without workers does not fetch the activity; the test moves it to the dead letters.
async fn an_activity_that_became_a_dead_letter(stage: Stage) {
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

async fn a_request_to_cancel_that_no_node_has_taken(stage: Stage) {
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
