//! Implementing the provider traits by handing every call on.

pub use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

pub use async_trait::async_trait;
pub use duroxide_core::{Event, OrchestrationDescriptor, SystemStats};
pub use duroxide_provider::*;

/// Implements [`Provider`](duroxide_provider::Provider) and [`ProviderAdmin`](duroxide_provider::ProviderAdmin) for
/// a type that holds a [`StoreProvider`](crate::StoreProvider), or any other provider with management calls, in a
/// field.
///
/// Every method is handed on, those with default bodies too, so nothing that the inner provider does natively is
/// lost. `as_management_capability` is the outer type itself.
///
/// ```
/// use duroxide_provider::Provider;
/// use duroxide_store::{MemoryProvider, impl_provider_by_delegation};
///
/// struct MyProvider {
///     store: MemoryProvider,
/// }
///
/// impl_provider_by_delegation!(MyProvider, store);
///
/// let provider = MyProvider { store: MemoryProvider::new() };
/// assert_eq!(provider.name(), "memory");
/// assert!(provider.as_management_capability().is_some());
/// ```
#[macro_export]
macro_rules! impl_provider_by_delegation {
    ($provider:ty, $store:ident) => {
        #[$crate::delegate::async_trait]
        impl $crate::delegate::Provider for $provider {
            fn as_management_capability(&self) -> Option<&dyn $crate::delegate::ProviderAdmin> {
                Some(self)
            }
            fn name(&self) -> &str {
                $crate::delegate::Provider::name(&self.$store)
            }
            fn version(&self) -> &str {
                $crate::delegate::Provider::version(&self.$store)
            }
            async fn fetch_orchestration_item(
                &self,
                lock_timeout: $crate::delegate::Duration,
                poll_timeout: $crate::delegate::Duration,
                filter: Option<&$crate::delegate::DispatcherCapabilityFilter>,
            ) -> Result<
                Option<($crate::delegate::OrchestrationItem, String, u32)>,
                $crate::delegate::ProviderError,
            > {
                $crate::delegate::Provider::fetch_orchestration_item(
                    &self.$store,
                    lock_timeout,
                    poll_timeout,
                    filter,
                )
                .await
            }
            async fn ack_orchestration_item(
                &self,
                lock_token: &str,
                execution_id: u64,
                history_delta: Vec<$crate::delegate::Event>,
                worker_items: Vec<$crate::delegate::WorkItem>,
                orchestrator_items: Vec<$crate::delegate::WorkItem>,
                metadata: $crate::delegate::ExecutionMetadata,
                cancelled_activities: Vec<$crate::delegate::ScheduledActivityIdentifier>,
            ) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::Provider::ack_orchestration_item(
                    &self.$store,
                    lock_token,
                    execution_id,
                    history_delta,
                    worker_items,
                    orchestrator_items,
                    metadata,
                    cancelled_activities,
                )
                .await
            }
            async fn abandon_orchestration_item(
                &self,
                lock_token: &str,
                delay: Option<$crate::delegate::Duration>,
                ignore_attempt: bool,
            ) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::Provider::abandon_orchestration_item(
                    &self.$store,
                    lock_token,
                    delay,
                    ignore_attempt,
                )
                .await
            }
            async fn renew_orchestration_item_lock(
                &self,
                token: &str,
                extend_for: $crate::delegate::Duration,
            ) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::Provider::renew_orchestration_item_lock(&self.$store, token, extend_for)
                    .await
            }
            async fn read(
                &self,
                instance: &str,
            ) -> Result<Vec<$crate::delegate::Event>, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::read(&self.$store, instance).await
            }
            async fn read_with_execution(
                &self,
                instance: &str,
                execution_id: u64,
            ) -> Result<Vec<$crate::delegate::Event>, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::read_with_execution(&self.$store, instance, execution_id).await
            }
            async fn append_with_execution(
                &self,
                instance: &str,
                execution_id: u64,
                new_events: Vec<$crate::delegate::Event>,
            ) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::Provider::append_with_execution(
                    &self.$store,
                    instance,
                    execution_id,
                    new_events,
                )
                .await
            }
            async fn enqueue_for_worker(
                &self,
                item: $crate::delegate::WorkItem,
            ) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::Provider::enqueue_for_worker(&self.$store, item).await
            }
            async fn enqueue_for_orchestrator(
                &self,
                item: $crate::delegate::WorkItem,
                delay: Option<$crate::delegate::Duration>,
            ) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::Provider::enqueue_for_orchestrator(&self.$store, item, delay).await
            }
            async fn fetch_work_item(
                &self,
                lock_timeout: $crate::delegate::Duration,
                poll_timeout: $crate::delegate::Duration,
                session: Option<&$crate::delegate::SessionFetchConfig>,
                tag_filter: &$crate::delegate::TagFilter,
            ) -> Result<Option<($crate::delegate::WorkItem, String, u32)>, $crate::delegate::ProviderError>
            {
                $crate::delegate::Provider::fetch_work_item(
                    &self.$store,
                    lock_timeout,
                    poll_timeout,
                    session,
                    tag_filter,
                )
                .await
            }
            async fn ack_work_item(
                &self,
                token: &str,
                completion: Option<$crate::delegate::WorkItem>,
            ) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::Provider::ack_work_item(&self.$store, token, completion).await
            }
            async fn renew_work_item_lock(
                &self,
                token: &str,
                extend_for: $crate::delegate::Duration,
            ) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::Provider::renew_work_item_lock(&self.$store, token, extend_for).await
            }
            async fn renew_work_item(
                &self,
                token: &str,
                extend_for: $crate::delegate::Duration,
            ) -> Result<$crate::delegate::RenewedWorkItem, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::renew_work_item(&self.$store, token, extend_for).await
            }
            async fn abandon_work_item(
                &self,
                token: &str,
                delay: Option<$crate::delegate::Duration>,
                ignore_attempt: bool,
            ) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::Provider::abandon_work_item(&self.$store, token, delay, ignore_attempt)
                    .await
            }
            async fn renew_session_lock(
                &self,
                owner_ids: &[&str],
                extend_for: $crate::delegate::Duration,
                idle_timeout: $crate::delegate::Duration,
            ) -> Result<usize, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::renew_session_lock(
                    &self.$store,
                    owner_ids,
                    extend_for,
                    idle_timeout,
                )
                .await
            }
            async fn cleanup_orphaned_sessions(
                &self,
                idle_timeout: $crate::delegate::Duration,
            ) -> Result<usize, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::cleanup_orphaned_sessions(&self.$store, idle_timeout).await
            }
            async fn get_custom_status(
                &self,
                instance: &str,
                last_seen_version: u64,
            ) -> Result<Option<(Option<String>, u64)>, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::get_custom_status(&self.$store, instance, last_seen_version).await
            }
            async fn get_kv_value(
                &self,
                instance: &str,
                key: &str,
            ) -> Result<Option<String>, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::get_kv_value(&self.$store, instance, key).await
            }
            async fn get_kv_all_values(
                &self,
                instance: &str,
            ) -> Result<$crate::delegate::HashMap<String, String>, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::get_kv_all_values(&self.$store, instance).await
            }
            async fn get_instance_stats(
                &self,
                instance: &str,
            ) -> Result<Option<$crate::delegate::SystemStats>, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::get_instance_stats(&self.$store, instance).await
            }
            async fn commit_round(
                &self,
                lock_token: &str,
                round: $crate::delegate::Round,
            ) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::Provider::commit_round(&self.$store, lock_token, round).await
            }
            async fn commit_round_ref(
                &self,
                lock_token: &str,
                round: &$crate::delegate::Round,
            ) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::Provider::commit_round_ref(&self.$store, lock_token, round).await
            }
            fn commits_rounds(&self) -> bool {
                $crate::delegate::Provider::commits_rounds(&self.$store)
            }
            fn serves_batches(&self) -> bool {
                $crate::delegate::Provider::serves_batches(&self.$store)
            }
            async fn fetch_orchestration_items(
                &self,
                request: &$crate::delegate::OrchestrationFetch<'_>,
            ) -> Result<Vec<$crate::delegate::OrchestrationClaim>, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::fetch_orchestration_items(&self.$store, request).await
            }
            async fn load_execution(
                &self,
                instance: &str,
                execution_id: u64,
            ) -> Result<$crate::delegate::LoadedExecution, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::load_execution(&self.$store, instance, execution_id).await
            }
            async fn fetch_work_items(
                &self,
                request: &$crate::delegate::WorkFetch<'_>,
            ) -> Result<Vec<$crate::delegate::WorkClaim>, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::fetch_work_items(&self.$store, request).await
            }
            async fn read_status(
                &self,
                instance: &str,
            ) -> Result<Option<$crate::delegate::StatusSnapshot>, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::read_status(&self.$store, instance).await
            }
            async fn read_status_or_pending(
                &self,
                instance: &str,
            ) -> Result<Option<$crate::delegate::StatusSnapshot>, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::read_status_or_pending(&self.$store, instance).await
            }
            async fn read_descriptor(
                &self,
                instance: &str,
            ) -> Result<Option<$crate::delegate::OrchestrationDescriptor>, $crate::delegate::ProviderError>
            {
                $crate::delegate::Provider::read_descriptor(&self.$store, instance).await
            }
            async fn last_event_id(
                &self,
                instance: &str,
                execution_id: u64,
            ) -> Result<Option<u64>, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::last_event_id(&self.$store, instance, execution_id).await
            }
            async fn mailbox_holds(
                &self,
                instance: &str,
                at_least: u64,
            ) -> Result<Option<bool>, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::mailbox_holds(&self.$store, instance, at_least).await
            }
            async fn start_if_new(
                &self,
                start: $crate::delegate::WorkItem,
            ) -> Result<$crate::delegate::StartOutcome, $crate::delegate::ProviderError> {
                $crate::delegate::Provider::start_if_new(&self.$store, start).await
            }
            async fn dead_letter_work_item(
                &self,
                token: &str,
                reason: &str,
            ) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::Provider::dead_letter_work_item(&self.$store, token, reason).await
            }
            fn set_max_attempts(&self, max_attempts: u32) {
                $crate::delegate::Provider::set_max_attempts(&self.$store, max_attempts)
            }
            async fn join_node(
                &self,
                announcement: &$crate::delegate::NodeAnnouncement,
            ) -> Result<Option<Box<dyn $crate::delegate::NodeMembership>>, $crate::delegate::ProviderError>
            {
                $crate::delegate::Provider::join_node(&self.$store, announcement).await
            }
            fn watch(&self, instance: &str) -> Option<Box<dyn $crate::delegate::InstanceWatch>> {
                $crate::delegate::Provider::watch(&self.$store, instance)
            }
        }

        #[$crate::delegate::async_trait]
        impl $crate::delegate::ProviderAdmin for $provider {
            async fn list_instances(&self) -> Result<Vec<String>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::list_instances(&self.$store).await
            }
            async fn list_instances_by_status(
                &self,
                status: &str,
            ) -> Result<Vec<String>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::list_instances_by_status(&self.$store, status).await
            }
            async fn query_instances(
                &self,
                query: &$crate::delegate::InstanceQuery,
            ) -> Result<$crate::delegate::InstancePage, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::query_instances(&self.$store, query).await
            }
            async fn list_executions(
                &self,
                instance: &str,
            ) -> Result<Vec<u64>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::list_executions(&self.$store, instance).await
            }
            async fn read_history_with_execution_id(
                &self,
                instance: &str,
                execution_id: u64,
            ) -> Result<Vec<$crate::delegate::Event>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::read_history_with_execution_id(
                    &self.$store,
                    instance,
                    execution_id,
                )
                .await
            }
            async fn read_history(
                &self,
                instance: &str,
            ) -> Result<Vec<$crate::delegate::Event>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::read_history(&self.$store, instance).await
            }
            async fn latest_execution_id(
                &self,
                instance: &str,
            ) -> Result<u64, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::latest_execution_id(&self.$store, instance).await
            }
            async fn get_instance_info(
                &self,
                instance: &str,
            ) -> Result<$crate::delegate::InstanceInfo, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::get_instance_info(&self.$store, instance).await
            }
            async fn get_execution_info(
                &self,
                instance: &str,
                execution_id: u64,
            ) -> Result<$crate::delegate::ExecutionInfo, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::get_execution_info(&self.$store, instance, execution_id)
                    .await
            }
            async fn get_system_metrics(
                &self,
            ) -> Result<$crate::delegate::SystemMetrics, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::get_system_metrics(&self.$store).await
            }
            async fn count_pending_instances(&self) -> Result<Option<u64>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::count_pending_instances(&self.$store).await
            }
            async fn get_queue_depths(
                &self,
            ) -> Result<$crate::delegate::QueueDepths, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::get_queue_depths(&self.$store).await
            }
            async fn list_children(
                &self,
                instance: &str,
            ) -> Result<Vec<String>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::list_children(&self.$store, instance).await
            }
            async fn get_parent_id(
                &self,
                instance: &str,
            ) -> Result<Option<String>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::get_parent_id(&self.$store, instance).await
            }
            async fn delete_instances_atomic(
                &self,
                ids: &[String],
                force: bool,
            ) -> Result<$crate::delegate::DeleteInstanceResult, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::delete_instances_atomic(&self.$store, ids, force).await
            }
            async fn get_instance_tree(
                &self,
                instance: &str,
            ) -> Result<$crate::delegate::InstanceTree, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::get_instance_tree(&self.$store, instance).await
            }
            async fn delete_instance(
                &self,
                instance: &str,
                force: bool,
            ) -> Result<$crate::delegate::DeleteInstanceResult, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::delete_instance(&self.$store, instance, force).await
            }
            async fn delete_instance_bulk(
                &self,
                filter: $crate::delegate::InstanceFilter,
            ) -> Result<$crate::delegate::DeleteInstanceResult, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::delete_instance_bulk(&self.$store, filter).await
            }
            async fn prune_executions(
                &self,
                instance: &str,
                options: $crate::delegate::PruneOptions,
            ) -> Result<$crate::delegate::PruneResult, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::prune_executions(&self.$store, instance, options).await
            }
            async fn prune_executions_bulk(
                &self,
                filter: $crate::delegate::InstanceFilter,
                options: $crate::delegate::PruneOptions,
            ) -> Result<$crate::delegate::PruneResult, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::prune_executions_bulk(&self.$store, filter, options).await
            }
            async fn get_running_duroxide_version_spread(
                &self,
            ) -> Result<$crate::delegate::BTreeMap<String, u64>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::get_running_duroxide_version_spread(&self.$store).await
            }
            async fn list_dead_letters(
                &self,
                limit: Option<u32>,
            ) -> Result<Vec<$crate::delegate::DeadLetter>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::list_dead_letters(&self.$store, limit).await
            }
            async fn retry_dead_letter(&self, id: &str) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::retry_dead_letter(&self.$store, id).await
            }
            async fn discard_dead_letter(&self, id: &str) -> Result<(), $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::discard_dead_letter(&self.$store, id).await
            }
            async fn read_raw_history(
                &self,
                instance: &str,
                execution_id: u64,
            ) -> Result<Vec<$crate::delegate::RawEvent>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::read_raw_history(&self.$store, instance, execution_id).await
            }
            async fn list_stuck_instances(
                &self,
                older_than: $crate::delegate::Duration,
                filter: &$crate::delegate::DispatcherCapabilityFilter,
            ) -> Result<Vec<String>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::list_stuck_instances(&self.$store, older_than, filter).await
            }
            async fn list_nodes(
                &self,
            ) -> Result<Vec<$crate::delegate::JoinedNode>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::list_nodes(&self.$store).await
            }
            async fn list_stranded_work(
                &self,
                limit: u32,
            ) -> Result<Vec<$crate::delegate::StrandedWork>, $crate::delegate::ProviderError> {
                $crate::delegate::ProviderAdmin::list_stranded_work(&self.$store, limit).await
            }
        }
    };
}
