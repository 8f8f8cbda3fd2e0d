//! The measured calls of [`InstrumentedProvider`], one by one.

use std::{collections::HashMap, time::Duration};

use async_trait::async_trait;
use duroxide_core::{Event, OrchestrationDescriptor, SystemStats, WorkItem};
use duroxide_provider::{
    DispatcherCapabilityFilter, ExecutionMetadata, InstanceWatch, LoadedExecution, NodeAnnouncement,
    NodeMembership, OrchestrationClaim, OrchestrationFetch, OrchestrationItem, Provider, ProviderAdmin,
    ProviderError, RenewedWorkItem, Round, ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome,
    StatusSnapshot, TagFilter, WorkClaim, WorkFetch,
};

use super::InstrumentedProvider;

/// Every method of the trait stands here. A default body would call the plain methods of `self` and hide what
/// the inner provider can do.
#[async_trait]
impl Provider for InstrumentedProvider {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn version(&self) -> &str {
        self.inner.version()
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.inner.as_management_capability()
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let call = self.inner.fetch_orchestration_item(lock_timeout, poll_timeout, filter);
        self.measured("fetch_orchestration_item", call).await
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let call = self.inner.ack_orchestration_item(
            lock_token,
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        );
        self.measured("ack_orchestration_item", call).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let call = self.inner.abandon_orchestration_item(lock_token, delay, ignore_attempt);
        self.measured("abandon_orchestration_item", call).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let call = self.inner.renew_orchestration_item_lock(token, extend_for);
        self.measured("renew_orchestration_item_lock", call).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.measured("read", self.inner.read(instance)).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.measured("read_with_execution", self.inner.read_with_execution(instance, execution_id)).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let call = self.inner.append_with_execution(instance, execution_id, new_events);
        self.measured("append_with_execution", call).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.measured("enqueue_for_worker", self.inner.enqueue_for_worker(item)).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.measured("enqueue_for_orchestrator", self.inner.enqueue_for_orchestrator(item, delay)).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let call = self.inner.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter);
        self.measured("fetch_work_item", call).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        self.measured("ack_work_item", self.inner.ack_work_item(token, completion)).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        self.measured("renew_work_item_lock", self.inner.renew_work_item_lock(token, extend_for)).await
    }

    async fn renew_work_item(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<RenewedWorkItem, ProviderError> {
        self.measured("renew_work_item_lock", self.inner.renew_work_item(token, extend_for)).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let call = self.inner.abandon_work_item(token, delay, ignore_attempt);
        self.measured("abandon_work_item", call).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let call = self.inner.renew_session_lock(owner_ids, extend_for, idle_timeout);
        self.measured("renew_session_lock", call).await
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError> {
        let call = self.inner.cleanup_orphaned_sessions(idle_timeout);
        self.measured("cleanup_orphaned_sessions", call).await
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        let call = self.inner.get_custom_status(instance, last_seen_version);
        self.measured("get_custom_status", call).await
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.measured("get_kv_value", self.inner.get_kv_value(instance, key)).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.measured("get_kv_all_values", self.inner.get_kv_all_values(instance)).await
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.measured("get_instance_stats", self.inner.get_instance_stats(instance)).await
    }

    async fn commit_round(&self, lock_token: &str, round: Round) -> Result<(), ProviderError> {
        self.measured("commit_round", self.inner.commit_round(lock_token, round)).await
    }

    /// Both ways to commit a round are one operation.
    async fn commit_round_ref(&self, lock_token: &str, round: &Round) -> Result<(), ProviderError> {
        self.measured("commit_round", self.inner.commit_round_ref(lock_token, round)).await
    }

    fn commits_rounds(&self) -> bool {
        self.inner.commits_rounds()
    }

    fn serves_batches(&self) -> bool {
        self.inner.serves_batches()
    }

    async fn fetch_orchestration_items(
        &self,
        request: &OrchestrationFetch<'_>,
    ) -> Result<Vec<OrchestrationClaim>, ProviderError> {
        self.measured("fetch_orchestration_items", self.inner.fetch_orchestration_items(request)).await
    }

    async fn load_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<LoadedExecution, ProviderError> {
        self.measured("load_execution", self.inner.load_execution(instance, execution_id)).await
    }

    async fn fetch_work_items(&self, request: &WorkFetch<'_>) -> Result<Vec<WorkClaim>, ProviderError> {
        self.measured("fetch_work_items", self.inner.fetch_work_items(request)).await
    }

    async fn read_status(&self, instance: &str) -> Result<Option<StatusSnapshot>, ProviderError> {
        self.measured("read_status", self.inner.read_status(instance)).await
    }

    async fn read_status_or_pending(&self, instance: &str) -> Result<Option<StatusSnapshot>, ProviderError> {
        self.measured("read_status_or_pending", self.inner.read_status_or_pending(instance)).await
    }

    async fn read_descriptor(
        &self,
        instance: &str,
    ) -> Result<Option<OrchestrationDescriptor>, ProviderError> {
        self.measured("read_descriptor", self.inner.read_descriptor(instance)).await
    }

    async fn last_event_id(&self, instance: &str, execution_id: u64) -> Result<Option<u64>, ProviderError> {
        self.measured("last_event_id", self.inner.last_event_id(instance, execution_id)).await
    }

    async fn mailbox_holds(&self, instance: &str, at_least: u64) -> Result<Option<bool>, ProviderError> {
        self.measured("mailbox_holds", self.inner.mailbox_holds(instance, at_least)).await
    }

    async fn start_if_new(&self, start: WorkItem) -> Result<StartOutcome, ProviderError> {
        self.measured("start_if_new", self.inner.start_if_new(start)).await
    }

    async fn dead_letter_work_item(&self, token: &str, reason: &str) -> Result<(), ProviderError> {
        self.measured("dead_letter_work_item", self.inner.dead_letter_work_item(token, reason)).await
    }

    fn set_max_attempts(&self, max_attempts: u32) {
        self.inner.set_max_attempts(max_attempts);
    }

    async fn join_node(
        &self,
        announcement: &NodeAnnouncement,
    ) -> Result<Option<Box<dyn NodeMembership>>, ProviderError> {
        self.measured("join_node", self.inner.join_node(announcement)).await
    }

    fn watch(&self, instance: &str) -> Option<Box<dyn InstanceWatch>> {
        self.inner.watch(instance)
    }
}
