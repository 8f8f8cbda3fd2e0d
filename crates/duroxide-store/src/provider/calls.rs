//! The calls of the runtime and the client, one by one.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use duroxide_core::{Clock, Event, OrchestrationDescriptor, SystemStats, WorkItem};
use duroxide_provider::{
    DispatcherCapabilityFilter, ExecutionMetadata, InstanceWatch, LoadedExecution, NodeAnnouncement,
    NodeMembership, OrchestrationClaim, OrchestrationFetch, OrchestrationItem, Provider, ProviderAdmin,
    ProviderError, RenewedWorkItem, Round, ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome,
    StatusSnapshot, TagFilter, WorkClaim, WorkFetch,
    store::{
        ActivityFetch, ActivityRow, Answer, EventRow, InstanceFetch, MessageRow, NodeRow, Op, StateChange,
    },
};

use super::{
    StoreProvider,
    decode::{HistoryOf, carried_messages, compare_starts, decode_event, decode_status, descriptor_of},
    plain_item,
};
use crate::{log, nodes::LeaveGuard, readers::Read, submit::Request};

#[async_trait]
impl Provider for StoreProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    // ---- orchestrations -------------------------------------------------------------------------------------

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        const OPERATION: &str = "fetch_orchestration_item";
        let request = OrchestrationFetch::new(lock_timeout, poll_timeout).with_filter(filter);
        let fetch = InstanceFetch { whole_mailbox: true, ..InstanceFetch::new(&request) };
        let delivery = self.submitter.fetch(OPERATION, fetch, poll_timeout, Request::FetchInstances).await?;
        let Some(claim) = delivery.first() else { return Ok(None) };
        let of = HistoryOf { instance: &claim.instance, execution_id: claim.execution_id };
        // The claim is committed. It stays in the delivery while the history is read, so that it is released if the read
        // fails or the caller drops this future.
        let loaded = match self.load(OPERATION, of).await {
            // The history will not become readable. The attempt counts, so that the instance ends as poison.
            Err(error) if !error.is_retryable() => {
                LoadedExecution { history_error: Some(error.message), ..LoadedExecution::default() }
            }
            loaded => loaded?,
        };
        Ok(delivery.take().pop().map(|claim| plain_item(claim, loaded)))
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
        let round = Round {
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
            ..Round::default()
        };
        self.commit("ack_orchestration_item", lock_token, &round).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let op = Op::AbandonInstance { token: lock_token.to_owned(), delay, ignore_attempt };
        self.submitter.apply("abandon_orchestration_item", Ok(op)).await.map(done)
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let op = Op::RenewInstance { token: token.to_owned(), extend_for };
        self.submitter.apply("renew_orchestration_item_lock", Ok(op)).await.map(done)
    }

    async fn commit_round(&self, lock_token: &str, round: Round) -> Result<(), ProviderError> {
        self.commit("commit_round", lock_token, &round).await
    }

    async fn commit_round_ref(&self, lock_token: &str, round: &Round) -> Result<(), ProviderError> {
        self.commit("commit_round", lock_token, round).await
    }

    fn commits_rounds(&self) -> bool {
        true
    }

    fn serves_batches(&self) -> bool {
        true
    }

    async fn fetch_orchestration_items(
        &self,
        request: &OrchestrationFetch<'_>,
    ) -> Result<Vec<OrchestrationClaim>, ProviderError> {
        let fetch = InstanceFetch::new(request);
        let delivery = self
            .submitter
            .fetch("fetch_orchestration_items", fetch, request.poll_timeout, Request::FetchInstances)
            .await?;
        Ok(delivery.take())
    }

    async fn load_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<LoadedExecution, ProviderError> {
        self.load("load_execution", HistoryOf { instance, execution_id }).await
    }

    // ---- history --------------------------------------------------------------------------------------------

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.read_current("read", instance).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.read_execution("read_with_execution", HistoryOf { instance, execution_id }).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let op = Op::Append {
            instance: instance.to_owned(),
            execution_id,
            events: new_events.iter().map(EventRow::new).collect(),
            changes: StateChange::of(&new_events),
        };
        self.submitter.apply("append_with_execution", Ok(op)).await.map(done)
    }

    async fn last_event_id(&self, instance: &str, execution_id: u64) -> Result<Option<u64>, ProviderError> {
        let instance = instance.to_owned();
        self.query("last_event_id", move |reader| reader.last_event_id(&instance, execution_id)).await
    }

    async fn mailbox_holds(&self, instance: &str, at_least: u64) -> Result<Option<bool>, ProviderError> {
        let instance = instance.to_owned();
        self.query("mailbox_holds", move |reader| reader.mailbox_holds(&instance, at_least)).await.map(Some)
    }

    // ---- queues ---------------------------------------------------------------------------------------------

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.submitter
            .enqueue("enqueue_for_worker", ActivityRow::new(item).map(Op::EnqueueActivity))
            .await
            .map(done)
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let op = MessageRow::new(item, delay).map(Op::EnqueueMessage);
        self.submitter.enqueue("enqueue_for_orchestrator", op).await.map(done)
    }

    async fn enqueue_within(&self, item: WorkItem, mailbox_max: u64) -> Result<bool, ProviderError> {
        let row = MessageRow::new(item, None).map(|row| MessageRow { mailbox_max: Some(mailbox_max), ..row });
        let answer = self.submitter.enqueue("enqueue_within", row.map(Op::EnqueueMessage)).await?;
        Ok(!matches!(answer, Answer::MailboxFull))
    }

    async fn start_if_new(&self, start: WorkItem) -> Result<StartOutcome, ProviderError> {
        let start = Arc::new(start);
        let op = MessageRow::start(Arc::clone(&start)).map(Op::StartIfNew);
        let answer = self.submitter.enqueue("start_if_new", op).await?;
        let Answer::Found(found) = answer else { return Ok(StartOutcome::Created) };
        Ok(compare_starts(&start, &found))
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let request = WorkFetch::new(lock_timeout, poll_timeout, tag_filter).with_session(session);
        let delivery = self
            .submitter
            .fetch("fetch_work_item", ActivityFetch::new(&request), poll_timeout, Request::FetchActivities)
            .await?;
        Ok(delivery.take().pop().map(|claim| (claim.item, claim.lock_token, claim.attempt_count)))
    }

    async fn fetch_work_items(&self, request: &WorkFetch<'_>) -> Result<Vec<WorkClaim>, ProviderError> {
        let fetch = ActivityFetch::new(request);
        let delivery = self
            .submitter
            .fetch("fetch_work_items", fetch, request.poll_timeout, Request::FetchActivities)
            .await?;
        Ok(delivery.take())
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        let completion = completion.map(MessageRow::completion).transpose();
        let op = completion.map(|completion| Op::AckActivity { token: token.to_owned(), completion });
        self.submitter.apply("ack_work_item", op).await.map(done)
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        let op = Op::RenewActivity { token: token.to_owned(), extend_for };
        self.submitter.apply("renew_work_item_lock", Ok(op)).await.map(done)
    }

    async fn renew_work_item(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<RenewedWorkItem, ProviderError> {
        let op = Op::RenewActivity { token: token.to_owned(), extend_for };
        let answer = self.submitter.apply("renew_work_item_lock", Ok(op)).await?;
        let Answer::Renewed { stop_requested } = answer else { return Ok(RenewedWorkItem::default()) };
        Ok(RenewedWorkItem::new(stop_requested))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let op = Op::AbandonActivity { token: token.to_owned(), delay, ignore_attempt };
        self.submitter.apply("abandon_work_item", Ok(op)).await.map(done)
    }

    async fn dead_letter_work_item(&self, token: &str, reason: &str) -> Result<(), ProviderError> {
        let op = Op::DeadLetterActivity { token: token.to_owned(), reason: reason.to_owned() };
        self.submitter.apply("dead_letter_work_item", Ok(op)).await?;
        log::unexpected_work_item(&self.name, reason);
        Ok(())
    }

    fn set_max_attempts(&self, max_attempts: u32) {
        self.submitter.apply_unattended(Op::SetMaxAttempts(max_attempts));
    }

    // ---- sessions -------------------------------------------------------------------------------------------

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let owners = owner_ids.iter().map(|&owner| owner.to_owned()).collect();
        let op = Op::RenewSessions { owners, extend_for, idle_timeout };
        self.submitter.apply("renew_session_lock", Ok(op)).await.map(count)
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Result<usize, ProviderError> {
        self.submitter.apply("cleanup_orphaned_sessions", Ok(Op::CleanupSessions)).await.map(count)
    }

    // ---- reads ----------------------------------------------------------------------------------------------

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        let instance = instance.to_owned();
        let stored = self.query("get_custom_status", move |reader| reader.custom_status(&instance)).await?;
        Ok(stored.filter(|(_, version)| *version > last_seen_version))
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        let (instance, key) = (instance.to_owned(), key.to_owned());
        self.query("get_kv_value", move |reader| reader.kv_value(&instance, &key)).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        let instance = instance.to_owned();
        let values = self.query("get_kv_all_values", move |reader| reader.kv_values(&instance)).await?;
        Ok(values.into_iter().collect())
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        const OPERATION: &str = "get_instance_stats";
        let id = instance.to_owned();
        let (stats, descriptor) =
            self.query(OPERATION, move |reader| Ok((reader.stats(&id)?, reader.descriptor(&id)?))).await?;
        let Some(mut stats) = stats else { return Ok(None) };
        if let Some(descriptor) = descriptor {
            let first = decode_event(OPERATION, &descriptor.first_event, instance)?;
            stats.queue_pending_count = carried_messages(&first);
        }
        Ok(Some(stats))
    }

    async fn read_status(&self, instance: &str) -> Result<Option<StatusSnapshot>, ProviderError> {
        const OPERATION: &str = "read_status";
        let stored = self.read_shared(OPERATION, instance.to_owned(), Read::Statuses).await?;
        stored.map(|stored| decode_status(OPERATION, stored, instance)).transpose()
    }

    async fn read_status_or_pending(&self, instance: &str) -> Result<Option<StatusSnapshot>, ProviderError> {
        const OPERATION: &str = "read_status_or_pending";
        let id = instance.to_owned();
        let stored = self.query(OPERATION, move |reader| reader.status_or_pending(&id)).await?;
        stored.map(|stored| decode_status(OPERATION, stored, instance)).transpose()
    }

    async fn read_descriptor(
        &self,
        instance: &str,
    ) -> Result<Option<OrchestrationDescriptor>, ProviderError> {
        const OPERATION: &str = "read_descriptor";
        let stored = self.read_shared(OPERATION, instance.to_owned(), Read::Descriptors).await?;
        let first =
            stored.map(|stored| decode_event(OPERATION, &stored.first_event, instance)).transpose()?;
        Ok(first.and_then(descriptor_of))
    }

    async fn join_node(
        &self,
        announcement: &NodeAnnouncement,
    ) -> Result<Option<Box<dyn NodeMembership>>, ProviderError> {
        const OPERATION: &str = "join_node";
        let lock = self.joining.begin(&announcement.name);
        let lock = lock.map_err(|failure| failure.into_provider_error(OPERATION))?;
        // Ends the node if the caller drops this future.
        let guard = LeaveGuard::new(&announcement.name, lock, Arc::clone(&self.submitter));
        match self.submitter.apply(OPERATION, Ok(Op::JoinNode(NodeRow::new(announcement)))).await {
            Ok(Answer::Joined(node)) => Ok(Some(Box::new(guard.joined(node)))),
            Ok(_) => Ok(None),
            Err(error) => {
                self.joining.failed(guard);
                Err(error)
            }
        }
    }

    fn watch(&self, instance: &str) -> Option<Box<dyn InstanceWatch>> {
        let watch = self.watchers.watch(instance);
        // Makes the store thread poll for changes by other processes.
        self.submitter.send(Request::Watched);
        Some(Box::new(watch))
    }

    fn clock(&self) -> Option<Arc<dyn Clock>> {
        self.recorded_clock.clone()
    }
}

fn done(_: Answer) {}

fn count(answer: Answer) -> usize {
    let Answer::Count(count) = answer else { return 0 };
    count
}
