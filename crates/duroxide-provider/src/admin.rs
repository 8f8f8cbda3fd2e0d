//! [`ProviderAdmin`]: the management calls of a store.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use async_trait::async_trait;
use duroxide_core::Event;

use crate::{
    DeadLetter, DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, InstanceFilter,
    InstanceInfo, InstancePage, InstanceQuery, InstanceSummary, InstanceTree, JoinedNode, ProviderError,
    PruneOptions, PruneResult, QueueDepths, QueueSummary, QueuedWork, RawEvent, StrandedWork, SummaryRequest,
    SystemMetrics,
    management::{scan, summary_scan},
};

/// Management calls of a provider.
#[async_trait]
pub trait ProviderAdmin: Any + Send + Sync {
    /// All instances, newest first.
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError>;

    /// Instances whose current execution has this status, newest first.
    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError>;

    /// A page of the instances that a query selects, newest first. A cursor that no page of this store had is a
    /// permanent error.
    ///
    /// The default lists all instances and reads each of them, for every page; ours seek.
    async fn query_instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        scan::page(self, query).await
    }

    /// The executions of an instance, ascending.
    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError>;

    /// The history of one execution.
    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError>;

    /// The history of the current execution.
    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError>;

    /// The current execution; 1 for an unknown instance.
    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError>;

    /// An instance; permanent `Instance {id} not found` for an unknown one.
    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError>;

    /// An execution; permanent `Execution {n} not found for instance {id}` for an unknown one.
    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError>;

    /// Counts over the whole store.
    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError>;

    /// How many instances have a queued start and no history yet; `None`, as by default, if the provider does not know.
    async fn count_pending_instances(&self) -> Result<Option<u64>, ProviderError> {
        Ok(None)
    }

    /// Unlocked rows in the queues.
    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError>;

    /// The direct children of an instance.
    async fn list_children(&self, instance: &str) -> Result<Vec<String>, ProviderError>;

    /// The parent of an instance; permanent `Instance {id} not found` for an unknown one.
    async fn get_parent_id(&self, instance: &str) -> Result<Option<String>, ProviderError>;

    /// Deletes these instances in one transaction. Without `force` none of them may be running. A child of one
    /// of them that is not in the list is a permanent error.
    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// An instance with all its descendants.
    async fn get_instance_tree(&self, instance: &str) -> Result<InstanceTree, ProviderError> {
        let mut all_ids = Vec::new();
        let mut seen = BTreeSet::from([instance.to_owned()]);
        let mut to_visit = VecDeque::from([instance.to_owned()]);
        while let Some(id) = to_visit.pop_front() {
            let children = self.list_children(&id).await?;
            to_visit.extend(children.into_iter().filter(|child| seen.insert(child.clone())));
            all_ids.push(id);
        }
        Ok(InstanceTree { root_id: instance.to_owned(), all_ids })
    }

    /// Deletes a root instance with all its descendants. A running one needs `force`. No later read or claim finds any
    /// of them; their rows may be removed step by step until the call returns, and after it if the call stops.
    async fn delete_instance(
        &self,
        instance: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        if self.get_parent_id(instance).await?.is_some() {
            let message =
                format!("Cannot delete sub-orchestration {instance} directly. Delete root instance instead.");
            return Err(ProviderError::permanent("delete_instance", message));
        }
        let tree = self.get_instance_tree(instance).await?;
        self.delete_instances_atomic(&tree.all_ids, force).await
    }

    /// Deletes ended roots that match the filter, each with its descendants.
    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// Removes old executions of one instance.
    async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError>;

    /// Removes old executions of every instance that matches the filter, running ones included.
    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError>;

    /// How many running instances are pinned to each duroxide version, by the stamp of their start.
    async fn get_running_duroxide_version_spread(&self) -> Result<BTreeMap<String, u64>, ProviderError> {
        let mut spread = BTreeMap::new();
        for instance in self.list_instances_by_status("Running").await? {
            if let Some(first) = self.read_history(&instance).await?.into_iter().next() {
                *spread.entry(first.duroxide_version).or_default() += 1;
            }
        }
        Ok(spread)
    }

    /// Messages that no node could process, oldest first.
    async fn list_dead_letters(&self, limit: Option<u32>) -> Result<Vec<DeadLetter>, ProviderError> {
        let _ = limit;
        Ok(Vec::new())
    }

    /// Puts a dead letter back into its queue, visible, with attempt count 0.
    async fn retry_dead_letter(&self, id: &str) -> Result<(), ProviderError> {
        let _ = id;
        Err(ProviderError::permanent("retry_dead_letter", "dead letters are not supported"))
    }

    /// Deletes a dead letter.
    async fn discard_dead_letter(&self, id: &str) -> Result<(), ProviderError> {
        let _ = id;
        Err(ProviderError::permanent("discard_dead_letter", "dead letters are not supported"))
    }

    /// The stored history of one execution, including undecodable events.
    async fn read_raw_history(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<RawEvent>, ProviderError> {
        let _ = (instance, execution_id);
        Err(ProviderError::permanent("read_raw_history", "raw history is not supported"))
    }

    /// Instances with visible messages older than `older_than` that the filter does not pass.
    async fn list_stuck_instances(
        &self,
        older_than: Duration,
        filter: &DispatcherCapabilityFilter,
    ) -> Result<Vec<String>, ProviderError> {
        let _ = (older_than, filter);
        Ok(Vec::new())
    }

    /// Ready work that none of the joined nodes can take (see [`Provider::join_node`](crate::Provider::join_node)), at most
    /// `limit` instances and as many activities. Empty if no node has joined.
    async fn list_stranded_work(&self, limit: u32) -> Result<Vec<StrandedWork>, ProviderError> {
        let _ = limit;
        Ok(Vec::new())
    }

    /// The nodes that have joined and not ended, with their capabilities. The default body returns none.
    async fn list_nodes(&self) -> Result<Vec<JoinedNode>, ProviderError> {
        Ok(Vec::new())
    }

    /// The lock, messages, activities and dead letters of one instance, bounded. `None`, as by default, if the store has
    /// no row of it.
    ///
    /// People ask this of one instance after the other, so it must be cheap: ours read by index.
    async fn read_queued_work(&self, instance: &str) -> Result<Option<QueuedWork>, ProviderError> {
        let _ = instance;
        Ok(None)
    }

    /// Counts by name, version and status, and what began and ended over time. Instances that are pending do not count. It
    /// reads every instance, which is slow on a large store: call it seldom and cache the answer.
    ///
    /// The default makes two reads of each instance; ours make one statement.
    async fn summarize_instances(&self, request: &SummaryRequest) -> Result<InstanceSummary, ProviderError> {
        summary_scan::summarize(self, request).await
    }

    /// Counts of queued items by the capability that they need of a node.
    ///
    /// The default is a permanent error: the plain methods do not show the queues.
    async fn summarize_queues(&self) -> Result<QueueSummary, ProviderError> {
        Err(ProviderError::permanent("summarize_queues", "this store cannot tell what waits in its queues"))
    }
}
