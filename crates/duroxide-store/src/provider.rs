//! The provider over a served store.

mod admin;
mod calls;
mod steps;

use std::{fmt, future::Future, sync::Arc, thread::JoinHandle, time::Duration};

use duroxide_provider::{
    LoadedExecution, ProviderError,
    store::{Answer, Op, Refusal, StoreEngine, StoreFailure, StoreReader, StoreSnapshot},
};

use crate::{
    StoreBuilder, StoreOptions,
    admission::Admission,
    decode::{HistoryOf, decode_execution},
    fetch::QueueFetch,
    job::{op_bytes, provider_error},
    nodes::{Joining, NodeLocks},
    readers::{ReaderThreads, Readers},
    submit::{Delivery, Read, Request, Submitter, closed},
    thread,
    watchers::Watchers,
};

/// A store engine as a [`Provider`](duroxide_provider::Provider) and
/// [`ProviderAdmin`](duroxide_provider::ProviderAdmin).
///
/// It is a handle: the engine lives in a thread, which ends, and is joined, when the provider is dropped.
pub struct StoreProvider {
    submitter: Submitter,
    readers: Readers,
    admission: Admission,
    watchers: Arc<Watchers>,
    name: Arc<str>,
    version: String,
    joining: Joining,
    thread: Option<JoinHandle<()>>,
}

/// The parts of a provider.
pub(crate) struct ProviderParts<'a> {
    pub(crate) submitter: Submitter,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) options: &'a StoreOptions,
    pub(crate) name: Arc<str>,
    pub(crate) version: String,
    pub(crate) node_locks: Option<Arc<dyn NodeLocks>>,
}

impl StoreProvider {
    /// Serves this engine; see [`StoreBuilder`].
    pub fn builder(engine: impl StoreEngine + Send) -> StoreBuilder {
        StoreBuilder::new(engine)
    }

    pub(crate) fn new(parts: ProviderParts<'_>) -> Self {
        Self {
            readers: Readers::StoreThread(parts.submitter.clone()),
            submitter: parts.submitter,
            admission: Admission::new(parts.options),
            watchers: parts.watchers,
            name: parts.name,
            version: parts.version,
            joining: Joining::new(parts.node_locks),
            thread: None,
        }
    }

    /// The thread that serves this provider, to be joined when it is dropped.
    pub(crate) fn served_by(&mut self, thread: JoinHandle<()>) {
        self.thread = Some(thread);
    }

    /// The threads that read for this provider, instead of the one that serves it.
    pub(crate) fn read_by(&mut self, threads: ReaderThreads) {
        self.readers = Readers::Threads(threads);
    }

    /// Everything in the store, for invariant checks and comparisons. Not for production use.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn snapshot(&self) -> Result<StoreSnapshot, ProviderError> {
        self.query("snapshot", |reader| reader.snapshot()).await
    }

    /// Submits an operation at once and returns a future that only waits for the answer, and is small. The caller has
    /// prepared the operation, so the store thread encodes nothing.
    fn apply(
        &self,
        operation: &'static str,
        op: Result<Op, Refusal>,
    ) -> impl Future<Output = Result<Answer, ProviderError>> + Send + use<> {
        let handed_in = op.map(|op| self.submitter.apply(op, None));
        async move {
            let answer = handed_in.map_err(|refusal| refusal.into_provider_error(operation))?;
            answer.await.map_err(|error| provider_error(error, operation))
        }
    }

    /// Queues a client's message as soon as there is room for it.
    async fn enqueue(
        &self,
        operation: &'static str,
        op: Result<Op, Refusal>,
    ) -> Result<Answer, ProviderError> {
        let op = op.map_err(|refusal| refusal.into_provider_error(operation))?;
        let bytes = op_bytes(&op);
        let answer = match self.admission.admit_now(bytes) {
            Some(place) => self.submitter.apply(op, Some(place)),
            // An operation that waits for room is boxed, so that the future of one that does not stays small.
            None => {
                let op = Box::new(op);
                let Some(place) = self.admission.admit(bytes).await else {
                    return Err(closed().into_provider_error(operation));
                };
                self.submitter.apply(*op, Some(place))
            }
        };
        answer.await.map_err(|error| provider_error(error, operation))
    }

    /// Waits for work.
    async fn fetch<F: QueueFetch>(
        &self,
        operation: &str,
        fetch: F,
        poll_timeout: Duration,
    ) -> Result<Delivery<F>, ProviderError> {
        let delivery = self.submitter.fetch(fetch, poll_timeout).await;
        delivery.map_err(|failure| failure.into_provider_error(operation))
    }

    /// Reads on a reader, or between two transactions if there is none. For reads that the traits do not have.
    ///
    /// # Errors
    /// That of the read; retryable if the store is closed.
    pub async fn query<T: Send + 'static>(
        &self,
        operation: &str,
        read: impl FnOnce(&mut dyn StoreReader) -> Result<T, StoreFailure> + Send + 'static,
    ) -> Result<T, ProviderError> {
        let (read, result) = Read::new(Arc::clone(&self.name), read);
        self.readers.submit(read);
        let result = result.await.unwrap_or_else(|_| Err(closed()));
        result.map_err(|failure| failure.into_provider_error(operation))
    }

    /// Reads history and key-value state of an execution.
    async fn load(&self, operation: &str, of: HistoryOf<'_>) -> Result<LoadedExecution, ProviderError> {
        let (instance, execution_id) = (of.instance.to_owned(), of.execution_id);
        let stored = self.query(operation, move |reader| reader.load(&instance, execution_id)).await?;
        Ok(decode_execution(stored, of))
    }
}

impl Drop for StoreProvider {
    fn drop(&mut self) {
        // The readers first: connections to a file that close at the same time leave its log to nobody.
        self.readers = Readers::StoreThread(self.submitter.clone());
        for gone in self.joining.give_up() {
            self.submitter.send(Request::NodeGone(Box::new(gone)));
        }
        self.submitter.send(Request::Close);
        if let Some(thread) = self.thread.take() {
            thread::join(thread);
        }
        // Remaining watchers read again, and find the store closed.
        self.watchers.tell_all();
    }
}

impl fmt::Debug for StoreProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreProvider")
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
