//! A caller of a served store, in virtual time: it repeats retryable calls, as the runtime does.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use duroxide_core::{Clock, Timestamp, WorkItem};
use duroxide_provider::{
    OrchestrationClaim, OrchestrationFetch, Provider, ProviderError, TagFilter, WorkClaim, WorkFetch,
    invariant,
    store::{MessageRow, StoreSnapshot},
    testing::Turn,
};
use duroxide_sqlite::{SqliteOptions, SqliteReader};
use duroxide_store::{Idle, StoreBuilder, StoreDriver, StoreProvider};
use fault_vfs::Disk;

use crate::transcript::{completion_of, open};

const LOCK: Duration = Duration::from_secs(600);
/// Between two tries. All tries together take much less than a lock lasts.
const PAUSE: Duration = Duration::from_millis(50);
const TRIES_MAX: usize = 200;

struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) struct Caller {
    pub(crate) disk: Disk,
    provider: StoreProvider,
    store: StoreDriver,
    clock: Arc<ManualClock>,
    /// Another connection to the file, so that the writer is not the last to close it.
    beside: Option<SqliteReader>,
    /// The action between a failure and the next try.
    on_failure: Option<fn(&mut Caller)>,
    /// The content after the last answered call, for a check after a failure.
    pub(crate) last_state: StoreSnapshot,
    pub(crate) seen: Seen,
}

/// The failures that a caller has met.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Calls that failed, and may have happened or not.
    pub(crate) failures: usize,
    /// Repeated calls that found their lock: they had not happened.
    pub(crate) found_lock: usize,
    /// Repeated calls that found an invalid token: they had happened.
    pub(crate) found_done: usize,
}

impl Seen {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            failures: self.failures + other.failures,
            found_lock: self.found_lock + other.found_lock,
            found_done: self.found_done + other.found_done,
        }
    }
}

impl Caller {
    /// Serves the store of this disk.
    pub(crate) fn new(disk: Disk) -> Self {
        let opened = disk.clone();
        let clock = Arc::new(ManualClock(AtomicU64::new(1_000_000_000)));
        let mut nonce = 0;
        let (provider, store) = StoreBuilder::opening(move || Ok(open(&opened, SqliteOptions::default())))
            .with_clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .with_nonces(move || {
                nonce += 1;
                nonce
            })
            .stepped()
            .unwrap();
        let last_state = StoreSnapshot::default();
        Self {
            disk,
            provider,
            store,
            clock,
            beside: None,
            on_failure: None,
            last_state,
            seen: Seen::default(),
        }
    }

    /// Keeps another connection open in addition to the store's.
    pub(crate) fn beside_a_reader(mut self) -> Self {
        self.beside = open(&self.disk, SqliteOptions::default()).open_reader().unwrap();
        self
    }

    /// Does this between a failure and the next try.
    pub(crate) fn on_failure(mut self, then: fn(&mut Self)) -> Self {
        self.on_failure = Some(then);
        self
    }

    // ---- calls ----------------------------------------------------------------------------------------------

    /// Sends a client's message. It has no key, so it is sent again only if it is not there.
    pub(crate) fn send(&mut self, item: &WorkItem) {
        let data = MessageRow::new(item.clone(), None).unwrap().data;
        for _ in 0..TRIES_MAX {
            let sent = self.send_once(item);
            if sent.is_ok() || self.queued(&data) == 1 {
                return self.answered();
            }
            assert!(sent.unwrap_err().is_retryable());
            assert_eq!(self.queued(&data), 0);
        }
        panic!("the store does not come back");
    }

    /// Sends a client's message, and ignores the outcome.
    pub(crate) fn send_once(&mut self, item: &WorkItem) -> Result<(), ProviderError> {
        self.call(async |provider| provider.enqueue_for_orchestrator(item.clone(), None).await)
    }

    pub(crate) fn claim(&mut self) -> OrchestrationClaim {
        for _ in 0..TRIES_MAX {
            let request = OrchestrationFetch::new(LOCK, Duration::ZERO);
            let claims = self.tried(async |provider| provider.fetch_orchestration_items(&request).await);
            if let Some(claim) = claims.unwrap().pop() {
                assert_eq!(claim.attempt_count, 1, "a claim nobody was told of does not count");
                self.answered();
                return claim;
            }
            self.wait();
        }
        panic!("a claim that nobody was told of is not given back");
    }

    pub(crate) fn work(&mut self) -> WorkClaim {
        let tags = TagFilter::default();
        for _ in 0..TRIES_MAX {
            let request = WorkFetch::new(LOCK, Duration::ZERO, &tags);
            let claims = self.tried(async |provider| provider.fetch_work_items(&request).await);
            if let Some(claim) = claims.unwrap().pop() {
                assert_eq!(claim.attempt_count, 1, "a claim nobody was told of does not count");
                self.answered();
                return claim;
            }
            self.wait();
        }
        panic!("a claim that nobody was told of is not given back");
    }

    pub(crate) fn commit(&mut self, claim: &OrchestrationClaim, turn: Turn) {
        let round = turn.round();
        self.once(async |provider| provider.commit_round(&claim.lock_token, round.clone()).await);
    }

    pub(crate) fn ack(&mut self, work: &WorkClaim) {
        let completion = completion_of(&work.item);
        self.once(async |provider| provider.ack_work_item(&work.lock_token, Some(completion.clone())).await);
    }

    /// Everything in the store.
    pub(crate) fn state(&mut self) -> StoreSnapshot {
        let mut state = self.tried(async |provider| provider.snapshot().await).unwrap();
        assert_eq!(invariant::check(&state), []);
        state.taken_at = Timestamp::ZERO;
        state
    }

    /// Whether the store answers a read, and that only with an error that may go away.
    pub(crate) fn is_away(&mut self) -> bool {
        self.call(async |provider| provider.snapshot().await).is_err_and(|error| error.is_retryable())
    }

    // ---- trying ---------------------------------------------------------------------------------------------

    /// A call under a lock, repeated until it has happened.
    fn once(&mut self, call: impl AsyncFnMut(&StoreProvider) -> Result<(), ProviderError>) {
        let failures_before = self.seen.failures;
        let answer = self.tried(call);
        match (answer, self.seen.failures > failures_before) {
            (Ok(()), false) => {}
            (Ok(()), true) => self.seen.found_lock += 1,
            (Err(error), true) if error.is_lock_lost() => self.seen.found_done += 1,
            (Err(error), _) => panic!("{error}"),
        }
        self.answered();
    }

    /// A call, repeated while that may help.
    fn tried<T>(
        &mut self,
        mut call: impl AsyncFnMut(&StoreProvider) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        for _ in 0..TRIES_MAX {
            match self.call(&mut call) {
                Err(error) if error.is_retryable() => {}
                answer => return answer,
            }
        }
        panic!("the store does not come back");
    }

    fn call<T>(
        &mut self,
        mut call: impl AsyncFnMut(&StoreProvider) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let answer = complete(&mut self.store, call(&self.provider));
        if answer.is_err() {
            self.seen.failures += 1;
            self.on_failure.inspect(|then| then(self));
            self.wait();
        }
        answer
    }

    fn wait(&mut self) {
        self.clock.0.fetch_add(u64::try_from(PAUSE.as_micros()).unwrap(), Ordering::SeqCst);
    }

    fn answered(&mut self) {
        if self.on_failure.is_some() {
            self.last_state = self.state();
        }
    }

    fn queued(&mut self, data: &str) -> usize {
        let state = self.state();
        let messages = state.instances.iter().flat_map(|instance| &instance.messages);
        messages.filter(|message| message.data == data).count()
    }
}

/// Runs a call to its end.
fn complete<T>(store: &mut StoreDriver, call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    for _ in 0..8 {
        if let Poll::Ready(answer) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return answer;
        }
        assert_ne!(store.run(), Idle::Closed);
    }
    panic!("the call still waits");
}
