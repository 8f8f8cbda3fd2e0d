//! Ways out of the backoff other than a handler or poison: cancel, delete.

use std::time::Duration;

use duroxide::{
    AppErrorKind, Client, ClientError, ErrorDetails, EventKind, OrchestrationStatus, RuntimeOptions,
    runtime::UnregisteredBackoffConfig,
};

use crate::{
    bounced, bounces, callers,
    fixture::{File, ended, failure, node, quick_options},
    no_activities, no_orchestrations,
};

/// A backoff that is over soon, but attempts that are not.
fn patient_options() -> RuntimeOptions {
    RuntimeOptions {
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(50),
            max_delay: Duration::from_millis(50),
        },
        max_attempts: 10_000,
        ..quick_options()
    }
}

/// S0.A4, 6.3: no handler is needed to cancel.
#[tokio::test]
async fn cancelling_during_backoff_ends_the_instance_as_cancelled() {
    let file = File::new();
    let store = file.open().await;
    let runtime = node(&store, no_activities(), no_orchestrations(), patient_options()).await;
    let client = Client::new(store);

    client.start_orchestration("ghost", "NoSuchOrchestration", "x").await.unwrap();
    bounced(&runtime, 1).await;
    client.cancel_instance("ghost", "was a typo").await.unwrap();
    let details = failure(ended(&client, "ghost").await);

    let reason = AppErrorKind::Cancelled { reason: "was a typo".into() };
    assert!(matches!(&details, ErrorDetails::Application { kind, .. } if *kind == reason), "{details:?}");
    let kinds: Vec<_> = client.read_execution_history("ghost", 1).await.unwrap();
    let EventKind::OrchestrationStarted { version, .. } = &kinds[0].kind else { panic!("{kinds:?}") };
    assert_eq!(version, "unknown");
    runtime.shutdown(None).await;
}

/// S0.A2.
#[tokio::test]
async fn an_instance_that_ended_in_poison_can_be_deleted() {
    let file = File::new();
    let store = file.open().await;
    let runtime = node(&store, no_activities(), no_orchestrations(), quick_options()).await;
    let client = Client::new(store);
    client.start_orchestration("ghost", "NoSuchOrchestration", "x").await.unwrap();
    failure(ended(&client, "ghost").await);

    let deleted = client.delete_instance("ghost", false).await.unwrap();

    assert_eq!((deleted.instances_deleted, deleted.executions_deleted, deleted.events_deleted), (1, 1, 2));
    assert_eq!(client.get_orchestration_status("ghost").await.unwrap(), OrchestrationStatus::NotFound);
    runtime.shutdown(None).await;
}

/// S0.A5: the instance exists, its activity bounces; after the delete nothing comes back.
#[tokio::test]
async fn force_deleting_during_backoff_removes_the_instance_and_its_queued_items() {
    let file = File::new();
    let store = file.open().await;
    let runtime = node(&store, no_activities(), callers(), patient_options()).await;
    let client = Client::new(store);
    client.start_orchestration("caller", "Caller", "x").await.unwrap();
    bounced(&runtime, 1).await;

    let refused = client.delete_instance("caller", false).await.unwrap_err();
    assert!(matches!(refused, ClientError::InstanceStillRunning { .. }), "{refused:?}");
    let deleted = client.delete_instance("caller", true).await.unwrap();

    assert_eq!(deleted.instances_deleted, 1);
    // An instance started afterwards goes through both queues; its fetch comes after all rows of the old one.
    client.start_orchestration("later", "Caller", "x").await.unwrap();
    let before = bounces(&runtime);
    bounced(&runtime, before + 2).await;
    assert_eq!(client.get_orchestration_status("caller").await.unwrap(), OrchestrationStatus::NotFound);
    assert_eq!(client.list_all_instances().await.unwrap(), ["later"]);
    assert!(client.list_dead_letters(None).await.unwrap().is_empty());
    runtime.shutdown(None).await;
}
