//! A provider written for the plain contract: every method with a default body keeps it.

use std::{collections::HashMap, time::Duration};

use async_trait::async_trait;
use duroxide_core::{Event, SystemStats, WorkItem};
use duroxide_provider::{
    DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, TagFilter,
};
use duroxide_store::StoreProvider;

type Outcome<T> = Result<T, ProviderError>;

/// Hands on what a provider must have, and nothing else.
pub(crate) struct PlainProvider(pub(crate) StoreProvider);

#[async_trait]
impl Provider for PlainProvider {
    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Outcome<Option<(OrchestrationItem, String, u32)>> {
        self.0.fetch_orchestration_item(lock_timeout, poll_timeout, filter).await
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
    ) -> Outcome<()> {
        let (delta, cancelled) = (history_delta, cancelled_activities);
        self.0
            .ack_orchestration_item(
                lock_token,
                execution_id,
                delta,
                worker_items,
                orchestrator_items,
                metadata,
                cancelled,
            )
            .await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Outcome<()> {
        self.0.abandon_orchestration_item(lock_token, delay, ignore_attempt).await
    }

    async fn renew_orchestration_item_lock(&self, token: &str, extend_for: Duration) -> Outcome<()> {
        self.0.renew_orchestration_item_lock(token, extend_for).await
    }

    async fn read(&self, instance: &str) -> Outcome<Vec<Event>> {
        self.0.read(instance).await
    }

    async fn read_with_execution(&self, instance: &str, execution_id: u64) -> Outcome<Vec<Event>> {
        self.0.read_with_execution(instance, execution_id).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Outcome<()> {
        self.0.append_with_execution(instance, execution_id, new_events).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Outcome<()> {
        self.0.enqueue_for_worker(item).await
    }

    async fn enqueue_for_orchestrator(&self, item: WorkItem, delay: Option<Duration>) -> Outcome<()> {
        self.0.enqueue_for_orchestrator(item, delay).await
    }

    /// Does not wait: a provider may return at once, whatever it is asked.
    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        _poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Outcome<Option<(WorkItem, String, u32)>> {
        self.0.fetch_work_item(lock_timeout, Duration::ZERO, session, tag_filter).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Outcome<()> {
        self.0.ack_work_item(token, completion).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Outcome<()> {
        self.0.renew_work_item_lock(token, extend_for).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Outcome<()> {
        self.0.abandon_work_item(token, delay, ignore_attempt).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Outcome<usize> {
        self.0.renew_session_lock(owner_ids, extend_for, idle_timeout).await
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Outcome<usize> {
        self.0.cleanup_orphaned_sessions(idle_timeout).await
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Outcome<Option<(Option<String>, u64)>> {
        self.0.get_custom_status(instance, last_seen_version).await
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Outcome<Option<String>> {
        self.0.get_kv_value(instance, key).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Outcome<HashMap<String, String>> {
        self.0.get_kv_all_values(instance).await
    }

    async fn get_instance_stats(&self, instance: &str) -> Outcome<Option<SystemStats>> {
        self.0.get_instance_stats(instance).await
    }
}
