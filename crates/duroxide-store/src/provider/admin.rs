//! The management calls, one by one.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use async_trait::async_trait;
use duroxide_core::Event;
use duroxide_provider::{
    DeadLetter, DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, InstanceFilter,
    InstanceInfo, InstancePage, InstanceQuery, InstanceSummary, JoinedNode, OrchestrationFetch,
    ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths, QueueSummary, QueuedWork, RawEvent,
    StrandedWork, SummaryRequest, SystemMetrics,
    store::{InstanceFetch, Op, ReadyInstance, Refusal, RunningVersion, StoredNode},
};

use super::{
    StoreProvider, cursor,
    decode::{HistoryOf, raw_event, stamped_version},
};
use crate::nodes::stranded;

/// How many instances are searched for stuck ones: those that have been ready longest.
const STUCK_MAX: usize = 10_000;

#[async_trait]
impl ProviderAdmin for StoreProvider {
    // ---- reads ----------------------------------------------------------------------------------------------

    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        self.query("list_instances", |reader| reader.instances(None)).await
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        let status = status.to_owned();
        self.query("list_instances_by_status", move |reader| reader.instances(Some(&status))).await
    }

    async fn query_instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        let below = query.cursor.as_deref().map(cursor::row_of).transpose()?;
        let (size, query) = (query.page_size(), query.clone());
        // Reads one row more than the page holds, to know whether another page follows.
        let mut selected = self
            .query("query_instances", move |reader| reader.select_instances(&query, below, size + 1))
            .await?;
        let more = selected.len() > size;
        selected.truncate(size);
        let next = selected.last().filter(|_| more).map(|last| cursor::behind(last.row));
        Ok(InstancePage { instances: selected.into_iter().map(|selected| selected.info).collect(), next })
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        let instance = instance.to_owned();
        self.query("list_executions", move |reader| reader.executions(&instance)).await
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.read_execution("read_history_with_execution_id", HistoryOf { instance, execution_id }).await
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.read_current("read_history", instance).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        let instance = instance.to_owned();
        let current =
            self.query("latest_execution_id", move |reader| reader.current_execution(&instance)).await?;
        Ok(current.unwrap_or(duroxide_core::INITIAL_EXECUTION_ID))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        self.info("get_instance_info", instance).await
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        const OPERATION: &str = "get_execution_info";
        let id = instance.to_owned();
        let info = self.query(OPERATION, move |reader| reader.execution_info(&id, execution_id)).await?;
        info.ok_or_else(|| {
            let message = format!("Execution {execution_id} not found for instance {instance}");
            ProviderError::permanent(OPERATION, message)
        })
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        self.query("get_system_metrics", |reader| reader.system_metrics()).await
    }

    async fn count_pending_instances(&self) -> Result<Option<u64>, ProviderError> {
        self.query("count_pending_instances", |reader| reader.pending_instances()).await.map(Some)
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        self.query("get_queue_depths", |reader| reader.queue_depths()).await
    }

    async fn list_children(&self, instance: &str) -> Result<Vec<String>, ProviderError> {
        let instance = instance.to_owned();
        self.query("list_children", move |reader| reader.children(&instance)).await
    }

    async fn get_parent_id(&self, instance: &str) -> Result<Option<String>, ProviderError> {
        Ok(self.info("get_parent_id", instance).await?.parent_instance_id)
    }

    async fn get_running_duroxide_version_spread(&self) -> Result<BTreeMap<String, u64>, ProviderError> {
        let versions =
            self.query("get_running_duroxide_version_spread", |reader| reader.running_versions()).await?;
        let mut spread = BTreeMap::new();
        for version in versions {
            let version = match version {
                RunningVersion::Pinned(pinned) => pinned.to_string(),
                RunningVersion::Unpinned { first_event } => stamped_version(&first_event),
            };
            *spread.entry(version).or_default() += 1;
        }
        Ok(spread)
    }

    async fn list_dead_letters(&self, limit: Option<u32>) -> Result<Vec<DeadLetter>, ProviderError> {
        self.query("list_dead_letters", move |reader| reader.dead_letters(limit)).await
    }

    async fn read_raw_history(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<RawEvent>, ProviderError> {
        let instance = instance.to_owned();
        let rows = self
            .query("read_raw_history", move |reader| reader.history(&instance, Some(execution_id)))
            .await?;
        Ok(rows.into_iter().map(raw_event).collect())
    }

    async fn list_stuck_instances(
        &self,
        older_than: Duration,
        filter: &DispatcherCapabilityFilter,
    ) -> Result<Vec<String>, ProviderError> {
        let request = OrchestrationFetch::new(Duration::ZERO, Duration::ZERO).with_filter(Some(filter));
        let (fetch, now) = (InstanceFetch::new(&request), self.submitter.now());
        let ready = self
            .query("list_stuck_instances", move |reader| {
                reader.ready_instances(&|needs| !fetch.accepts(None, None, needs.pinned), STUCK_MAX)
            })
            .await?;
        let old_enough = |instance: &ReadyInstance| now.saturating_since(instance.since) >= older_than;
        Ok(ready.into_iter().filter(old_enough).map(|ready| ready.instance).collect())
    }

    async fn list_stranded_work(&self, limit: u32) -> Result<Vec<StrandedWork>, ProviderError> {
        let (now, max) = (self.submitter.now(), usize::try_from(limit).unwrap_or(usize::MAX));
        let locks = self.joining.locks();
        self.query("list_stranded_work", move |reader| {
            let nodes = reader.nodes()?;
            stranded::find(reader, &nodes, locks.as_deref(), &BTreeSet::new(), now, max)
        })
        .await
    }

    async fn list_nodes(&self) -> Result<Vec<JoinedNode>, ProviderError> {
        let nodes = self.query("list_nodes", |reader| reader.nodes()).await?;
        let joined = nodes.into_iter().map(|node: StoredNode| JoinedNode {
            name: node.name,
            capability: serde_json::from_str(&node.capability).ok(),
            started_at_ms: node.started_at.as_millis(),
            seen_at_ms: node.seen_at.as_millis(),
        });
        Ok(joined.collect())
    }

    async fn read_queued_work(&self, instance: &str) -> Result<Option<QueuedWork>, ProviderError> {
        let (instance, now) = (instance.to_owned(), self.submitter.now());
        self.query("read_queued_work", move |reader| reader.queued_work(&instance, now)).await
    }

    async fn summarize_instances(&self, request: &SummaryRequest) -> Result<InstanceSummary, ProviderError> {
        let request = request.clone();
        self.query("summarize_instances", move |reader| reader.instance_summary(&request)).await
    }

    async fn summarize_queues(&self) -> Result<QueueSummary, ProviderError> {
        let now = self.submitter.now();
        self.query("summarize_queues", move |reader| reader.queue_summary(now)).await
    }

    // ---- changes --------------------------------------------------------------------------------------------

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let op = Op::DeleteInstances { ids: ids.to_vec(), force };
        self.delete_in_steps("delete_instances_atomic", op).await
    }

    async fn delete_instance(
        &self,
        instance: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let op = Op::DeleteTree { instance: instance.to_owned(), force };
        self.delete_in_steps("delete_instance", op).await
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.delete_selected_in_steps("delete_instance_bulk", filter).await
    }

    async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.prune_in_steps("prune_executions", instance, options).await
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.prune_selected_in_steps("prune_executions_bulk", filter, options).await
    }

    async fn retry_dead_letter(&self, id: &str) -> Result<(), ProviderError> {
        self.submitter
            .apply("retry_dead_letter", Ok(Op::RetryDeadLetter { id: id.to_owned() }))
            .await
            .map(|_| ())
    }

    async fn discard_dead_letter(&self, id: &str) -> Result<(), ProviderError> {
        self.submitter
            .apply("discard_dead_letter", Ok(Op::DiscardDeadLetter { id: id.to_owned() }))
            .await
            .map(|_| ())
    }
}

impl StoreProvider {
    async fn info(&self, operation: &str, instance: &str) -> Result<InstanceInfo, ProviderError> {
        let id = instance.to_owned();
        let info = self.query(operation, move |reader| reader.instance_info(&id)).await?;
        info.ok_or_else(|| {
            Refusal::InstanceNotFound { instance: instance.to_owned() }.into_provider_error(operation)
        })
    }
}
