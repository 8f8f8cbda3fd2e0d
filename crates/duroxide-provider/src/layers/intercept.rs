//! Providers around others.

use std::{future::Future, ops::Deref, sync::Arc};

use crate::{operation_of, provider::ack_round, signatures::*};

type Answer<T> = Result<T, ProviderError>;

/// Hooks of a test into the calls between a runtime and a store. The defaults let every call pass.
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

    /// Wraps the call; override to act before and after it.
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

    /// Called before a turn is committed; may change the round.
    fn commit(&self, _events: &mut [Event], _metadata: &mut ExecutionMetadata) {}

    /// Called with each fetched item and its attempt.
    fn fetched(&self, _item: &OrchestrationItem, _attempt: u32) {}

    /// The filter with which a fetch reaches the store.
    fn filter<'a>(
        &self,
        filter: Option<&'a DispatcherCapabilityFilter>,
    ) -> Option<&'a DispatcherCapabilityFilter> {
        filter
    }

    /// Replaces the provider's answer to `as_management_capability`.
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
    /// The orchestrator queue.
    Orchestrator,
    /// The worker queue.
    Worker,
}

/// A provider with all the methods of the one behind it, batches and rounds included.
#[expect(missing_debug_implementations, reason = "a provider need not show itself")]
pub struct FullyIntercepted<I> {
    store: Arc<dyn Provider>,
    /// The hooks.
    pub intercept: I,
}

impl<I: Intercept> FullyIntercepted<I> {
    /// A provider between a runtime and this store.
    pub fn new(store: Arc<dyn Provider>, intercept: I) -> Arc<Self> {
        Arc::new(Self { store, intercept })
    }

    fn see_round(&self, round: &mut Round) {
        self.intercept.commit(&mut round.history_delta, &mut round.metadata);
        if let Some(next) = &mut round.next_execution {
            self.intercept.commit(&mut next.history_delta, &mut next.metadata);
        }
    }
}

crate::impl_provider_for_layer!([I: Intercept] FullyIntercepted<I>);

impl<I: Intercept> ProviderLayer for FullyIntercepted<I> {
    fn inner(&self) -> &dyn Provider {
        &*self.store
    }

    fn around<T: Send>(
        &self,
        method: &'static str,
        call: impl Future<Output = Answer<T>> + Send,
    ) -> impl Future<Output = Answer<T>> + Send {
        self.intercept.around(operation_of(method), call)
    }

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
        let fetched = self.around("fetch_orchestration_item", call).await?;
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
        self.around("ack_orchestration_item", call).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        let delay = self.intercept.abandon(Queue::Orchestrator, delay, ignore_attempt);
        let call = self.store.abandon_orchestration_item(lock_token, delay, ignore_attempt);
        self.around("abandon_orchestration_item", call).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        let delay = self.intercept.abandon(Queue::Worker, delay, ignore_attempt);
        self.around("abandon_work_item", self.store.abandon_work_item(token, delay, ignore_attempt)).await
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
        self.around("fetch_work_item", call).await
    }

    async fn commit_round(&self, lock_token: &str, mut round: Round) -> Answer<()> {
        self.see_round(&mut round);
        self.around("commit_round", self.store.commit_round(lock_token, round)).await
    }

    async fn commit_round_ref(&self, lock_token: &str, round: &Round) -> Answer<()> {
        let mut round = round.clone();
        self.see_round(&mut round);
        self.around("commit_round_ref", self.store.commit_round_ref(lock_token, &round)).await
    }

    async fn fetch_orchestration_items(
        &self,
        request: &OrchestrationFetch<'_>,
    ) -> Answer<Vec<OrchestrationClaim>> {
        let mut request = request.clone();
        request.filter = self.intercept.filter(request.filter);
        let call = self.store.fetch_orchestration_items(&request);
        self.around("fetch_orchestration_items", call).await
    }
}

/// A provider with only the required methods, like those that users write: the default bodies send every call
/// through here. A test may ask for whole rounds too.
#[expect(missing_debug_implementations, reason = "a provider need not show itself")]
pub struct Intercepted<I>(FullyIntercepted<I>);

impl<I: Intercept> Intercepted<I> {
    /// A provider between a runtime and this store.
    pub fn new(store: Arc<dyn Provider>, intercept: I) -> Arc<Self> {
        Arc::new(Self(FullyIntercepted { store, intercept }))
    }
}

/// Lets a test read `intercept`.
impl<I> Deref for Intercepted<I> {
    type Target = FullyIntercepted<I>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

macro_rules! impl_intercepted {
    (
        ()
        questions $questions:tt
        required { $(fn $call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* }
        defaulted $defaulted:tt
    ) => {
        #[async_trait]
        impl<I: Intercept> Provider for Intercepted<I> {
            $(async fn $call(&self $(, $argument: $type)*) -> Answer<$answer> {
                Provider::$call(&self.0 $(, $argument)*).await
            })*

            fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
                Provider::as_management_capability(&self.0)
            }

            fn commits_rounds(&self) -> bool {
                self.0.intercept.commits_rounds()
            }

            async fn commit_round(&self, lock_token: &str, round: Round) -> Answer<()> {
                if !self.0.intercept.commits_rounds() {
                    return ack_round(self, lock_token, round).await;
                }
                Provider::commit_round(&self.0, lock_token, round).await
            }

            /// Activities are asked to stop in front of plain providers too.
            async fn renew_work_item(&self, token: &str, extend_for: Duration) -> Answer<RenewedWorkItem> {
                Provider::renew_work_item(&self.0, token, extend_for).await
            }
        }
    };
}

crate::provider_methods!(impl_intercepted, ());
