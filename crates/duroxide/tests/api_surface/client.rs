//! A9: the client.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use duroxide::{
    Client, ClientError, DeleteInstanceResult, Event, ExecutionInfo, Explanation, InstanceFilter,
    InstanceInfo, InstancePage, InstanceQuery, InstanceSummary, InstanceTree, OrchestrationStatus,
    PruneOptions, PruneResult, QueueDepths, QueueSummary, QueuedWork, StartOutcome, SummaryRequest,
    SystemMetrics, SystemStats,
    providers::{DeadLetter, JoinedNode, Provider, ProviderError},
    runtime::{
        RuntimeLimits,
        env::{BoxFuture, Moment, Timer},
        observability::TraceContext,
    },
};

use crate::bounds;

type CRes<T> = Result<T, ClientError>;

/// A timer of the caller needs nothing but `duroxide` to be written.
struct Frozen;

impl Timer for Frozen {
    fn moment(&self) -> Moment {
        Moment::new(Duration::from_secs(1))
    }

    fn sleep_until(&self, deadline: Moment) -> BoxFuture {
        match deadline <= self.moment() {
            true => Box::pin(std::future::ready(())),
            false => Box::pin(std::future::pending()),
        }
    }
}

#[test]
fn a_client_takes_a_timer_of_the_caller() {
    let _: fn(Client, Arc<dyn Timer>) -> Client = Client::with_timer;
    let _: fn(Client) -> Client = |client| client.with_timer(Arc::new(Frozen));
}

#[test]
fn a_client_is_cheap_and_shareable() {
    bounds::clone::<Client>();
    bounds::send::<Client>();
    bounds::sync::<Client>();
    let _: fn(Arc<dyn Provider>) -> Client = Client::new;
    let _: fn(Arc<dyn Provider>, RuntimeLimits) -> Client = Client::with_limits;
    let _: fn(Client, TraceContext) -> Client = Client::with_trace_context;
    let _: fn(&Client) -> bool = Client::has_management_capability;
    let _: fn(duroxide::client::Client) -> Client = |client| client;
    let _: fn(duroxide::client::ClientError) -> ClientError = |error| error;
}

async fn starts_and_signals(client: &Client) -> CRes<()> {
    client.start_orchestration("i", String::from("o"), "x").await?;
    client.start_orchestration_versioned("i", "o", "1.0.0", "x").await?;
    client.start_orchestration_typed("i", "o", vec![1, 2]).await?;
    client.start_orchestration_versioned_typed::<u32>("i", "o", "1.0.0", 5).await?;
    let _: StartOutcome = client.start_orchestration_if_new("i", "o", "x").await?;
    let _: StartOutcome = client.start_orchestration_if_new_typed("i", "o", 5).await?;
    let _: StartOutcome = client.start_orchestration_versioned_if_new("i", "o", "1.0.0", "x").await?;
    client.raise_event("i", "e", "d").await?;
    client.raise_event_typed("i", "e", &5).await?;
    client.enqueue_event("i", "q", "d").await?;
    client.enqueue_event_typed("i", "q", &5).await?;
    #[expect(deprecated, reason = "it must keep compiling")]
    client.raise_event_persistent("i", "q", "d").await?;
    client.cancel_instance("i", "r").await
}

async fn reads_and_waits(client: &Client, some: Duration) -> CRes<()> {
    let _: OrchestrationStatus = client.get_orchestration_status("i").await?;
    let _: OrchestrationStatus = client.wait_for_orchestration("i", some).await?;
    let _: Result<u32, String> = client.wait_for_orchestration_typed::<u32>("i", some).await?;
    let _: OrchestrationStatus = client.wait_for_status_change("i", 0_u64, some, some).await?;
    let _: Option<String> = client.get_kv_value("i", "k").await?;
    let _: Option<u32> = client.get_kv_value_typed::<u32>("i", "k").await?;
    let _: HashMap<String, String> = client.get_kv_all_values("i").await?;
    let _: String = client.wait_for_kv_value("i", "k", some).await?;
    let _: u32 = client.wait_for_kv_value_typed::<u32>("i", "k", some).await?;
    let _: Option<SystemStats> = client.get_orchestration_stats("i").await?;
    Ok(())
}

async fn management(client: &Client) -> CRes<()> {
    let _: Vec<String> = client.list_all_instances().await?;
    let _: Vec<String> = client.list_instances_by_status("Running").await?;
    let _: InstancePage = client.query_instances(&InstanceQuery::default()).await?;
    let _: InstanceInfo = client.get_instance_info("i").await?;
    let _: InstanceInfo = client.find_instance("i").await?;
    let _: ExecutionInfo = client.get_execution_info("i", 1).await?;
    let _: Vec<u64> = client.list_executions("i").await?;
    let _: Vec<Event> = client.read_execution_history("i", 1).await?;
    let _: SystemMetrics = client.get_system_metrics().await?;
    let _: QueueDepths = client.get_queue_depths().await?;
    let _: Option<u64> = client.count_pending_instances().await?;
    let _: Explanation = client.explain("i").await?;
    let _: Option<QueuedWork> = client.read_queued_work("i").await?;
    let _: InstanceSummary = client.summarize_instances(&SummaryRequest::default()).await?;
    let _: QueueSummary = client.summarize_queues().await?;
    let _: Vec<JoinedNode> = client.list_nodes().await?;
    let _: InstanceTree = client.get_instance_tree("i").await?;
    let _: DeleteInstanceResult = client.delete_instance("i", false).await?;
    let _: DeleteInstanceResult = client.delete_instance_bulk(InstanceFilter::default()).await?;
    let _: PruneResult = client.prune_executions("i", PruneOptions::default()).await?;
    let _: PruneResult =
        client.prune_executions_bulk(InstanceFilter::default(), PruneOptions::default()).await?;
    let _: BTreeMap<String, u64> = client.get_running_duroxide_version_spread().await?;
    let _: Vec<DeadLetter> = client.list_dead_letters(Some(10)).await?;
    client.retry_dead_letter("1").await?;
    client.discard_dead_letter("1").await
}

/// Clients are used from spawned tasks.
#[test]
fn the_futures_can_move_between_threads() {
    let _ = |client: &'static Client| {
        bounds::value_is_send(&starts_and_signals(client));
        bounds::value_is_send(&reads_and_waits(client, Duration::ZERO));
        bounds::value_is_send(&management(client));
    };
}

#[test]
fn client_errors() {
    bounds::value::<ClientError>();
    bounds::error::<ClientError>();
    let _: fn(&ClientError) -> bool = ClientError::is_retryable;
    let texts = |error: ClientError| match error {
        ClientError::Provider(error) => error.to_string(),
        ClientError::ManagementNotAvailable | ClientError::Timeout => String::new(),
        ClientError::InvalidInput { message } => message,
        ClientError::InstanceStillRunning { instance_id }
        | ClientError::CannotDeleteSubOrchestration { instance_id }
        | ClientError::InstanceNotFound { instance_id } => instance_id,
    };
    assert_eq!(texts(ProviderError::permanent("op", "m").into()), "op: m");
    let id = || String::from("i");
    let displayed = [
        (
            ClientError::ManagementNotAvailable,
            "Management features not available - provider doesn't implement ProviderAdmin",
        ),
        (ClientError::InvalidInput { message: "m".into() }, "Invalid input: m"),
        (ClientError::Timeout, "Operation timed out"),
        (
            ClientError::InstanceStillRunning { instance_id: id() },
            "Instance i is still running. Use force=true or cancel first.",
        ),
        (
            ClientError::CannotDeleteSubOrchestration { instance_id: id() },
            "Cannot delete sub-orchestration i directly. Delete the root orchestration instead.",
        ),
        (ClientError::InstanceNotFound { instance_id: id() }, "Instance i not found"),
    ];
    for (error, text) in displayed {
        assert_eq!(error.to_string(), text);
        assert_eq!(error.is_retryable(), matches!(error, ClientError::Timeout));
    }
}
