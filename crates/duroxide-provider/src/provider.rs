//! [`Provider`]: the interface of a store for the runtime and the client.

mod delegate;
mod fetch;
mod filter;
mod item;
mod layer;
pub(crate) mod methods;
mod round;
mod run_round;
mod start_outcome;

pub use fetch::{
    Demand, LoadedExecution, Losses, OrchestrationClaim, OrchestrationFetch, RenewedWorkItem, StorePosition,
    TellOfDemand, Wanted, WorkClaim, WorkFetch,
};
pub use filter::{
    DispatcherCapabilityFilter, HandlerCapability, SemverRange, TagFilter, VersionRange, VersionTriple,
};
pub use item::{
    ActivityStop, ExecutionMetadata, OrchestrationItem, ScheduledActivityIdentifier, SessionFetchConfig,
};
pub use layer::ProviderLayer;
pub use methods::{operation_of, signatures};
pub(crate) use round::ack_round;
pub use round::{NextExecution, Round, ScheduledTimerIdentifier};
pub use run_round::{DequeuedItem, OpenRound, run_round};
pub use start_outcome::StartOutcome;

use std::{any::Any, collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use duroxide_core::{Clock, Event, EventKind, OrchestrationDescriptor, SystemStats, WorkItem};

use crate::{InstanceWatch, NodeAnnouncement, NodeMembership, ProviderAdmin, ProviderError, StatusSnapshot};

/// Durable storage and queues for instances.
///
/// A provider stores and queues. It never makes event ids or execution ids and never reads user payloads; of all events it
/// decodes only `CustomStatusUpdated` and the `KeyValue*` kinds.
///
/// Methods with a default body exist for speed. Each default calls the plain methods of `self`, one for one, so a provider
/// written for the plain contract works, and a wrapper that overrides only plain methods sees every call. `provider/methods.rs`
/// lists every method, too.
#[async_trait]
pub trait Provider: Any + Send + Sync {
    /// A short name for logs.
    fn name(&self) -> &str {
        "unknown"
    }

    /// The provider's version, for logs.
    fn version(&self) -> &str {
        "0.0.0"
    }

    /// The management calls, if the provider has them.
    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        None
    }

    // ---- orchestrations -------------------------------------------------------------------------------------

    /// Locks the instance with the oldest visible message that passes the filter, in the order: candidate, filter, lock, load.
    /// All its visible messages are locked under one fresh token and each attempt count is raised in the same committed step,
    /// before history is loaded; the highest count is returned.
    ///
    /// Waits for work up to `poll_timeout`. A future that is dropped locks nothing from then on.
    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError>;

    /// Commits a turn in one transaction, all or nothing, and releases the lock. After the permanent errors `Invalid lock token`
    /// and `Instance lock expired` nothing was written.
    #[expect(clippy::too_many_arguments, reason = "the published contract; commit_round takes a struct")]
    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError>;

    /// Gives a lock back. The messages it held become visible after `delay`; with `ignore_attempt` the attempt is taken back.
    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError>;

    /// Extends a lock to `extend_for` from now. Permanent error if it is lost.
    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError>;

    // ---- history --------------------------------------------------------------------------------------------

    /// The history of the latest execution; empty for an unknown instance.
    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError>;

    /// The history of one execution.
    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError>;

    /// Appends events outside a round, for tests and repair. A duplicate event id is a permanent error.
    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError>;

    // ---- queues ---------------------------------------------------------------------------------------------

    /// Queues an activity.
    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError>;

    /// Queues a message to an instance, visible after `delay`. Creates no instance.
    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError>;

    /// Locks the lowest visible activity that matches tag and session and raises its attempt count. Claims or refreshes the
    /// session in the same transaction. `session: None` returns only activities without one.
    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError>;

    /// Deletes an activity and queues its completion in one transaction. Permanent error if the lock is lost.
    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError>;

    /// Extends an activity's lock to `extend_for` from now. Permanent error if it is lost.
    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError>;

    /// Gives an activity back; see [`Self::abandon_orchestration_item`].
    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError>;

    // ---- sessions -------------------------------------------------------------------------------------------

    /// Extends the sessions of these owners that are neither expired nor idle; returns how many.
    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError>;

    /// Deletes expired sessions without queued items; returns how many.
    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError>;

    // ---- reads ----------------------------------------------------------------------------------------------

    /// The custom status and its version, if the version is greater than `last_seen_version`.
    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError>;

    /// One value of the key-value store, changes of the current execution included.
    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError>;

    /// All values of the key-value store, changes of the current execution included.
    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError>;

    /// Sizes of the current execution; `None` for an unknown instance.
    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError>;

    // ---- with default bodies --------------------------------------------------------------------------------

    /// Commits a round. The default stores it by [`Self::ack_orchestration_item`]: `next_execution` becomes one more orchestrator
    /// item, its `start`, and `cancelled_timers` are ignored.
    async fn commit_round(&self, lock_token: &str, round: Round) -> Result<(), ProviderError> {
        ack_round(self, lock_token, round).await
    }

    /// Commits a round that the caller keeps, to try again if this fails. The runtime calls this method. The default makes a copy
    /// for [`Self::commit_round`]; a provider that only reads the round needs none.
    async fn commit_round_ref(&self, lock_token: &str, round: &Round) -> Result<(), ProviderError> {
        self.commit_round(lock_token, round.clone()).await
    }

    /// Whether [`Self::commit_round`] stores all of a round.
    fn commits_rounds(&self) -> bool {
        false
    }

    /// Whether the two batch fetches below return more than one item. If not, the runtime keeps one plain fetch in flight per
    /// free slot.
    fn serves_batches(&self) -> bool {
        false
    }

    /// Claims up to `request.max` instances. The default makes one [`Self::fetch_orchestration_item`] call.
    async fn fetch_orchestration_items(
        &self,
        request: &OrchestrationFetch<'_>,
    ) -> Result<Vec<OrchestrationClaim>, ProviderError> {
        let fetched =
            self.fetch_orchestration_item(request.lock_timeout, request.poll_timeout, request.filter).await?;
        Ok(fetched.map(OrchestrationClaim::from).into_iter().collect())
    }

    /// Reads history and key-value state of a claimed execution. Called only for claims that came without them.
    async fn load_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<LoadedExecution, ProviderError> {
        let history = self.read_with_execution(instance, execution_id).await?;
        Ok(LoadedExecution { history, ..LoadedExecution::default() })
    }

    /// Claims up to `request.max` activities. The default makes one [`Self::fetch_work_item`] call.
    async fn fetch_work_items(&self, request: &WorkFetch<'_>) -> Result<Vec<WorkClaim>, ProviderError> {
        let fetched = self
            .fetch_work_item(request.lock_timeout, request.poll_timeout, request.session, request.tag_filter)
            .await?;
        Ok(fetched
            .map(|(item, lock_token, attempt_count)| WorkClaim {
                item,
                lock_token,
                attempt_count,
                claimed_before: attempt_count > 1,
                stop_requested: false,
                losses: None,
                incarnation: None,
            })
            .into_iter()
            .collect())
    }

    /// Like [`Self::renew_work_item_lock`], and returns whether the activity was asked to stop. The default does not know it.
    async fn renew_work_item(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<RenewedWorkItem, ProviderError> {
        self.renew_work_item_lock(token, extend_for).await?;
        Ok(RenewedWorkItem::default())
    }

    /// The status of an instance; `None` for an unknown one. The default reads the history; ours read one row and at most one
    /// event.
    async fn read_status(&self, instance: &str) -> Result<Option<StatusSnapshot>, ProviderError> {
        let mut history = self.read(instance).await?;
        let Some(last) = history.pop() else { return Ok(None) };
        let (custom_status, custom_status_version) =
            self.get_custom_status(instance, 0).await?.unwrap_or((None, 0));
        Ok(Some(StatusSnapshot {
            execution_id: last.execution_id,
            terminal_event: ends_instance(&last).then_some(last),
            custom_status,
            custom_status_version,
        }))
    }

    /// Like [`Self::read_status`], but an instance also exists, as running, while its start is queued: clients see an accepted
    /// start this way. The default ignores queued starts.
    async fn read_status_or_pending(&self, instance: &str) -> Result<Option<StatusSnapshot>, ProviderError> {
        self.read_status(instance).await
    }

    /// Name, version and parent of an instance; `None` if it is unknown. The default reads the history.
    async fn read_descriptor(
        &self,
        instance: &str,
    ) -> Result<Option<OrchestrationDescriptor>, ProviderError> {
        let history = self.read(instance).await?;
        Ok(history.into_iter().next().and_then(descriptor_of))
    }

    /// The last stored event of an execution, without decoding it; `None` if the provider does not know it.
    async fn last_event_id(&self, instance: &str, execution_id: u64) -> Result<Option<u64>, ProviderError> {
        let _ = (instance, execution_id);
        Ok(None)
    }

    /// Whether at least this many messages from clients (events, queue messages, cancellations) wait for an instance, known or
    /// not, or were taken by a turn that is not committed; `None` if the provider does not count them.
    async fn mailbox_holds(&self, instance: &str, at_least: u64) -> Result<Option<bool>, ProviderError> {
        let _ = (instance, at_least);
        Ok(None)
    }

    /// Queues a message of a client, visible at once, unless [`Self::mailbox_holds`] at least `mailbox_max` of them. Returns
    /// whether it was queued. The default asks first, so that several callers may find the last place at the same time.
    async fn enqueue_within(&self, item: WorkItem, mailbox_max: u64) -> Result<bool, ProviderError> {
        let is_full = self.mailbox_holds(item.target_instance(), mailbox_max).await? == Some(true);
        if !is_full {
            self.enqueue_for_orchestrator(item, None).await?;
        }
        Ok(!is_full)
    }

    /// Queues a start, visible at once, unless the instance exists or another start of it is queued, and returns which. Of
    /// several calls at the same time exactly one gets [`StartOutcome::Created`]. Messages that wait for an instance without a
    /// start do not make it exist. Starts are compared by name and plain input: each call may come from another trace, so compare
    /// inputs by [`TracedInput::plain`](duroxide_core::TracedInput::plain). The default is a permanent error, to avoid a race.
    async fn start_if_new(&self, start: WorkItem) -> Result<StartOutcome, ProviderError> {
        let _ = start;
        Err(ProviderError::permanent("start_if_new", "this store cannot tell whether a start is new"))
    }

    /// Moves a locked activity to the dead letters. The default hides it for a minute.
    async fn dead_letter_work_item(&self, token: &str, reason: &str) -> Result<(), ProviderError> {
        let _ = reason;
        self.abandon_work_item(token, Some(Duration::from_secs(60)), false).await
    }

    /// Called once when a runtime starts: the number of fetches after which an undecodable row becomes a dead letter.
    fn set_max_attempts(&self, max_attempts: u32) {
        let _ = max_attempts;
    }

    /// Announces a node that is about to take work. Its claims ([`OrchestrationFetch::node`], [`WorkFetch::node`]) are released
    /// as soon as the node has certainly ended: its membership was dropped, or its process is dead. A process that is only
    /// suspended keeps its leases. Until the membership is dropped the provider sends the heartbeats. `None` if the provider
    /// records no nodes; then only leases end.
    async fn join_node(
        &self,
        announcement: &NodeAnnouncement,
    ) -> Result<Option<Box<dyn NodeMembership>>, ProviderError> {
        let _ = announcement;
        Ok(None)
    }

    /// Watches an instance. `None` if the provider has no watches; then the client polls.
    fn watch(&self, instance: &str) -> Option<Box<dyn InstanceWatch>> {
        let _ = instance;
        None
    }

    /// The clock that decides when timers are due, if not this machine's. Nodes record its times.
    fn clock(&self) -> Option<Arc<dyn Clock>> {
        None
    }
}

/// An execution that continues as new ends, but its instance does not.
fn ends_instance(event: &Event) -> bool {
    event.is_terminal() && !matches!(event.kind, EventKind::OrchestrationContinuedAsNew { .. })
}

fn descriptor_of(first: Event) -> Option<OrchestrationDescriptor> {
    let EventKind::OrchestrationStarted { name, version, parent_instance, parent_id, .. } = first.kind else {
        return None;
    };
    Some(OrchestrationDescriptor { name, version, parent_instance, parent_id })
}
