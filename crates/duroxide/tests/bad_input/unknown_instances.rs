//! Instances that do not exist.

use std::time::Duration;

use duroxide::{
    Client, ClientError, InstanceFilter, OrchestrationRegistry, OrchestrationStatus, PruneOptions,
    runtime::registry::ActivityRegistry,
};

use crate::fixture::{File, ended, node, output, quick_options};

#[tokio::test]
async fn reads_say_that_there_is_nothing() {
    let file = File::new();
    let client = Client::new(file.open().await);
    assert_eq!(client.get_orchestration_status("ghost").await.unwrap(), OrchestrationStatus::NotFound);
    assert!(client.read_execution_history("ghost", 1).await.unwrap().is_empty());
    assert!(client.list_executions("ghost").await.unwrap().is_empty());
    assert_eq!(client.get_kv_value("ghost", "k").await.unwrap(), None);
    assert_eq!(client.get_orchestration_stats("ghost").await.unwrap(), None);
    let error = client.get_instance_info("ghost").await.unwrap_err();
    assert!(error.to_string().contains("Instance ghost not found") && !error.is_retryable(), "{error}");
    let error = client.get_execution_info("ghost", 4).await.unwrap_err();
    assert!(error.to_string().contains("Execution 4 not found for instance ghost"), "{error}");
    let error = client.delete_instance("ghost", true).await.unwrap_err();
    assert!(matches!(error, ClientError::InstanceNotFound { .. }), "{error:?}");
    let filter = InstanceFilter { instance_ids: Some(vec!["ghost".into()]), ..InstanceFilter::default() };
    assert_eq!(client.delete_instance_bulk(filter.clone()).await.unwrap().instances_deleted, 0);
    let pruned = client.prune_executions_bulk(filter, PruneOptions::default()).await.unwrap();
    assert_eq!(pruned.executions_deleted, 0);
}

/// 20.2: an instance that does not exist yet is waited for, up to the timeout.
#[tokio::test]
async fn waiting_for_nothing_times_out() {
    let file = File::new();
    let client = Client::new(file.open().await);
    let waited = client.wait_for_orchestration("ghost", Duration::from_millis(20)).await;
    assert!(matches!(waited, Err(ClientError::Timeout)), "{waited:?}");
}

/// 16.11, B1: signals for an id that does not exist are kept for a start, and do not block other instances.
#[tokio::test]
async fn signals_to_unknown_ids_do_not_block() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(store.clone());
    client.cancel_instance("ghost", "came too early").await.unwrap();
    client.raise_event("ghost", "e", "1").await.unwrap();
    client.start_orchestration("healthy", "Echo", "x").await.unwrap();

    let orchestrations =
        OrchestrationRegistry::builder().register("Echo", |_ctx, input| async move { Ok(input) }).build();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, quick_options()).await;
    assert_eq!(output(ended(&client, "healthy").await), "x");

    client.start_orchestration("ghost", "Echo", "x").await.unwrap();
    let OrchestrationStatus::Failed { details, .. } = ended(&client, "ghost").await else {
        panic!("the cancellation waited for the start")
    };
    assert_eq!(details.display_message(), "canceled: came too early");
    runtime.shutdown(None).await;
}
