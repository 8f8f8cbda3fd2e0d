//! The way from a caller to the store thread and back.

use std::{
    fmt,
    future::Future,
    sync::{Arc, mpsc},
};

use duroxide_core::{Clock, Timestamp};
use duroxide_provider::{
    TellOfDemand,
    store::{
        ActivityFetch, Answer, ApplyError, FailureClass, InstanceFetch, Op, StoreFailure, StoreReader, caught,
    },
};
use tokio::sync::oneshot;

use crate::{
    admission::Admitted,
    fetch::{FetchReply, QueueFetch},
    job::Job,
    log,
    nodes::NodeLock,
};

/// A request to the store thread. Small, because the channel allocates room for 31 requests at once, and allocations
/// above a kilobyte are slow.
#[derive(Debug)]
pub(crate) enum Request {
    /// Change something.
    Job(Job),
    /// Read something, where no reader has its own thread.
    Read(Read),
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
#[derive(Clone)]
pub(crate) struct Submitter {
    requests: mpsc::Sender<Request>,
    clock: Arc<dyn Clock>,
    /// Called after each request, where nobody blocks on the inbox.
    on_request: Option<OnRequest>,
    /// Sends [`Request::DemandRose`].
    tell_of_demand: TellOfDemand,
}

/// Called by a stepped store after each request.
pub(crate) type OnRequest = Arc<dyn Fn() + Send + Sync>;

impl Submitter {
    /// The callers' end, and the store's.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        on_request: Option<OnRequest>,
    ) -> (Self, mpsc::Receiver<Request>) {
        let (requests, inbox) = mpsc::channel();
        let (teller, wake) = (requests.clone(), on_request.clone());
        let tell_of_demand = Arc::new(move || hand_in(&teller, wake.as_ref(), Request::DemandRose));
        (Self { requests, clock, on_request, tell_of_demand }, inbox)
    }

    /// The store's time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Hands an operation in, as of now. Returns the way to its answer.
    pub(crate) fn apply(
        &self,
        op: Op,
        place: Option<Admitted>,
    ) -> impl Future<Output = Result<Answer, ApplyError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Job(Job::new(op, self.clock.now(), reply, place)));
        async { answer.await.map_or_else(|_| Err(closed().into()), |answered| answered.answer) }
    }

    /// Hands an operation in that nobody waits for.
    pub(crate) fn post(&self, op: Op) {
        self.send(Request::Job(Job::unattended(op, self.clock.now())));
    }

    /// Waits for work, at most `poll_timeout`.
    pub(crate) async fn fetch<F: QueueFetch>(
        &self,
        fetch: F,
        poll_timeout: std::time::Duration,
    ) -> Result<Delivery<F>, StoreFailure> {
        if let Some(demand) = fetch.demand() {
            demand.on_rise(Arc::clone(&self.tell_of_demand));
        }
        let (reply, delivery) = oneshot::channel();
        self.send(fetch.into_request(self.clock.now().saturating_add(poll_timeout), reply));
        delivery.await.unwrap_or_else(|_| Err(closed()))
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
    store: Option<Submitter>,
}

impl<F: QueueFetch> Delivery<F> {
    pub(crate) fn new(claims: Vec<F::Claim>, store: Submitter) -> Self {
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

/// A read with the caller who waits for it.
pub(crate) struct Read {
    run: Box<RunRead>,
}

/// Reads and tells the caller, or tells the caller why not.
type RunRead = dyn FnOnce(Result<&mut dyn StoreReader, StoreFailure>) + Send;

impl Read {
    /// A read, and where its result will be.
    pub(crate) fn new<T: Send + 'static>(
        store: Arc<str>,
        read: impl FnOnce(&mut dyn StoreReader) -> Result<T, StoreFailure> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Result<T, StoreFailure>>) {
        let (reply, result) = oneshot::channel();
        let run = Box::new(move |reader: Result<&mut dyn StoreReader, StoreFailure>| {
            // A caller that has gone away needs no answer.
            if reply.is_closed() {
                return;
            }
            let result = reader.and_then(|reader| caught("read", FailureClass::Permanent, || read(reader)));
            let result = result.inspect_err(|failure| log::panic_in(&store, failure));
            let _ = reply.send(result);
        });
        (Self { run }, result)
    }

    pub(crate) fn run(self, reader: &mut dyn StoreReader) {
        (self.run)(Ok(reader));
    }

    pub(crate) fn refuse(self, failure: StoreFailure) {
        (self.run)(Err(failure));
    }
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read").finish_non_exhaustive()
    }
}
