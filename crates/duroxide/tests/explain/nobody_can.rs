//! Instances that no node can carry on.

use duroxide::{RuntimeOptions, SemverRange};
use semver::Version;

use crate::{
    Stage,
    fixture::{ended, quick_options},
    patient, stories,
};

stories![
    a_start_without_any_node,
    an_activity_that_the_node_has_no_handler_for,
    a_tag_that_no_node_takes,
    a_handler_version_that_no_node_has,
    a_pinned_version_that_no_node_replays,
    a_start_that_became_poison,
];

async fn a_start_without_any_node(stage: Stage) {
    stage.client.start_orchestration("order-1", "Approved", "").await.unwrap();
    let lines = stage.client.explain("order-1").await.unwrap().lines();
    assert_eq!(lines[0], "no live node runs orchestrations");
    assert!(lines[1].starts_with("its start is queued since "), "{lines:?}");
}

async fn an_activity_that_the_node_has_no_handler_for(stage: Stage) {
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Charged", "Pack").await.unwrap();
    let lines = stage.explained("order-1", "activity `Pack` is hidden until ").await;
    let because = format!(", because no handler is on {}", stage.node_name().await);
    assert!(lines[0].ends_with(&because), "{lines:?}");
    runtime.shutdown(None).await;
}

async fn a_tag_that_no_node_takes(stage: Stage) {
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Rendered", "").await.unwrap();
    stage.explained("order-1", "no live node takes activities with tag `gpu`").await;
    runtime.shutdown(None).await;
}

async fn a_handler_version_that_no_node_has(stage: Stage) {
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration_versioned("order-1", "Approved", "2.0.0", "").await.unwrap();
    let lines = stage.explained("order-1", "its messages are hidden until ").await;
    assert_eq!(lines[0], "no live node has handler `Approved` 2.0.0");
    let because = format!(", because no handler is on {}", stage.node_name().await);
    assert!(lines[1].ends_with(&because), "{lines:?}");
    assert!(lines[2].starts_with("its start is queued since "), "{lines:?}");
    runtime.shutdown(None).await;
}

async fn a_pinned_version_that_no_node_replays(stage: Stage) {
    let runtime = stage.node(patient()).await;
    stage.client.start_orchestration("order-1", "Approved", "").await.unwrap();
    stage.explained("order-1", "waits for event").await;
    runtime.shutdown(None).await;
    let old = SemverRange::new(Version::new(0, 0, 1), Version::new(0, 0, 2));
    let runtime = stage.node(RuntimeOptions { supported_replay_versions: Some(old), ..patient() }).await;
    stage.client.raise_event("order-1", "Approval", "yes").await.unwrap();
    let lines = stage.explained("order-1", "no live node replays version ").await;
    assert!(lines[0].ends_with("; they replay >=0.0.1, <=0.0.2"), "{lines:?}");
    runtime.shutdown(None).await;
}

async fn a_start_that_became_poison(stage: Stage) {
    let runtime = stage.node(quick_options()).await;
    stage.client.start_orchestration("order-1", "Unheard", "").await.unwrap();
    ended(&stage.client, "order-1").await;
    let lines = stage.client.explain("order-1").await.unwrap().lines();
    assert!(lines[0].contains("poison: orchestration order-1 exceeded 4 attempts (max 3): "), "{lines:?}");
    runtime.shutdown(None).await;
}
