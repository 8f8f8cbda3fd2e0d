//! Management calls of the client: listing, reading, deleting and pruning instances.

use std::collections::BTreeMap;

use duroxide_core::{Event, SystemStats};
use duroxide_provider::{
    DeadLetter, DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstancePage,
    InstanceQuery, InstanceSummary, InstanceTree, JoinedNode, ProviderAdmin, ProviderError, PruneOptions,
    PruneResult, QueueDepths, QueueSummary, QueuedWork, SummaryRequest, SystemMetrics,
};

use super::{Client, ClientError, export::without_trace};

/// All calls except the first two fail with `ManagementNotAvailable` if the store has no management calls.
impl Client {
    /// Whether the store has management calls.
    pub fn has_management_capability(&self) -> bool {
        self.store.as_management_capability().is_some()
    }

    /// Sizes of an instance's current execution; `None` for an unknown instance.
    ///
    /// # Errors
    /// The store's error.
    pub async fn get_orchestration_stats(&self, instance: &str) -> Result<Option<SystemStats>, ClientError> {
        Ok(self.store.get_instance_stats(instance).await?)
    }

    /// All instances, newest first.
    ///
    /// # Errors
    /// The store's error.
    pub async fn list_all_instances(&self) -> Result<Vec<String>, ClientError> {
        Ok(self.admin()?.list_instances().await?)
    }

    /// Instances whose current execution has this status, newest first.
    ///
    /// # Errors
    /// `InvalidInput` for a status that no instance can have; otherwise the store's error.
    pub async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ClientError> {
        check_status(status)?;
        Ok(self.admin()?.list_instances_by_status(status).await?)
    }

    /// A page of the instances that a query selects, newest first.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use duroxide_provider::InstanceQuery;
    /// # use duroxide_runtime::{Client, ClientError};
    /// # use duroxide_store::MemoryProvider;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let client = Client::new(Arc::new(MemoryProvider::new()));
    /// let mut query = InstanceQuery::default().status("Failed").id_prefix("order-").limit(50);
    /// loop {
    ///     let page = client.query_instances(&query).await?;
    ///     for order in &page.instances {
    ///         println!("{} failed: {:?}", order.instance_id, order.output);
    ///     }
    ///     let Some(next) = page.next else { break };
    ///     query = query.after(next);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a cursor that no page of this store had, or a status that no instance can have; otherwise the
    /// store's error.
    pub async fn query_instances(&self, query: &InstanceQuery) -> Result<InstancePage, ClientError> {
        query.status.as_deref().map_or(Ok(()), check_status)?;
        let page = self.admin()?.query_instances(query).await;
        page.map_err(|error| {
            if error.is_invalid_cursor() {
                return ClientError::invalid_input(error.message);
            }
            error.into()
        })
    }

    /// The store's record of an instance.
    ///
    /// # Errors
    /// `InstanceNotFound`, or the store's error.
    pub async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ClientError> {
        match self.admin()?.get_instance_info(instance).await {
            // The store's error is only a text, so a second call finds out whether the instance exists.
            Err(error) if !error.is_retryable() => match self.store.read_status(instance).await? {
                None => Err(ClientError::InstanceNotFound { instance_id: instance.to_owned() }),
                // A node may have begun it between the two calls.
                Some(_) => Ok(self.admin()?.get_instance_info(instance).await?),
            },
            info => Ok(info?),
        }
    }

    /// The store's record of an execution.
    ///
    /// # Errors
    /// The store's error; for an unknown execution too.
    pub async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ClientError> {
        Ok(self.admin()?.get_execution_info(instance, execution_id).await?)
    }

    /// The executions of an instance, ascending.
    ///
    /// # Errors
    /// The store's error.
    pub async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ClientError> {
        Ok(self.admin()?.list_executions(instance).await?)
    }

    /// The history of one execution.
    ///
    /// # Errors
    /// The store's error.
    pub async fn read_execution_history(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ClientError> {
        Ok(without_trace(self.admin()?.read_history_with_execution_id(instance, execution_id).await?))
    }

    /// Counts over the whole store.
    ///
    /// # Errors
    /// The store's error.
    pub async fn get_system_metrics(&self) -> Result<SystemMetrics, ClientError> {
        Ok(self.admin()?.get_system_metrics().await?)
    }

    /// The number of instances that were started and that no node has begun to run; `None` if the store does not know
    /// it.
    ///
    /// # Errors
    /// The store's error.
    pub async fn count_pending_instances(&self) -> Result<Option<u64>, ClientError> {
        Ok(self.admin()?.count_pending_instances().await?)
    }

    /// Unlocked rows in the queues.
    ///
    /// # Errors
    /// The store's error.
    pub async fn get_queue_depths(&self) -> Result<QueueDepths, ClientError> {
        Ok(self.admin()?.get_queue_depths().await?)
    }

    /// Queued work, grouped by the capability that it needs.
    ///
    /// # Errors
    /// The store's error; a permanent one if the store does not support it.
    pub async fn summarize_queues(&self) -> Result<QueueSummary, ClientError> {
        Ok(self.admin()?.summarize_queues().await?)
    }

    /// Counts instances by name, version and status, and by the times they began and ended. Reads all instances, which is
    /// costly on a large store, so call it seldom and keep the answer.
    ///
    /// # Errors
    /// `InvalidInput` for buckets of no length, or more than [`SummaryRequest::BUCKETS_MAX`]; otherwise the store's error.
    pub async fn summarize_instances(
        &self,
        request: &SummaryRequest,
    ) -> Result<InstanceSummary, ClientError> {
        check_buckets(request)?;
        Ok(self.admin()?.summarize_instances(request).await?)
    }

    /// The lock, messages, activities and dead letters of one instance, bounded; `None` if the store has no row of it, or
    /// does not show them. [`Self::explain`] interprets them.
    ///
    /// # Errors
    /// The store's error.
    pub async fn read_queued_work(&self, instance: &str) -> Result<Option<QueuedWork>, ClientError> {
        Ok(self.admin()?.read_queued_work(instance).await?)
    }

    /// The nodes that have joined the store and not ended, with their capabilities.
    ///
    /// # Errors
    /// The store's error.
    pub async fn list_nodes(&self) -> Result<Vec<JoinedNode>, ClientError> {
        Ok(self.admin()?.list_nodes().await?)
    }

    /// An instance with all its descendants.
    ///
    /// # Errors
    /// The store's error.
    pub async fn get_instance_tree(&self, instance: &str) -> Result<InstanceTree, ClientError> {
        Ok(self.admin()?.get_instance_tree(instance).await?)
    }

    /// Deletes a root instance with all its descendants. A running instance needs `force`.
    ///
    /// # Errors
    /// `InstanceNotFound`, `InstanceStillRunning`, `CannotDeleteSubOrchestration`, or the store's error.
    pub async fn delete_instance(
        &self,
        instance: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ClientError> {
        let deleted = self.admin()?.delete_instance(instance, force).await;
        deleted.map_err(|error| delete_error(error, instance))
    }

    /// Deletes ended roots that match the filter, each with its descendants.
    ///
    /// # Errors
    /// The store's error.
    pub async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ClientError> {
        Ok(self.admin()?.delete_instance_bulk(filter).await?)
    }

    /// Removes old executions of one instance.
    ///
    /// # Errors
    /// The store's error.
    pub async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        Ok(self.admin()?.prune_executions(instance, options).await?)
    }

    /// Removes old executions of every instance that matches the filter, running ones included.
    ///
    /// # Errors
    /// The store's error.
    pub async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        Ok(self.admin()?.prune_executions_bulk(filter, options).await?)
    }

    /// How many running instances are pinned to each duroxide version.
    ///
    /// # Errors
    /// The store's error.
    pub async fn get_running_duroxide_version_spread(&self) -> Result<BTreeMap<String, u64>, ClientError> {
        Ok(self.admin()?.get_running_duroxide_version_spread().await?)
    }

    /// Messages that could not be processed, oldest first.
    ///
    /// # Errors
    /// The store's error.
    pub async fn list_dead_letters(&self, limit: Option<u32>) -> Result<Vec<DeadLetter>, ClientError> {
        Ok(self.admin()?.list_dead_letters(limit).await?)
    }

    /// Puts a dead letter back into its queue.
    ///
    /// # Errors
    /// The store's error; for an unknown dead letter too.
    pub async fn retry_dead_letter(&self, id: &str) -> Result<(), ClientError> {
        Ok(self.admin()?.retry_dead_letter(id).await?)
    }

    /// Deletes a dead letter.
    ///
    /// # Errors
    /// The store's error; for an unknown dead letter too.
    pub async fn discard_dead_letter(&self, id: &str) -> Result<(), ClientError> {
        Ok(self.admin()?.discard_dead_letter(id).await?)
    }

    pub(super) fn admin(&self) -> Result<&dyn ProviderAdmin, ClientError> {
        self.store.as_management_capability().ok_or(ClientError::ManagementNotAvailable)
    }
}

/// All statuses. A misspelt status would silently select nothing.
const STATUSES: [&str; 5] = ["Running", "Completed", "Failed", "ContinuedAsNew", InstanceQuery::PENDING];

fn check_status(status: &str) -> Result<(), ClientError> {
    if STATUSES.contains(&status) {
        return Ok(());
    }
    let known = STATUSES.join(", ");
    Err(ClientError::invalid_input(format!("unknown status '{status}': an instance is one of {known}")))
}

fn check_buckets(request: &SummaryRequest) -> Result<(), ClientError> {
    if request.buckets > SummaryRequest::BUCKETS_MAX {
        let (asked, max) = (request.buckets, SummaryRequest::BUCKETS_MAX);
        return Err(ClientError::invalid_input(format!(
            "{asked} buckets are more than {max}: make them longer"
        )));
    }
    if request.buckets > 0 && request.bucket_ms == 0 {
        return Err(ClientError::invalid_input("a bucket needs a length: set bucket_ms"));
    }
    Ok(())
}

/// Converts the reason why a delete was refused. The published contract gives these reasons as texts only.
pub(super) fn delete_error(error: ProviderError, instance: &str) -> ClientError {
    let text = error.to_string().to_lowercase();
    let instance_id = instance.to_owned();
    if text.contains("not found") {
        ClientError::InstanceNotFound { instance_id }
    } else if text.contains("still running") {
        ClientError::InstanceStillRunning { instance_id }
    } else if text.contains("sub-orchestration") || text.contains("delete the root") {
        ClientError::CannotDeleteSubOrchestration { instance_id }
    } else {
        ClientError::Provider(error)
    }
}
