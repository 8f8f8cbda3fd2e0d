//! A11, A12, A17.3: the provider traits, implemented with exactly their required methods.

mod filters;
#[cfg(feature = "fs")]
mod fs;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::{any::Any, collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use duroxide::{
    DeleteInstanceResult, Event, ExecutionInfo, InstanceFilter, InstanceInfo, InstancePage, InstanceQuery,
    InstanceSummary, PruneOptions, PruneResult, QueueDepths, QueueSummary, QueuedWork, SummaryRequest,
    SystemMetrics, SystemStats,
    providers::{
        ClaimToken, Clock, DequeuedItem, DispatcherCapabilityFilter, ExecutionMetadata, InstanceWatch,
        JoinedNode, LoadedExecution, MissingCapability, NextExecution, NodeAnnouncement, NodeCapability,
        NodeId, NodeMembership, OpenRound, OrchestrationClaim, OrchestrationFetch, OrchestrationItem,
        Provider, ProviderAdmin, ProviderError, RawEvent, Round, ScheduledActivityIdentifier,
        ScheduledTimerIdentifier, SessionFetchConfig, StartOutcome, StatusSnapshot, StrandedWork, TagFilter,
        Timestamp, WorkClaim, WorkFetch, WorkItem, run_round,
    },
};

use crate::bounds;

type PRes<T> = Result<T, ProviderError>;

/// The types for a store that serves waiting fetches, renews with a request to stop, or counts losses.
#[test]
fn every_type_in_a_signature_of_the_contract_has_a_public_path() {
    use duroxide::providers::{ActivityStop, Demand, Losses, RenewedWorkItem, TellOfDemand, Wanted};

    fn wanted(demand: &dyn Demand, tell: TellOfDemand) -> Wanted {
        demand.on_rise(tell);
        demand.wanted()
    }
    let _: fn(&dyn Demand, TellOfDemand) -> Wanted = wanted;
    assert!(!RenewedWorkItem::default().stop_requested);
    assert_eq!(Losses::default().lost, 0);
    let _: fn(&ExecutionMetadata) -> &Vec<ActivityStop> = |metadata| &metadata.stop_activities;
}

/// A third party's store, without the methods that were added later. Its signatures are S1.3, S1.6, S1.9,
/// S3.12, C2 and C3.
struct Plain;

#[async_trait]
impl Provider for Plain {
    async fn fetch_orchestration_item(
        &self,
        _lock_timeout: Duration,
        _poll_timeout: Duration,
        _filter: Option<&DispatcherCapabilityFilter>,
    ) -> PRes<Option<(OrchestrationItem, String, u32)>> {
        Ok(None)
    }
    async fn ack_orchestration_item(
        &self,
        _lock_token: &str,
        _execution_id: u64,
        _history_delta: Vec<Event>,
        _worker_items: Vec<WorkItem>,
        _orchestrator_items: Vec<WorkItem>,
        _metadata: ExecutionMetadata,
        _cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> PRes<()> {
        Ok(())
    }
    async fn abandon_orchestration_item(
        &self,
        _: &str,
        _: Option<Duration>,
        _ignore_attempt: bool,
    ) -> PRes<()> {
        Ok(())
    }
    async fn renew_orchestration_item_lock(&self, _token: &str, _extend_for: Duration) -> PRes<()> {
        Ok(())
    }
    async fn read(&self, _instance: &str) -> PRes<Vec<Event>> {
        Ok(Vec::new())
    }
    async fn read_with_execution(&self, _instance: &str, _execution_id: u64) -> PRes<Vec<Event>> {
        Ok(Vec::new())
    }
    async fn append_with_execution(&self, _: &str, _execution_id: u64, _: Vec<Event>) -> PRes<()> {
        Ok(())
    }
    async fn enqueue_for_worker(&self, _item: WorkItem) -> PRes<()> {
        Ok(())
    }
    async fn enqueue_for_orchestrator(&self, _item: WorkItem, _delay: Option<Duration>) -> PRes<()> {
        Ok(())
    }
    async fn fetch_work_item(
        &self,
        _lock_timeout: Duration,
        _poll_timeout: Duration,
        _session: Option<&SessionFetchConfig>,
        _tag_filter: &TagFilter,
    ) -> PRes<Option<(WorkItem, String, u32)>> {
        Ok(None)
    }
    async fn ack_work_item(&self, _token: &str, _completion: Option<WorkItem>) -> PRes<()> {
        Ok(())
    }
    async fn renew_work_item_lock(&self, _token: &str, _extend_for: Duration) -> PRes<()> {
        Ok(())
    }
    async fn abandon_work_item(&self, _: &str, _: Option<Duration>, _ignore_attempt: bool) -> PRes<()> {
        Ok(())
    }
    async fn renew_session_lock(&self, _owners: &[&str], _extend: Duration, _idle: Duration) -> PRes<usize> {
        Ok(0)
    }
    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> PRes<usize> {
        Ok(0)
    }
    async fn get_custom_status(&self, _: &str, _last_seen: u64) -> PRes<Option<(Option<String>, u64)>> {
        Ok(None)
    }
    async fn get_kv_value(&self, _instance: &str, _key: &str) -> PRes<Option<String>> {
        Ok(None)
    }
    async fn get_kv_all_values(&self, _instance: &str) -> PRes<HashMap<String, String>> {
        Ok(HashMap::new())
    }
    async fn get_instance_stats(&self, _instance: &str) -> PRes<Option<SystemStats>> {
        Ok(None)
    }
}

#[async_trait]
impl ProviderAdmin for Plain {
    async fn list_instances(&self) -> PRes<Vec<String>> {
        Ok(Vec::new())
    }
    async fn list_instances_by_status(&self, _status: &str) -> PRes<Vec<String>> {
        Ok(Vec::new())
    }
    async fn list_executions(&self, _instance: &str) -> PRes<Vec<u64>> {
        Ok(Vec::new())
    }
    async fn read_history_with_execution_id(&self, _instance: &str, _execution_id: u64) -> PRes<Vec<Event>> {
        Ok(Vec::new())
    }
    async fn read_history(&self, _instance: &str) -> PRes<Vec<Event>> {
        Ok(Vec::new())
    }
    async fn latest_execution_id(&self, _instance: &str) -> PRes<u64> {
        Ok(1)
    }
    async fn get_instance_info(&self, instance: &str) -> PRes<InstanceInfo> {
        Err(ProviderError::permanent("get_instance_info", format!("Instance {instance} not found")))
    }
    async fn get_execution_info(&self, _instance: &str, _execution_id: u64) -> PRes<ExecutionInfo> {
        Err("none".into())
    }
    async fn get_system_metrics(&self) -> PRes<SystemMetrics> {
        Ok(SystemMetrics::default())
    }
    async fn get_queue_depths(&self) -> PRes<QueueDepths> {
        Ok(QueueDepths::default())
    }
    async fn list_children(&self, _instance: &str) -> PRes<Vec<String>> {
        Ok(Vec::new())
    }
    async fn get_parent_id(&self, _instance: &str) -> PRes<Option<String>> {
        Ok(None)
    }
    async fn delete_instances_atomic(&self, _ids: &[String], _force: bool) -> PRes<DeleteInstanceResult> {
        Ok(DeleteInstanceResult::default())
    }
    async fn delete_instance_bulk(&self, _filter: InstanceFilter) -> PRes<DeleteInstanceResult> {
        Ok(DeleteInstanceResult::default())
    }
    async fn prune_executions(&self, _instance: &str, _options: PruneOptions) -> PRes<PruneResult> {
        Ok(PruneResult::default())
    }
    async fn prune_executions_bulk(
        &self,
        _filter: InstanceFilter,
        _options: PruneOptions,
    ) -> PRes<PruneResult> {
        Ok(PruneResult::default())
    }
}

#[test]
fn the_traits_are_object_safe_and_shareable() {
    fn any<T: Any + Send + Sync + ?Sized>() {}
    any::<dyn Provider>();
    any::<dyn ProviderAdmin>();
}

#[test]
fn plain_answers_are_the_documented_defaults() {
    let provider: &dyn Provider = &Plain;
    assert_eq!((provider.name(), provider.version()), ("unknown", "0.0.0"));
    assert!(provider.as_management_capability().is_none());
    assert!(!provider.commits_rounds());
    provider.set_max_attempts(3);
}

/// A17.3, with the documented defaults.
#[tokio::test]
async fn added_methods_have_default_bodies() {
    let provider: &dyn Provider = &Plain;
    provider.commit_round("token", Round::default()).await.unwrap();
    provider.commit_round_ref("token", &Round::default()).await.unwrap();
    assert_eq!(provider.read_status("i").await.unwrap(), None::<StatusSnapshot>);
    assert_eq!(provider.read_status_or_pending("i").await.unwrap(), None::<StatusSnapshot>);
    assert_eq!(provider.read_descriptor("i").await.unwrap(), None::<duroxide::OrchestrationDescriptor>);
    assert_eq!(provider.last_event_id("i", 1).await.unwrap(), None::<u64>);
    assert_eq!(provider.mailbox_holds("i", 1).await.unwrap(), None::<bool>);
    let start = WorkItem::CancelInstance { instance: "i".into(), reason: "any item".into() };
    let refused = provider.start_if_new(start).await.map(|_: StartOutcome| ()).unwrap_err();
    assert!(!refused.retryable && refused.message.contains("cannot tell"), "{refused}");
    provider.dead_letter_work_item("token", "reason").await.unwrap();
    let event = WorkItem::ExternalRaised { instance: "i".into(), name: "Paid".into(), data: String::new() };
    assert!(provider.enqueue_within(event, 0).await.unwrap(), "the default knows no full mailbox");
    let node = NodeAnnouncement {
        name: "a".into(),
        session_owners: Vec::new(),
        capability: NodeCapability::default(),
    };
    assert!(provider.join_node(&node).await.unwrap().is_none());

    let admin: &dyn ProviderAdmin = &Plain;
    assert!(admin.get_running_duroxide_version_spread().await.unwrap().is_empty());
    assert_eq!(admin.count_pending_instances().await.unwrap(), None::<u64>);
    assert!(admin.list_dead_letters(Some(10)).await.unwrap().is_empty());
    let InstancePage { instances, next } = admin.query_instances(&InstanceQuery::default()).await.unwrap();
    assert_eq!((instances.len(), next), (0, None::<String>));
    let refused = admin.retry_dead_letter("1").await.unwrap_err();
    assert_eq!((refused.message.as_str(), refused.retryable), ("dead letters are not supported", false));
    assert!(!admin.discard_dead_letter("1").await.unwrap_err().retryable);
    let refused = admin.read_raw_history("i", 1).await.map(|_: Vec<RawEvent>| ()).unwrap_err();
    assert_eq!((refused.message.as_str(), refused.retryable), ("raw history is not supported", false));
    let build = DispatcherCapabilityFilter::default_for_current_build();
    assert_eq!(admin.list_stuck_instances(Duration::ZERO, &build).await.unwrap(), Vec::<String>::new());
    assert_eq!(admin.list_nodes().await.unwrap(), Vec::<JoinedNode>::new());
    assert_eq!(admin.list_stranded_work(10).await.unwrap(), Vec::<StrandedWork>::new());
    assert_eq!(admin.read_queued_work("i").await.unwrap(), None::<QueuedWork>);
    let request = SummaryRequest { from_ms: 0, bucket_ms: 1, buckets: 2 };
    assert_eq!(admin.summarize_instances(&request).await.unwrap(), InstanceSummary::empty(&request));
    let refused = admin.summarize_queues().await.map(|_: QueueSummary| ()).unwrap_err();
    assert!(!refused.retryable && refused.message.contains("cannot tell"), "{refused}");
    assert_eq!(admin.get_instance_tree("i").await.unwrap().all_ids, ["i"]);
    let _: DeleteInstanceResult = admin.delete_instance("i", false).await.unwrap();
}

/// A17.3: the default bodies call the plain methods.
#[tokio::test]
async fn added_fetches_reads_and_renewals_have_default_bodies() {
    let provider: &dyn Provider = &Plain;
    assert!(!provider.serves_batches());
    let (lease, tags) = (Duration::from_secs(1), TagFilter::default());
    let fetch = OrchestrationFetch::new(lease, Duration::ZERO);
    let claims: Vec<OrchestrationClaim> = provider.fetch_orchestration_items(&fetch).await.unwrap();
    assert!(claims.is_empty());
    let fetch = WorkFetch::new(lease, Duration::ZERO, &tags);
    let claims: Vec<WorkClaim> = provider.fetch_work_items(&fetch).await.unwrap();
    assert!(claims.is_empty());
    let LoadedExecution { history, history_error, kv_snapshot } =
        provider.load_execution("i", 1).await.unwrap();
    assert!(history.is_empty() && history_error.is_none() && kv_snapshot.is_empty());
    assert!(!provider.renew_work_item("token", lease).await.unwrap().stop_requested);
    let _: fn(&dyn Provider) -> Option<Box<dyn InstanceWatch>> = |provider| provider.watch("i");
    let _: fn(&dyn Provider) -> Option<Arc<dyn Clock>> = |provider| provider.clock();
    let _: fn(&dyn Clock) -> Timestamp = |clock| clock.now();
}

/// The calls and answers of a provider that knows its nodes.
#[test]
fn nodes_can_be_named() {
    let capability = NodeCapability { activities: ["Charge".to_owned()].into(), ..NodeCapability::default() };
    assert!(capability.has_activity("Charge") && !capability.has_orchestration("Pay", None));
    let NodeAnnouncement { name, session_owners, capability } =
        NodeAnnouncement { name: "a".into(), session_owners: Vec::new(), capability };
    assert!(session_owners.is_empty());
    let node = JoinedNode { name, capability: Some(capability), started_at_ms: 7, seen_at_ms: 7 };
    assert!(node.is_there(7) && JoinedNode::THERE_FOR > Duration::ZERO);
    let _: fn(&str) -> &str = duroxide::providers::short_node_name;
    let _: &str = node.short_name();
    let JoinedNode { name, capability, started_at_ms: _, seen_at_ms: _ } = node;
    assert_eq!((name.as_str(), capability.map(|can| can.asks_for_registered_only)), ("a", Some(false)));
    let missing = MissingCapability::Activity { name: "Charge".into() };
    assert_eq!((missing.label(), NodeId(7).to_string().as_str()), ("activity", "7"));
    let _: fn(&dyn NodeMembership) -> NodeId = |membership| membership.node();
    let _: fn(&dyn NodeMembership, Option<&ClaimToken>) = |membership, claim| membership.note_starting(claim);
}

/// S4.4, C17.
#[test]
fn rounds_are_built_in_full() {
    bounds::value::<Round>();
    bounds::default::<Round>();
    bounds::value::<NextExecution>();
    bounds::value::<ScheduledTimerIdentifier>();
    bounds::eq::<ScheduledTimerIdentifier>();
    bounds::eq::<StatusSnapshot>();
    let next = NextExecution {
        execution_id: 2,
        history_delta: Vec::new(),
        worker_items: Vec::new(),
        orchestrator_items: Vec::new(),
        metadata: ExecutionMetadata::default(),
        start: WorkItem::CancelInstance { instance: "i".into(), reason: "r".into() },
    };
    let _ = Round {
        execution_id: 1,
        history_delta: Vec::new(),
        worker_items: Vec::new(),
        orchestrator_items: Vec::new(),
        metadata: ExecutionMetadata::default(),
        cancelled_activities: Vec::new(),
        cancelled_timers: vec![ScheduledTimerIdentifier {
            instance: "i".into(),
            execution_id: 1,
            timer_id: 2,
        }],
        next_execution: Some(next),
    };
    let _ = StatusSnapshot {
        execution_id: 1,
        terminal_event: None,
        custom_status: None,
        custom_status_version: 0,
    };
}

/// S4.3, S4.5
#[tokio::test]
async fn a_round_can_be_collected_in_a_closure() {
    bounds::value::<DequeuedItem>();
    let item = WorkItem::CancelInstance { instance: "i".into(), reason: "r".into() };
    let dequeued = DequeuedItem { item, token: "token".into() };
    let result = run_round(&Plain, "token", async |round: &mut OpenRound| {
        round.set_execution(1)?;
        round.append(Vec::new())?;
        round.enqueue([dequeued.item.clone()]);
        round.set_metadata(ExecutionMetadata::default());
        round.ack(&dequeued.token)?;
        Ok(7)
    });
    assert_eq!(result.await, Ok(7));
}
