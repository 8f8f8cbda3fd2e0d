//! Submits requests to the store thread, and returns its answers.

use std::{
    fmt,
    future::Future,
    sync::{Arc, mpsc},
    time::Duration,
};

use duroxide_core::{Clock, Timestamp};
use duroxide_provider::{
    ProviderError, TellOfDemand,
    store::{ActivityFetch, Answer, FailureClass, InstanceFetch, Op, Refusal, StoreFailure},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{
    StoreOptions,
    fetch::{FetchReply, QueueFetch},
    job::{Answered, Job},
    nodes::NodeLock,
    readers::Read,
};

/// A request to the store thread. Small, because the channel allocates 31 requests at once, and allocations above 1 KiB are
/// slow.
#[derive(Debug)]
pub(crate) enum Request {
    /// Change something.
    Job(Job),
    /// Read something, where no reader has its own thread.
    Read(Box<Read>),
    /// Hand out instances.
    FetchInstances(Box<SubmittedFetch<InstanceFetch>>),
    /// Hand out activities.
    FetchActivities(Box<SubmittedFetch<ActivityFetch>>),
    /// A waiting fetch may want more than it did.
    DemandRose,
    /// A client watches from now on.
    Watched,
    /// A process, perhaps this one, has begun to write the store.
    WriteNoticed,
    /// A node has left; the store ends it under its lock.
    NodeGone(Box<GoneNode>),
    /// The provider was dropped.
    Close,
}

const _: () = assert!(size_of::<Request>() <= 3 * size_of::<usize>(), "see its description");

/// A fetch on its way to the store thread.
#[derive(Debug)]
pub(crate) struct SubmittedFetch<F: QueueFetch> {
    pub(crate) request: F,
    /// When the fetch stops waiting.
    pub(crate) deadline: Timestamp,
    pub(crate) reply: FetchReply<F>,
}

/// A node that has left, with its lock.
#[derive(Debug)]
pub(crate) struct GoneNode {
    pub(crate) name: String,
    pub(crate) lock: Option<NodeLock>,
}

/// The failure of every call of a store that has ended.
pub(crate) fn closed() -> StoreFailure {
    StoreFailure::new(FailureClass::Retryable, "the store is closed")
}

/// Sends the requests of callers to the store thread.
pub(crate) struct Submitter {
    requests: mpsc::Sender<Request>,
    clock: Arc<dyn Clock>,
    /// Called after each request of a stepped store, where no thread blocks on the inbox.
    on_request: Option<OnRequest>,
    /// Sends [`Request::DemandRose`].
    tell_of_demand: TellOfDemand,
    enqueue_limit: EnqueueLimit,
}

/// Called by a stepped store after each request.
pub(crate) type OnRequest = Arc<dyn Fn() + Send + Sync>;

impl Submitter {
    /// A submitter, and the inbox of the store thread.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        on_request: Option<OnRequest>,
        options: &StoreOptions,
    ) -> (Arc<Self>, mpsc::Receiver<Request>) {
        let (requests, inbox) = mpsc::channel();
        let (teller, wake) = (requests.clone(), on_request.clone());
        let tell_of_demand = Arc::new(move || {
            let _ = teller.send(Request::DemandRose);
            wake.iter().for_each(|wake| wake());
        });
        let enqueue_limit = EnqueueLimit::new(options);
        (Arc::new(Self { requests, clock, on_request, tell_of_demand, enqueue_limit }), inbox)
    }

    /// The store's time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Submits an operation at once and returns a small future that only waits for the answer. The operation is prepared on
    /// the caller's thread, so that the store thread encodes nothing.
    pub(crate) fn apply(
        &self,
        operation: &'static str,
        op: Result<Op, Refusal>,
    ) -> impl Future<Output = Result<Answer, ProviderError>> + Send + use<> {
        let submitted = op.map(|op| {
            let (job, answer) = Job::new(op, self.clock.now());
            self.send(Request::Job(job));
            answer
        });
        async move {
            let answer = submitted.map_err(|refusal| refusal.into_provider_error(operation))?;
            answer_of(operation, answer).await
        }
    }

    /// Submits a client's message as soon as the limit on enqueues permits it.
    pub(crate) async fn enqueue(
        &self,
        operation: &'static str,
        op: Result<Op, Refusal>,
    ) -> Result<Answer, ProviderError> {
        let op = op.map_err(|refusal| refusal.into_provider_error(operation))?;
        let (mut job, answer) = Job::new(op, self.clock.now());
        job.hold_permit(self.enqueue_limit.acquire(job.bytes()).await);
        self.send(Request::Job(job));
        answer_of(operation, answer).await
    }

    /// Submits an operation without a waiting caller.
    pub(crate) fn apply_unattended(&self, op: Op) {
        self.send(Request::Job(Job::unattended(op, self.clock.now())));
    }

    /// Waits for work, at most `poll_timeout`. `request` is the variant for this queue.
    pub(crate) async fn fetch<F: QueueFetch>(
        &self,
        operation: &str,
        fetch: F,
        poll_timeout: Duration,
        request: impl FnOnce(Box<SubmittedFetch<F>>) -> Request,
    ) -> Result<Delivery<F>, ProviderError> {
        if let Some(demand) = fetch.demand() {
            demand.on_rise(Arc::clone(&self.tell_of_demand));
        }
        let (reply, delivery) = oneshot::channel();
        let deadline = self.clock.now().saturating_add(poll_timeout);
        self.send(request(Box::new(SubmittedFetch { request: fetch, deadline, reply })));
        let delivery = delivery.await.unwrap_or_else(|_| Err(closed()));
        delivery.map_err(|failure| failure.into_provider_error(operation))
    }

    /// Sends a request. A store that has ended drops the request with its reply channel, which the caller notices.
    pub(crate) fn send(&self, request: Request) {
        let _ = self.requests.send(request);
        self.on_request.iter().for_each(|wake| wake());
    }
}

/// Waits for the answer to an operation.
async fn answer_of(
    operation: &'static str,
    answer: oneshot::Receiver<Answered>,
) -> Result<Answer, ProviderError> {
    let answer = answer.await.map_or_else(|_| Err(closed().into()), |answered| answered.answer);
    answer.map_err(|error| error.into_provider_error(operation))
}

impl fmt::Debug for Submitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submitter").finish_non_exhaustive()
    }
}

/// Claims on their way to the caller of a fetch. A delivery that is dropped unread releases its claims as if they had never
/// been made; otherwise their items would stay locked until the lease ends.
#[derive(Debug)]
pub(crate) struct Delivery<F: QueueFetch> {
    claims: Vec<F::Claim>,
    store: Option<Arc<Submitter>>,
}

impl<F: QueueFetch> Delivery<F> {
    pub(crate) fn new(claims: Vec<F::Claim>, store: Arc<Submitter>) -> Self {
        Self { claims, store: Some(store) }
    }

    /// Nothing was found in time.
    pub(crate) fn empty() -> Self {
        Self { claims: Vec::new(), store: None }
    }

    /// The first claim; it stays in the delivery.
    pub(crate) fn first(&self) -> Option<&F::Claim> {
        self.claims.first()
    }

    /// Takes the claims out; dropping the delivery releases nothing afterwards.
    pub(crate) fn take(mut self) -> Vec<F::Claim> {
        std::mem::take(&mut self.claims)
    }
}

impl<F: QueueFetch> Drop for Delivery<F> {
    fn drop(&mut self) {
        if let Some(store) = &self.store {
            self.claims.iter().map(F::release).for_each(|op| store.apply_unattended(op));
        }
    }
}

/// Limits the client enqueues that wait for the store, in number and in bytes. Further callers wait in order of arrival, so
/// that the queue of the store thread does not grow without bound.
#[derive(Debug)]
struct EnqueueLimit {
    operations: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    bytes_max: u32,
}

/// The permit of one enqueue, returned when dropped.
#[derive(Debug)]
pub(crate) struct EnqueuePermit {
    _operation: Option<OwnedSemaphorePermit>,
    _bytes: Option<OwnedSemaphorePermit>,
}

impl EnqueueLimit {
    fn new(options: &StoreOptions) -> Self {
        let bytes_max =
            u32::try_from(options.enqueue_bytes_max.clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let operations_max = options.enqueue_ops_max.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            operations: Arc::new(Semaphore::new(operations_max)),
            bytes: Arc::new(Semaphore::new(usize::try_from(bytes_max).unwrap_or(usize::MAX))),
            bytes_max,
        }
    }

    /// A permit: at once if one is free and no caller waits for it, otherwise in order of arrival.
    async fn acquire(&self, bytes: usize) -> EnqueuePermit {
        // An operation that is larger than the limit takes all of it, and so waits until it is alone.
        let count = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes_max);
        let (operations, bytes) = (&self.operations, &self.bytes);
        if let Ok(operation) = Arc::clone(operations).try_acquire_owned()
            && let Ok(bytes) = Arc::clone(bytes).try_acquire_many_owned(count)
        {
            return EnqueuePermit { _operation: Some(operation), _bytes: Some(bytes) };
        }
        // Boxed, so that the future of an enqueue that need not wait stays small.
        Box::pin(async move {
            // Acquiring fails only for a closed semaphore, and these are never closed.
            let operation = Arc::clone(operations).acquire_owned().await.ok();
            let bytes = Arc::clone(bytes).acquire_many_owned(count).await.ok();
            EnqueuePermit { _operation: operation, _bytes: bytes }
        })
        .await
    }
}
