//! The way from a caller to the store thread and back.

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

/// A request to the store thread. Small, because the channel allocates room for 31 requests at once, and allocations
/// above a kilobyte are slow.
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
    /// This process or another one has begun to write the store.
    WriteNoticed,
    /// A node has gone; its lock goes with it.
    NodeGone(Box<GoneNode>),
    /// The provider was dropped.
    Close,
}

const _: () = assert!(size_of::<Request>() <= 3 * size_of::<usize>(), "see its description");

/// A fetch on its way to the store thread.
#[derive(Debug)]
pub(crate) struct SubmittedFetch<F: QueueFetch> {
    pub(crate) request: F,
    /// Until when it waits.
    pub(crate) deadline: Timestamp,
    pub(crate) reply: FetchReply<F>,
}

/// A node that has left, with the lock that shows it.
#[derive(Debug)]
pub(crate) struct GoneNode {
    pub(crate) name: String,
    pub(crate) lock: Option<NodeLock>,
}

/// The failure of everyone who asks a store that has ended.
pub(crate) fn closed() -> StoreFailure {
    StoreFailure::new(FailureClass::Retryable, "the store is closed")
}

/// The callers' end of the way to the store thread.
pub(crate) struct Submitter {
    requests: mpsc::Sender<Request>,
    clock: Arc<dyn Clock>,
    /// Called after each request, where nobody blocks on the inbox.
    on_request: Option<OnRequest>,
    /// Sends [`Request::DemandRose`].
    tell_of_demand: TellOfDemand,
    enqueue_room: EnqueueRoom,
}

/// Called by a stepped store after each request.
pub(crate) type OnRequest = Arc<dyn Fn() + Send + Sync>;

impl Submitter {
    /// The callers' end, and the store's.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        on_request: Option<OnRequest>,
        options: &StoreOptions,
    ) -> (Arc<Self>, mpsc::Receiver<Request>) {
        let (requests, inbox) = mpsc::channel();
        let (teller, wake) = (requests.clone(), on_request.clone());
        let tell_of_demand = Arc::new(move || hand_in(&teller, wake.as_ref(), Request::DemandRose));
        let enqueue_room = EnqueueRoom::new(options);
        (Arc::new(Self { requests, clock, on_request, tell_of_demand, enqueue_room }), inbox)
    }

    /// The store's time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Submits an operation at once and returns a future that only waits for the answer, and is small. The caller has
    /// prepared the operation, so the store thread encodes nothing.
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

    /// Submits a client's message as soon as there is room for it.
    pub(crate) async fn enqueue(
        &self,
        operation: &'static str,
        op: Result<Op, Refusal>,
    ) -> Result<Answer, ProviderError> {
        let op = op.map_err(|refusal| refusal.into_provider_error(operation))?;
        let (mut job, answer) = Job::new(op, self.clock.now());
        let place = match self.enqueue_room.take_now(job.bytes()) {
            Some(place) => place,
            // Boxed, so that the future of an enqueue that need not wait stays small.
            None => Box::pin(self.enqueue_room.take(job.bytes())).await,
        };
        job.occupy(place);
        self.send(Request::Job(job));
        answer_of(operation, answer).await
    }

    /// Submits an operation that nobody waits for.
    pub(crate) fn post(&self, op: Op) {
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

    /// Sends a request. A store that has ended drops it, and with it the way back: the caller sees that.
    pub(crate) fn send(&self, request: Request) {
        hand_in(&self.requests, self.on_request.as_ref(), request);
    }
}

/// Sends a request, and wakes whoever runs a stepped store.
fn hand_in(requests: &mpsc::Sender<Request>, on_request: Option<&OnRequest>, request: Request) {
    let _ = requests.send(request);
    if let Some(on_request) = on_request {
        on_request();
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

/// Claims on their way to the caller of a fetch. Dropped unread, they are given back as if they had never been
/// made; else they would hang until their lease ends.
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

    /// The first claim, still on its way.
    pub(crate) fn first(&self) -> Option<&F::Claim> {
        self.claims.first()
    }

    /// The claims; from now on they are the caller's.
    pub(crate) fn take(mut self) -> Vec<F::Claim> {
        std::mem::take(&mut self.claims)
    }
}

impl<F: QueueFetch> Drop for Delivery<F> {
    fn drop(&mut self) {
        if let Some(store) = &self.store {
            self.claims.iter().map(F::release).for_each(|op| store.post(op));
        }
    }
}

/// The bound on client enqueues that wait for the store. Callers wait for room in order of arrival, instead of in memory
/// that grows.
#[derive(Debug)]
struct EnqueueRoom {
    places: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    bytes_max: u32,
}

/// The room of one enqueue, given back when dropped.
#[derive(Debug)]
pub(crate) struct EnqueuePlace {
    _place: Option<OwnedSemaphorePermit>,
    _bytes: Option<OwnedSemaphorePermit>,
}

impl EnqueueRoom {
    fn new(options: &StoreOptions) -> Self {
        let bytes_max =
            u32::try_from(options.enqueue_bytes_max.clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let places_max = options.enqueue_ops_max.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            places: Arc::new(Semaphore::new(places_max)),
            bytes: Arc::new(Semaphore::new(usize::try_from(bytes_max).unwrap_or(usize::MAX))),
            bytes_max,
        }
    }

    /// Takes room if there is some and nobody waits for it.
    fn take_now(&self, bytes: usize) -> Option<EnqueuePlace> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let bytes = Arc::clone(&self.bytes).try_acquire_many_owned(self.counted(bytes)).ok()?;
        Some(EnqueuePlace { _place: Some(place), _bytes: Some(bytes) })
    }

    /// Waits for room.
    async fn take(&self, bytes: usize) -> EnqueuePlace {
        // Acquiring fails only for a semaphore that was closed, and nobody closes these.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(self.counted(bytes)).await.ok();
        EnqueuePlace { _place: place, _bytes: bytes }
    }

    /// An operation that is larger than the whole room is let in when nothing else is.
    fn counted(&self, bytes: usize) -> u32 {
        u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes_max)
    }
}
