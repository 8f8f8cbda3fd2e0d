//! Providers around others.

use std::{collections::HashMap, future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;
use duroxide_core::{Event, OrchestrationDescriptor, SystemStats, WorkItem};

use crate::{
    DispatcherCapabilityFilter, ExecutionMetadata, InstanceWatch, LoadedExecution, NodeAnnouncement,
    NodeMembership, OrchestrationClaim, OrchestrationFetch, OrchestrationItem, Provider, ProviderAdmin,
    ProviderError, RenewedWorkItem, Round, ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome,
    StatusSnapshot, TagFilter, WorkClaim, WorkFetch, provider::ack_round,
};

type Answer<T> = Result<T, ProviderError>;

/// What a test does with the calls between a runtime and a store. The defaults let everything pass.
#[async_trait]
pub trait Intercept: Send + Sync + 'static {
    /// Called before each call with the name of the method; an error is returned in place of the store's answer.
    async fn before(&self, _method: &'static str) -> Answer<()> {
        Ok(())
    }

    /// Called after each call that succeeded; an error hides the success, as if the answer had been lost.
    async fn after(&self, _method: &'static str) -> Answer<()> {
        Ok(())
    }

    /// Makes a call, for who wants to decide before it what happens after it.
    fn around<T: Send>(
        &self,
        method: &'static str,
        call: impl Future<Output = Answer<T>> + Send,
    ) -> impl Future<Output = Answer<T>> + Send {
        async move {
            self.before(method).await?;
            let answer = call.await?;
            self.after(method).await?;
            Ok(answer)
        }
    }

    /// Whether an [`Intercepted`] provider commits rounds whole, like the store behind it.
    fn commits_rounds(&self) -> bool {
        false
    }

    /// The delay with which an abandon reaches the store.
    fn abandon(&self, _queue: Queue, delay: Option<Duration>, _ignore_attempt: bool) -> Option<Duration> {
        delay
    }

    /// Sees what a turn is about to commit, and may change it.
    fn commit(&self, _events: &mut [Event], _metadata: &mut ExecutionMetadata) {}

    /// Sees what a fetch brings, with its attempt.
    fn fetched(&self, _item: &OrchestrationItem, _attempt: u32) {}

    /// The filter with which a fetch reaches the store.
    fn filter<'a>(
        &self,
        filter: Option<&'a DispatcherCapabilityFilter>,
    ) -> Option<&'a DispatcherCapabilityFilter> {
        filter
    }

    /// What the provider says of its management.
    fn management<'a>(&'a self, store: &'a dyn Provider) -> Option<&'a dyn ProviderAdmin> {
        store.as_management_capability()
    }

    /// How long a fetch of activities waits in the store.
    fn work_poll_timeout(&self, poll_timeout: Duration) -> Duration {
        poll_timeout
    }
}

/// Which queue an abandoned item goes back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// That of instances.
    Orchestrator,
    /// That of activities.
    Worker,
}

/// A provider with only the required methods, like those that users write: the default bodies send every call
/// through here. A test may ask for whole rounds too.
#[expect(missing_debug_implementations, reason = "a provider need not show itself")]
pub struct Intercepted<I> {
    store: Arc<dyn Provider>,
    /// What is done with the calls.
    pub intercept: I,
}

/// A provider with all the methods of the one behind it, batches and rounds included.
#[expect(missing_debug_implementations, reason = "a provider need not show itself")]
pub struct FullyIntercepted<I> {
    store: Arc<dyn Provider>,
    /// What is done with the calls.
    pub intercept: I,
}

impl<I: Intercept> Intercepted<I> {
    /// A provider between a runtime and this store.
    pub fn new(store: Arc<dyn Provider>, intercept: I) -> Arc<Self> {
        Arc::new(Self { store, intercept })
    }
}

impl<I: Intercept> FullyIntercepted<I> {
    /// A provider between a runtime and this store.
    pub fn new(store: Arc<dyn Provider>, intercept: I) -> Arc<Self> {
        Arc::new(Self { store, intercept })
    }
}

/// Implements a provider whose required methods are intercepted. `async_trait` does not look into macros, so the
/// whole impl is made by one.
macro_rules! impl_intercepted {
    ($provider:ident, { $($more:tt)* }) => {
        #[async_trait]
        impl<I: Intercept> Provider for $provider<I> {
            fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
                self.intercept.management(&*self.store)
            }

            async fn fetch_orchestration_item(
                &self,
                lock_timeout: Duration,
                poll_timeout: Duration,
                filter: Option<&DispatcherCapabilityFilter>,
            ) -> Answer<Option<(OrchestrationItem, String, u32)>> {
                let filter = self.intercept.filter(filter);
                let call = self.store.fetch_orchestration_item(lock_timeout, poll_timeout, filter);
                let fetched = self.intercept.around("fetch_orchestration_item", call).await?;
                if let Some((item, _, attempt)) = &fetched {
                    self.intercept.fetched(item, *attempt);
                }
                Ok(fetched)
            }

            async fn ack_orchestration_item(
                &self,
                lock_token: &str,
                execution_id: u64,
                mut history_delta: Vec<Event>,
                worker_items: Vec<WorkItem>,
                orchestrator_items: Vec<WorkItem>,
                mut metadata: ExecutionMetadata,
                cancelled_activities: Vec<ScheduledActivityIdentifier>,
            ) -> Answer<()> {
                self.intercept.commit(&mut history_delta, &mut metadata);
                let call = self.store.ack_orchestration_item(
                    lock_token,
                    execution_id,
                    history_delta,
                    worker_items,
                    orchestrator_items,
                    metadata,
                    cancelled_activities,
                );
                self.intercept.around("ack_orchestration_item", call).await
            }

            async fn abandon_orchestration_item(
                &self,
                lock_token: &str,
                delay: Option<Duration>,
                ignore_attempt: bool,
            ) -> Answer<()> {
                let delay = self.intercept.abandon(Queue::Orchestrator, delay, ignore_attempt);
                let call = self.store.abandon_orchestration_item(lock_token, delay, ignore_attempt);
                self.intercept.around("abandon_orchestration_item", call).await
            }

            async fn renew_orchestration_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
                let call = self.store.renew_orchestration_item_lock(token, extend_for);
                self.intercept.around("renew_orchestration_item_lock", call).await
            }

            async fn read(&self, instance: &str) -> Answer<Vec<Event>> {
                self.intercept.around("read", self.store.read(instance)).await
            }

            async fn read_with_execution(&self, instance: &str, execution_id: u64) -> Answer<Vec<Event>> {
                self.intercept.around("read_with_execution", self.store.read_with_execution(instance, execution_id)).await
            }

            async fn append_with_execution(&self, instance: &str, execution_id: u64, events: Vec<Event>) -> Answer<()> {
                let call = self.store.append_with_execution(instance, execution_id, events);
                self.intercept.around("append_with_execution", call).await
            }

            async fn enqueue_for_worker(&self, item: WorkItem) -> Answer<()> {
                self.intercept.around("enqueue_for_worker", self.store.enqueue_for_worker(item)).await
            }

            async fn enqueue_for_orchestrator(&self, item: WorkItem, delay: Option<Duration>) -> Answer<()> {
                self.intercept.around("enqueue_for_orchestrator", self.store.enqueue_for_orchestrator(item, delay)).await
            }

            async fn fetch_work_item(
                &self,
                lock_timeout: Duration,
                poll_timeout: Duration,
                session: Option<&SessionFetchConfig>,
                tag_filter: &TagFilter,
            ) -> Answer<Option<(WorkItem, String, u32)>> {
                let poll_timeout = self.intercept.work_poll_timeout(poll_timeout);
                let call = self.store.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter);
                self.intercept.around("fetch_work_item", call).await
            }

            async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Answer<()> {
                self.intercept.around("ack_work_item", self.store.ack_work_item(token, completion)).await
            }

            async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
                self.intercept.around("renew_work_item_lock", self.store.renew_work_item_lock(token, extend_for)).await
            }

            async fn renew_work_item(&self, token: &str, extend_for: Duration) -> Answer<RenewedWorkItem> {
                self.intercept.around("renew_work_item_lock", self.store.renew_work_item(token, extend_for)).await
            }

            async fn abandon_work_item(
                &self,
                token: &str,
                delay: Option<Duration>,
                ignore_attempt: bool,
            ) -> Answer<()> {
                let delay = self.intercept.abandon(Queue::Worker, delay, ignore_attempt);
                self.intercept.around("abandon_work_item", self.store.abandon_work_item(token, delay, ignore_attempt)).await
            }

            async fn renew_session_lock(&self, owners: &[&str], extend_for: Duration, idle: Duration) -> Answer<usize> {
                self.intercept.around("renew_session_lock", self.store.renew_session_lock(owners, extend_for, idle)).await
            }

            async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Answer<usize> {
                self.intercept.around("cleanup_orphaned_sessions", self.store.cleanup_orphaned_sessions(idle_timeout)).await
            }

            async fn get_custom_status(&self, instance: &str, last_seen: u64) -> Answer<Option<(Option<String>, u64)>> {
                self.intercept.around("get_custom_status", self.store.get_custom_status(instance, last_seen)).await
            }

            async fn get_kv_value(&self, instance: &str, key: &str) -> Answer<Option<String>> {
                self.intercept.around("get_kv_value", self.store.get_kv_value(instance, key)).await
            }

            async fn get_kv_all_values(&self, instance: &str) -> Answer<HashMap<String, String>> {
                self.intercept.around("get_kv_all_values", self.store.get_kv_all_values(instance)).await
            }

            async fn get_instance_stats(&self, instance: &str) -> Answer<Option<SystemStats>> {
                self.intercept.around("get_instance_stats", self.store.get_instance_stats(instance)).await
            }

            $($more)*
        }
    };
}

impl_intercepted!(Intercepted, {
    fn commits_rounds(&self) -> bool {
        self.intercept.commits_rounds()
    }

    async fn commit_round(&self, lock_token: &str, mut round: Round) -> Answer<()> {
        if !self.intercept.commits_rounds() {
            return ack_round(self, lock_token, round).await;
        }
        see_round(&self.intercept, &mut round);
        self.intercept.around("commit_round", self.store.commit_round(lock_token, round)).await
    }
});

impl_intercepted!(FullyIntercepted, {
    fn commits_rounds(&self) -> bool {
        self.store.commits_rounds()
    }

    async fn commit_round(&self, lock_token: &str, mut round: Round) -> Answer<()> {
        see_round(&self.intercept, &mut round);
        self.intercept.around("commit_round", self.store.commit_round(lock_token, round)).await
    }

    async fn commit_round_ref(&self, lock_token: &str, round: &Round) -> Answer<()> {
        let mut round = round.clone();
        see_round(&self.intercept, &mut round);
        self.intercept.around("commit_round", self.store.commit_round_ref(lock_token, &round)).await
    }

    fn serves_batches(&self) -> bool {
        self.store.serves_batches()
    }

    async fn fetch_orchestration_items(
        &self,
        request: &OrchestrationFetch<'_>,
    ) -> Answer<Vec<OrchestrationClaim>> {
        let mut request = request.clone();
        request.filter = self.intercept.filter(request.filter);
        let call = self.store.fetch_orchestration_items(&request);
        self.intercept.around("fetch_orchestration_items", call).await
    }

    async fn load_execution(&self, instance: &str, execution_id: u64) -> Answer<LoadedExecution> {
        let call = self.store.load_execution(instance, execution_id);
        self.intercept.around("load_execution", call).await
    }

    async fn fetch_work_items(&self, request: &WorkFetch<'_>) -> Answer<Vec<WorkClaim>> {
        self.intercept.around("fetch_work_items", self.store.fetch_work_items(request)).await
    }

    async fn read_status(&self, instance: &str) -> Answer<Option<StatusSnapshot>> {
        self.intercept.around("read_status", self.store.read_status(instance)).await
    }

    async fn read_descriptor(&self, instance: &str) -> Answer<Option<OrchestrationDescriptor>> {
        self.intercept.around("read_descriptor", self.store.read_descriptor(instance)).await
    }

    async fn last_event_id(&self, instance: &str, execution_id: u64) -> Answer<Option<u64>> {
        self.intercept.around("last_event_id", self.store.last_event_id(instance, execution_id)).await
    }

    async fn read_status_or_pending(&self, instance: &str) -> Answer<Option<StatusSnapshot>> {
        let read = self.store.read_status_or_pending(instance);
        self.intercept.around("read_status_or_pending", read).await
    }

    async fn mailbox_holds(&self, instance: &str, at_least: u64) -> Answer<Option<bool>> {
        self.intercept.around("mailbox_holds", self.store.mailbox_holds(instance, at_least)).await
    }

    async fn start_if_new(&self, start: WorkItem) -> Answer<StartOutcome> {
        self.intercept.around("start_if_new", self.store.start_if_new(start)).await
    }

    async fn dead_letter_work_item(&self, token: &str, reason: &str) -> Answer<()> {
        self.intercept.around("dead_letter_work_item", self.store.dead_letter_work_item(token, reason)).await
    }

    fn set_max_attempts(&self, max_attempts: u32) {
        self.store.set_max_attempts(max_attempts);
    }

    async fn join_node(&self, announcement: &NodeAnnouncement) -> Answer<Option<Box<dyn NodeMembership>>> {
        self.intercept.around("join_node", self.store.join_node(announcement)).await
    }

    fn watch(&self, instance: &str) -> Option<Box<dyn InstanceWatch>> {
        self.store.watch(instance)
    }
});

fn see_round(intercept: &impl Intercept, round: &mut Round) {
    intercept.commit(&mut round.history_delta, &mut round.metadata);
    if let Some(next) = &mut round.next_execution {
        intercept.commit(&mut next.history_delta, &mut next.metadata);
    }
}
