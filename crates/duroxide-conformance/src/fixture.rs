//! A provider on an empty store, with the calls that most validations make.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use duroxide_core::WorkItem;
use duroxide_provider::{
    DispatcherCapabilityFilter, OrchestrationItem, Provider, ProviderAdmin, ProviderError, Round,
    SessionFetchConfig, TagFilter,
};

use crate::{
    factory::ProviderFactory,
    fetch_times::FetchTimes,
    message::{continuation_start, raised, start},
    round::{completion, continuation, first_round, next_execution_round},
};

/// The lease of locks that must not end while a validation runs.
pub(crate) const LONG_LEASE: Duration = Duration::from_secs(120);

/// Time limit for something that must happen.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The pause between two fetches from a provider whose fetch does not wait.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A provider under test.
pub(crate) struct Fixture {
    pub(crate) provider: Arc<dyn Provider>,
    /// The lease of locks whose end a validation waits for.
    pub(crate) lease: Duration,
}

/// An instance locked by a fetch.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) item: OrchestrationItem,
    pub(crate) token: String,
    pub(crate) attempts: u32,
    pub(crate) times: FetchTimes,
}

/// An activity locked by a fetch.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) item: WorkItem,
    pub(crate) token: String,
    pub(crate) attempts: u32,
    pub(crate) times: FetchTimes,
}

impl Fixture {
    pub(crate) async fn new<F: ProviderFactory + ?Sized>(factory: &F) -> Self {
        Self { provider: factory.create_provider().await, lease: factory.lock_timeout() }
    }

    pub(crate) fn admin(&self) -> &dyn ProviderAdmin {
        self.provider
            .as_management_capability()
            .expect("this validation needs a provider whose as_management_capability() is Some")
    }

    // ---- orchestrator queue ---------------------------------------------------------------------------------

    pub(crate) async fn send(&self, item: WorkItem) {
        self.provider
            .enqueue_for_orchestrator(item, None)
            .await
            .expect("enqueue_for_orchestrator must accept a message");
    }

    pub(crate) async fn send_later(&self, item: WorkItem, delay: Duration) {
        self.provider
            .enqueue_for_orchestrator(item, Some(delay))
            .await
            .expect("enqueue_for_orchestrator must accept a delayed message");
    }

    /// One fetch that does not wait.
    pub(crate) async fn try_claim(&self) -> Option<Claim> {
        self.fetch_claim(LONG_LEASE, Duration::ZERO, None).await
    }

    /// One fetch with a capability filter that does not wait.
    pub(crate) async fn try_claim_filtered(&self, filter: &DispatcherCapabilityFilter) -> Option<Claim> {
        self.fetch_claim(LONG_LEASE, Duration::ZERO, Some(filter)).await
    }

    /// One fetch that may wait this long.
    pub(crate) async fn claim_within(&self, poll: Duration) -> Option<Claim> {
        self.fetch_claim(LONG_LEASE, poll, None).await
    }

    /// Fetches until an instance is returned.
    pub(crate) async fn claim(&self) -> Claim {
        self.claim_for(LONG_LEASE).await
    }

    /// Fetches with this lease until an instance is returned.
    pub(crate) async fn claim_for(&self, lease: Duration) -> Claim {
        let give_up = Instant::now() + WAIT_MAX + self.lease;
        loop {
            if let Some(claim) = self.fetch_claim(lease, Duration::from_millis(500), None).await {
                return claim;
            }
            assert!(Instant::now() < give_up, "fetch_orchestration_item must return work that is visible");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Fetches until an instance is returned, which must be this one.
    pub(crate) async fn claim_instance(&self, instance: &str) -> Claim {
        let claim = self.claim().await;
        assert_eq!(
            claim.item.instance, instance,
            "fetch_orchestration_item must return the only ready instance"
        );
        claim
    }

    /// Asserts that a fetch returns no instance now.
    pub(crate) async fn expect_no_claim(&self, why: &str) {
        if let Some(claim) = self.try_claim().await {
            panic!(
                "{why}: fetch_orchestration_item must return nothing, but returned {} with {:?}",
                claim.item.instance, claim.item.messages
            );
        }
    }

    async fn fetch_claim(
        &self,
        lease: Duration,
        poll: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Option<Claim> {
        let fetch = self.provider.fetch_orchestration_item(lease, poll, filter);
        let (fetched, times) = FetchTimes::of(fetch).await;
        let fetched = fetched.expect("fetch_orchestration_item must not fail on a healthy store");
        fetched.map(|(item, token, attempts)| Claim { item, token, attempts, times })
    }

    /// Commits a round by the plain `ack_orchestration_item`.
    pub(crate) async fn ack(&self, token: &str, round: Round) -> Result<(), ProviderError> {
        self.provider
            .ack_orchestration_item(
                token,
                round.execution_id,
                round.history_delta,
                round.worker_items,
                round.orchestrator_items,
                round.metadata,
                round.cancelled_activities,
            )
            .await
    }

    /// Commits a round that must be accepted.
    pub(crate) async fn commit(&self, claim: &Claim, round: Round) {
        self.ack(&claim.token, round)
            .await
            .expect("ack_orchestration_item must accept a round under a live lock");
    }

    /// Fetches with the short lease and renews the lock with the long one.
    pub(crate) async fn renewed_claim(&self) -> Claim {
        loop {
            let claim = self.claim_for(self.lease).await;
            match self.provider.renew_orchestration_item_lock(&claim.token, LONG_LEASE).await {
                Ok(()) => return claim,
                Err(error) if claim.times.may_have_ended(self.lease) => drop(error),
                Err(error) => panic!("a live instance lock must be renewable, but: {error}"),
            }
        }
    }

    pub(crate) async fn abandon(&self, claim: &Claim, delay: Option<Duration>, ignore_attempt: bool) {
        self.provider
            .abandon_orchestration_item(&claim.token, delay, ignore_attempt)
            .await
            .expect("abandon_orchestration_item must accept a live lock");
    }

    // ---- instances ------------------------------------------------------------------------------------------

    /// An instance that has run its first turn and waits: one `OrchestrationStarted` in history.
    pub(crate) async fn running(&self, instance: &str) {
        self.running_with(instance, first_round(instance)).await;
    }

    /// An instance whose first turn committed `round`.
    pub(crate) async fn running_with(&self, instance: &str, round: Round) {
        self.send(start(instance)).await;
        let claim = self.claim_instance(instance).await;
        self.commit(&claim, round).await;
    }

    /// Wakes an instance by an external event and commits `round` as its turn.
    pub(crate) async fn turn(&self, instance: &str, round: Round) {
        self.send(raised(instance, "wake")).await;
        let claim = self.claim_instance(instance).await;
        self.commit(&claim, round).await;
    }

    /// An instance that has ended: `OrchestrationStarted` and `OrchestrationCompleted` in history.
    pub(crate) async fn completed(&self, instance: &str) {
        self.running(instance).await;
        self.turn(instance, completion(instance, 1, 2, "done")).await;
    }

    /// Ends `execution_id` with event `event_id` in a continue-as-new and starts the next one, in two rounds of the
    /// plain contract.
    pub(crate) async fn continue_as_new(&self, instance: &str, execution_id: u64, event_id: u64) {
        self.turn(instance, continuation(instance, execution_id, event_id)).await;
        let claim = self.claim_instance(instance).await;
        assert_eq!(
            claim.item.messages,
            vec![continuation_start(instance)],
            "the ContinueAsNew item of a round must be delivered to its instance"
        );
        self.commit(&claim, next_execution_round(instance, execution_id + 1)).await;
    }

    // ---- worker queue ---------------------------------------------------------------------------------------

    pub(crate) async fn schedule(&self, item: WorkItem) {
        self.provider.enqueue_for_worker(item).await.expect("enqueue_for_worker must accept an activity");
    }

    /// One fetch of an activity without session or tag that does not wait.
    pub(crate) async fn try_work(&self) -> Option<Work> {
        self.try_work_with(LONG_LEASE, None, &TagFilter::DefaultOnly).await
    }

    /// One fetch of an activity that does not wait.
    pub(crate) async fn try_work_with(
        &self,
        lease: Duration,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
    ) -> Option<Work> {
        self.fetch_work(lease, Duration::ZERO, session, tags).await
    }

    /// Fetches until an activity without session or tag is returned.
    pub(crate) async fn work(&self) -> Work {
        self.work_for(LONG_LEASE).await
    }

    /// Fetches with this lease until an activity without session or tag is returned.
    pub(crate) async fn work_for(&self, lease: Duration) -> Work {
        self.work_with(lease, None, &TagFilter::DefaultOnly).await
    }

    /// Fetches until an activity is returned.
    pub(crate) async fn work_with(
        &self,
        lease: Duration,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
    ) -> Work {
        let give_up = Instant::now() + WAIT_MAX + self.lease;
        loop {
            if let Some(work) = self.fetch_work(lease, Duration::from_millis(500), session, tags).await {
                return work;
            }
            assert!(Instant::now() < give_up, "fetch_work_item must return an activity that is visible");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Fetches an activity with the short lease and renews the lock with the long one.
    pub(crate) async fn renewed_work(&self) -> Work {
        loop {
            let work = self.work_for(self.lease).await;
            match self.provider.renew_work_item_lock(&work.token, LONG_LEASE).await {
                Ok(()) => return work,
                Err(error) if work.times.may_have_ended(self.lease) => drop(error),
                Err(error) => panic!("a live activity lock must be renewable, but: {error}"),
            }
        }
    }

    /// Asserts that a fetch returns no activity now.
    pub(crate) async fn expect_no_work(&self, why: &str) {
        if let Some(work) = self.try_work().await {
            panic!("{why}: fetch_work_item must return nothing, but returned {:?}", work.item);
        }
    }

    async fn fetch_work(
        &self,
        lease: Duration,
        poll: Duration,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
    ) -> Option<Work> {
        let fetch = self.provider.fetch_work_item(lease, poll, session, tags);
        let (fetched, times) = FetchTimes::of(fetch).await;
        let fetched = fetched.expect("fetch_work_item must not fail on a healthy store");
        fetched.map(|(item, token, attempts)| Work { item, token, attempts, times })
    }
}

/// Asserts that a call failed with a permanent error.
pub(crate) fn assert_permanent<T: std::fmt::Debug>(result: Result<T, ProviderError>, what: &str) -> String {
    let error = result.expect_err(what);
    assert!(!error.is_retryable(), "{what}: the error must be permanent, but is retryable: {error}");
    error.message
}

/// Asserts that a call failed with a permanent error that contains a text of the contract.
pub(crate) fn assert_refused<T: std::fmt::Debug>(result: Result<T, ProviderError>, text: &str, what: &str) {
    let message = assert_permanent(result, what);
    assert!(message.contains(text), "{what}: the error must say {text:?}, but says {message:?}");
}

/// The time of our clock, in milliseconds since the epoch.
pub(crate) fn now_ms() -> u64 {
    let since_epoch = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("the clock stands after the epoch");
    u64::try_from(since_epoch.as_millis()).expect("the time fits into 64 bits")
}
