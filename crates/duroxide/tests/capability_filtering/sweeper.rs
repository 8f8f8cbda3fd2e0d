//! Work that no node can take: it is found, reported, and ended if that was asked for.

use std::time::Duration;

use duroxide::{
    ActivityContext, Client, ConfigErrorKind, ErrorDetails, OrchestrationContext, OrchestrationRegistry,
    OrchestrationStatus, RuntimeOptions, SemverRange,
    providers::{DispatcherCapabilityFilter, TagFilter},
    runtime::registry::ActivityRegistry,
};
use duroxide_provider::{NodeAnnouncement, NodeCapability};
use semver::Version;

use crate::{
    fixture::{File, ended, failure, logs::Logs, node, output, quick_options},
    no_activities, pinned, supporting, waiting,
};

const SOON: Option<Duration> = Some(Duration::from_millis(200));

/// The missing capability in the error.
#[track_caller]
fn missing(details: &ErrorDetails, resource: &str) -> String {
    match details {
        ErrorDetails::Configuration {
            kind: ConfigErrorKind::UnsupportedVersion,
            resource: of,
            message: Some(message),
        } if of == resource => message.clone(),
        other => panic!("expected an unsupported version of {resource}, got {other:?}"),
    }
}

/// S3.48, 17.5: an execution that no node can replay ends with the reason. No node fetched it before, so it counts one attempt.
#[tokio::test]
async fn an_execution_that_no_node_can_replay_is_ended_after_its_time() {
    let file = File::new();
    let store = file.open().await;
    pinned(&store, "old", "0.0.1").await;
    pinned(&store, "fine", "0.2.0").await;
    let options = RuntimeOptions { sweep_unsupported_after: SOON, ..supporting("0.1.0", "0.9.0") };
    let runtime = node(&store, no_activities(), waiting(), options).await;
    let client = Client::new(store);
    let details = failure(ended(&client, "old").await);
    assert_eq!(
        missing(&details, "old"),
        "work item could not be processed on this node (orchestration not registered here, or execution \
         history is unsupported): execution pinned at 0.0.1, supported >=0.1.0, <=0.9.0, attempt 1 (max 3)"
    );
    assert_eq!(output(ended(&client, "fine").await), "went");
    runtime.shutdown(None).await;
}

/// S3.48: the sweeper does not end work that another node can take.
#[tokio::test]
async fn an_execution_that_another_node_can_replay_is_not_ended() {
    let file = File::new();
    let store = file.open().await;
    pinned(&store, "lost", "0.0.1").await;
    pinned(&store, "others", "0.5.0").await;
    let other = NodeAnnouncement {
        name: "another-node".to_owned(),
        capability: NodeCapability {
            replay_versions: vec![SemverRange::new(Version::new(0, 1, 0), Version::new(0, 8, 0))],
            ..NodeCapability::default()
        },
        ..NodeAnnouncement::default()
    };
    let other = store.join_node(&other).await.unwrap().expect("the store knows nodes");
    let options = RuntimeOptions { sweep_unsupported_after: SOON, ..supporting("0.9.0", "0.9.9") };
    let runtime = node(&store, no_activities(), waiting(), options).await;
    let client = Client::new(store);
    failure(ended(&client, "lost").await);
    let status = client.get_orchestration_status("others").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Running { .. }), "{status:?}");

    // When the last node that can replay it leaves, its time begins.
    drop(other);
    failure(ended(&client, "others").await);
    runtime.shutdown(None).await;
}

/// S3.3, S3.11, S3.48: with the handler filter an orchestration that no node has registered is found too.
#[tokio::test]
async fn an_orchestration_that_no_node_has_is_ended_after_its_time() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    client.start_orchestration("misspelt", "Wiats", "").await.unwrap();
    let options =
        RuntimeOptions { handler_capability_filter: true, sweep_unsupported_after: SOON, ..quick_options() };
    let runtime = node(&store, no_activities(), waiting(), options).await;
    let message = missing(&failure(ended(&client, "misspelt").await), "misspelt");
    assert!(message.contains("orchestration Wiats@latest is not registered on any node"), "{message}");
    runtime.shutdown(None).await;
}

/// S3.3, S3.48: so are activities, by name and by tag. They fail, and with them their orchestrations.
#[tokio::test]
async fn activities_that_no_node_takes_fail_after_their_time() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations = OrchestrationRegistry::builder()
        .register("CallsNobody", |ctx: OrchestrationContext, _input: String| async move {
            ctx.schedule_activity("Nobodys", "").await
        })
        .register("CallsTagged", |ctx: OrchestrationContext, _input: String| async move {
            ctx.schedule_activity("Echo", "").with_tag("gpu").await
        })
        .register("Calls", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Echo", input).await
        })
        .build();
    let activities = ActivityRegistry::builder()
        .register("Echo", |_ctx: ActivityContext, input: String| async move { Ok(input) })
        .build();
    let options = RuntimeOptions {
        handler_capability_filter: true,
        sweep_unsupported_after: SOON,
        worker_tag_filter: TagFilter::DefaultOnly,
        ..quick_options()
    };
    let runtime = node(&store, activities, orchestrations, options).await;
    let client = Client::new(store);
    for name in ["CallsNobody", "CallsTagged", "Calls"] {
        client.start_orchestration(name, name, "fine").await.unwrap();
    }
    let text = missing(&failure(ended(&client, "CallsNobody").await), "Nobodys");
    assert!(text.contains("activity Nobodys is not registered on any node"), "{text}");
    let text = missing(&failure(ended(&client, "CallsTagged").await), "Echo");
    assert!(text.contains("no node takes activities with tag gpu"), "{text}");
    assert_eq!(output(ended(&client, "Calls").await), "fine");
    let depths = client.get_queue_depths().await.unwrap();
    assert_eq!(depths.worker_queue, 0, "nothing is left of them");
    runtime.shutdown(None).await;
}

/// S3.48: the log names the instance and the missing capability.
#[tokio::test]
async fn stranded_work_is_reported() {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let store = file.open().await;
    pinned(&store, "old", "0.0.1").await;
    let options = RuntimeOptions { sweep_unsupported_after: SOON, ..supporting("0.1.0", "0.9.0") };
    let runtime = node(&store, no_activities(), waiting(), options).await;
    failure(ended(&Client::new(store), "old").await);
    runtime.shutdown(None).await;
    let reports = logs.with("no node can take this work");
    assert_eq!(reports.len(), 1, "once: {reports:?}");
    assert_eq!(reports[0].field("instance"), "old");
    assert_eq!(reports[0].field("missing"), "execution pinned at 0.0.1, supported >=0.1.0, <=0.9.0");
}

/// S2.16: a cancellation ends an execution that no node can replay, if that is allowed. Its history is not replayed; it may
/// be one that this build cannot even read.
#[tokio::test]
async fn a_cancellation_needs_no_replay_if_that_is_allowed() {
    let file = File::new();
    let store = file.open().await;
    pinned(&store, "old", "99.0.0").await;
    pinned(&store, "strange", "99.0.0").await;
    pinned(&store, "left", "99.0.0").await;
    file.overwrite_event("strange", 2, r#"{"event_id":2,"kind":"FromTheFuture"}"#);
    let client = Client::new(store.clone());
    let options = RuntimeOptions { cancel_only_fallback: true, ..supporting("0.1.0", "0.9.0") };
    let runtime = node(&store, no_activities(), waiting(), options).await;
    for instance in ["old", "strange"] {
        client.cancel_instance(instance, "enough").await.unwrap();
        let details = failure(ended(&client, instance).await);
        assert!(details.display_message().contains("enough"), "{instance}: {details:?}");
    }
    let status = client.get_orchestration_status("left").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Running { .. }), "nobody cancelled it: {status:?}");
    runtime.shutdown(None).await;
}

/// A17.3: the question an operator asks about one filter.
#[tokio::test]
async fn instances_that_a_filter_does_not_pass_are_listed_by_age() {
    let file = File::new();
    let store = file.open().await;
    pinned(&store, "old", "0.0.1").await;
    pinned(&store, "fine", "0.5.0").await;
    let filter = DispatcherCapabilityFilter {
        supported_duroxide_versions: vec![SemverRange::new(Version::new(0, 1, 0), Version::new(0, 9, 0))],
    };
    let admin = store.as_management_capability().unwrap();
    assert_eq!(admin.list_stuck_instances(Duration::ZERO, &filter).await.unwrap(), ["old"]);
    assert!(admin.list_stuck_instances(Duration::from_secs(3_600), &filter).await.unwrap().is_empty());
}
