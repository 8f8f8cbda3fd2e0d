//! Providers that fail on purpose.
//!
//! [`Faulty`] hands every call on, batches and rounds included. [`PlainFaulty`] overrides only the required methods,
//! as users' wrappers do, so the runtime meets the default bodies. Both ask [`Faults`] before each call.

use std::{
    collections::{BTreeMap, HashMap},
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use duroxide_core::{Event, OrchestrationDescriptor, SystemStats, WorkItem};
use duroxide_provider::*;
use tokio::sync::watch;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails before it happens and may be tried again.
    Retryable,
    /// It fails before it happens, for good.
    Permanent,
    /// It panics before it happens.
    Panic,
    /// It happens, but its answer is lost.
    AnswerLost,
}

type Rule = Box<dyn FnMut(&'static str, u64) -> Option<Fault> + Send>;

/// Which calls fail, and how many were made.
#[derive(Clone)]
pub struct Faults {
    rule: Arc<Mutex<Option<Rule>>>,
    /// Calls by operation: made, and handed on to the store.
    calls: watch::Sender<BTreeMap<&'static str, (u64, u64)>>,
}

impl Default for Faults {
    fn default() -> Self {
        Self { rule: Arc::default(), calls: watch::Sender::new(BTreeMap::new()) }
    }
}

impl Faults {
    /// Asks `rule` from now on: it is told the operation and which call of it this is, counted from 1.
    pub fn inject(&self, rule: impl FnMut(&'static str, u64) -> Option<Fault> + Send + 'static) {
        *self.rule.lock().unwrap() = Some(Box::new(rule));
    }

    /// Nothing fails from now on.
    pub fn heal(&self) {
        *self.rule.lock().unwrap() = None;
    }

    /// How often an operation was called.
    pub fn made(&self, operation: &str) -> u64 {
        self.calls.borrow().get(operation).map_or(0, |calls| calls.0)
    }

    /// How often an operation reached the store.
    pub fn reached(&self, operation: &str) -> u64 {
        self.calls.borrow().get(operation).map_or(0, |calls| calls.1)
    }

    /// Waits until an operation reached the store `times` times.
    pub async fn until_reached(&self, operation: &'static str, times: u64) {
        let mut calls = self.calls.subscribe();
        let enough = |calls: &BTreeMap<&'static str, (u64, u64)>| {
            calls.get(operation).is_some_and(|calls| calls.1 >= times)
        };
        calls.wait_for(enough).await.unwrap();
    }

    async fn around<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let mut nth = 0;
        self.calls.send_modify(|calls| {
            let calls = calls.entry(operation).or_default();
            calls.0 += 1;
            nth = calls.0;
        });
        let fault = self.rule.lock().unwrap().as_mut().and_then(|rule| rule(operation, nth));
        match fault {
            None => {}
            Some(Fault::Retryable) => return Err(ProviderError::retryable(operation, "injected")),
            Some(Fault::Permanent) => return Err(ProviderError::permanent(operation, "injected")),
            Some(Fault::Panic) => panic!("injected into {operation}"),
            Some(Fault::AnswerLost) => {
                self.note_reached(operation);
                call.await?;
                return Err(ProviderError::retryable(operation, "answer lost"));
            }
        }
        self.note_reached(operation);
        call.await
    }

    fn note_reached(&self, operation: &'static str) {
        self.calls.send_modify(|calls| calls.entry(operation).or_default().1 += 1);
    }
}

/// A provider that fails as it is told; everything else is handed on.
pub struct Faulty {
    pub inner: Arc<dyn Provider>,
    pub faults: Faults,
    /// Hands out executions whatever their pinned version, like a provider that knows no filter.
    pub ignores_filter: bool,
    /// Instances whose history cannot be decoded behind its first events.
    pub damaged: Mutex<BTreeMap<String, usize>>,
}

/// The same, with the default bodies of everything that has one.
pub struct PlainFaulty {
    pub inner: Arc<dyn Provider>,
    pub faults: Faults,
}

impl Faulty {
    pub fn new(inner: Arc<dyn Provider>) -> (Arc<Self>, Faults) {
        let store = Self::over(inner);
        let faults = store.faults.clone();
        (Arc::new(store), faults)
    }

    /// A wrapper to be adjusted before it is shared.
    pub fn over(inner: Arc<dyn Provider>) -> Self {
        Self { inner, faults: Faults::default(), ignores_filter: false, damaged: Mutex::default() }
    }

    fn damage(&self, instance: &str, mut loaded: LoadedExecution) -> LoadedExecution {
        if let Some(readable) = self.damaged.lock().unwrap().get(instance) {
            loaded.history.truncate(*readable);
            let position = loaded.history.len();
            loaded.history_error =
                Some(format!("Failed to deserialize event at position {position}: nonsense"));
        }
        loaded
    }
}

impl PlainFaulty {
    pub fn new(inner: Arc<dyn Provider>) -> (Arc<Self>, Faults) {
        let faults = Faults::default();
        (Arc::new(Self { inner, faults: faults.clone() }), faults)
    }
}

type Answer<T> = Result<T, ProviderError>;

/// Implements a provider that asks its faults before each required method. `async_trait` does not look into macros,
/// so the whole impl is made by one.
macro_rules! impl_faulty {
    ($provider:ty, { $($more:tt)* }) => {
        #[async_trait]
        impl Provider for $provider {
        fn name(&self) -> &str {
            "faulty"
        }

        fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
            self.inner.as_management_capability()
        }

        async fn fetch_orchestration_item(
            &self,
            lock_timeout: Duration,
            poll_timeout: Duration,
            filter: Option<&DispatcherCapabilityFilter>,
        ) -> Answer<Option<(OrchestrationItem, String, u32)>> {
            let call = self.inner.fetch_orchestration_item(lock_timeout, poll_timeout, filter);
            self.faults.around("fetch_orchestration_item", call).await
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
        ) -> Answer<()> {
            let call = self.inner.ack_orchestration_item(
                lock_token,
                execution_id,
                history_delta,
                worker_items,
                orchestrator_items,
                metadata,
                cancelled_activities,
            );
            self.faults.around("ack_orchestration_item", call).await
        }

        async fn abandon_orchestration_item(
            &self,
            lock_token: &str,
            delay: Option<Duration>,
            ignore_attempt: bool,
        ) -> Answer<()> {
            let call = self.inner.abandon_orchestration_item(lock_token, delay, ignore_attempt);
            self.faults.around("abandon_orchestration_item", call).await
        }

        async fn renew_orchestration_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
            let call = self.inner.renew_orchestration_item_lock(token, extend_for);
            self.faults.around("renew_orchestration_item_lock", call).await
        }

        async fn read(&self, instance: &str) -> Answer<Vec<Event>> {
            self.faults.around("read", self.inner.read(instance)).await
        }

        async fn read_with_execution(&self, instance: &str, execution_id: u64) -> Answer<Vec<Event>> {
            let call = self.inner.read_with_execution(instance, execution_id);
            self.faults.around("read_with_execution", call).await
        }

        async fn append_with_execution(
            &self,
            instance: &str,
            execution_id: u64,
            new_events: Vec<Event>,
        ) -> Answer<()> {
            self.inner.append_with_execution(instance, execution_id, new_events).await
        }

        async fn enqueue_for_worker(&self, item: WorkItem) -> Answer<()> {
            self.inner.enqueue_for_worker(item).await
        }

        async fn enqueue_for_orchestrator(&self, item: WorkItem, delay: Option<Duration>) -> Answer<()> {
            self.inner.enqueue_for_orchestrator(item, delay).await
        }

        async fn fetch_work_item(
            &self,
            lock_timeout: Duration,
            poll_timeout: Duration,
            session: Option<&SessionFetchConfig>,
            tag_filter: &TagFilter,
        ) -> Answer<Option<(WorkItem, String, u32)>> {
            let call = self.inner.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter);
            self.faults.around("fetch_work_item", call).await
        }

        async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Answer<()> {
            self.faults.around("ack_work_item", self.inner.ack_work_item(token, completion)).await
        }

        async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
            let call = self.inner.renew_work_item_lock(token, extend_for);
            self.faults.around("renew_work_item_lock", call).await
        }

        async fn abandon_work_item(
            &self,
            token: &str,
            delay: Option<Duration>,
            ignore_attempt: bool,
        ) -> Answer<()> {
            let call = self.inner.abandon_work_item(token, delay, ignore_attempt);
            self.faults.around("abandon_work_item", call).await
        }

        async fn renew_session_lock(
            &self,
            owner_ids: &[&str],
            extend_for: Duration,
            idle_timeout: Duration,
        ) -> Answer<usize> {
            let call = self.inner.renew_session_lock(owner_ids, extend_for, idle_timeout);
            self.faults.around("renew_session_lock", call).await
        }

        async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Answer<usize> {
            self.inner.cleanup_orphaned_sessions(idle_timeout).await
        }

        async fn get_custom_status(
            &self,
            instance: &str,
            last_seen_version: u64,
        ) -> Answer<Option<(Option<String>, u64)>> {
            self.inner.get_custom_status(instance, last_seen_version).await
        }

        async fn get_kv_value(&self, instance: &str, key: &str) -> Answer<Option<String>> {
            self.inner.get_kv_value(instance, key).await
        }

        async fn get_kv_all_values(&self, instance: &str) -> Answer<HashMap<String, String>> {
            self.inner.get_kv_all_values(instance).await
        }

        async fn get_instance_stats(&self, instance: &str) -> Answer<Option<SystemStats>> {
            self.inner.get_instance_stats(instance).await
        }

        $($more)*
        }
    };
}

impl_faulty!(PlainFaulty, {});

impl_faulty!(Faulty, {
    async fn commit_round(&self, lock_token: &str, round: Round) -> Answer<()> {
        self.faults.around("commit_round", self.inner.commit_round(lock_token, round)).await
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
    ) -> Answer<Vec<OrchestrationClaim>> {
        let mut request = request.clone();
        request.filter = request.filter.filter(|_| !self.ignores_filter);
        let call = self.inner.fetch_orchestration_items(&request);
        self.faults.around("fetch_orchestration_items", call).await
    }

    async fn load_execution(&self, instance: &str, execution_id: u64) -> Answer<LoadedExecution> {
        let call = self.inner.load_execution(instance, execution_id);
        let loaded = self.faults.around("load_execution", call).await?;
        Ok(self.damage(instance, loaded))
    }

    async fn fetch_work_items(&self, request: &WorkFetch<'_>) -> Answer<Vec<WorkClaim>> {
        self.faults.around("fetch_work_items", self.inner.fetch_work_items(request)).await
    }

    async fn read_status(&self, instance: &str) -> Answer<Option<StatusSnapshot>> {
        self.inner.read_status(instance).await
    }

    async fn read_descriptor(&self, instance: &str) -> Answer<Option<OrchestrationDescriptor>> {
        self.faults.around("read_descriptor", self.inner.read_descriptor(instance)).await
    }

    async fn last_event_id(&self, instance: &str, execution_id: u64) -> Answer<Option<u64>> {
        self.inner.last_event_id(instance, execution_id).await
    }

    async fn dead_letter_work_item(&self, token: &str, reason: &str) -> Answer<()> {
        self.faults.around("dead_letter_work_item", self.inner.dead_letter_work_item(token, reason)).await
    }

    fn set_max_attempts(&self, max_attempts: u32) {
        self.inner.set_max_attempts(max_attempts);
    }

    fn watch(&self, instance: &str) -> Option<Box<dyn InstanceWatch>> {
        self.inner.watch(instance)
    }
});
