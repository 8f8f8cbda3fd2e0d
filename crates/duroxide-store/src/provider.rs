//! [`StoreProvider`]: the callers' side of a served store.

mod admin;
mod calls;
mod cursor;
mod decode;
mod steps;
mod watchers;

use std::{fmt, sync::Arc, thread::JoinHandle};

use duroxide_core::{Clock, Event};
use duroxide_provider::{
    LoadedExecution, OrchestrationClaim, OrchestrationItem, ProviderError, Round,
    store::{Op, PreparedRound, StoreEngine, StoreFailure, StoreReader, StoreSnapshot},
};

use self::decode::{HistoryOf, decode_execution, decode_history};
pub(crate) use self::watchers::Watchers;
use crate::{
    StoreBuilder,
    nodes::{Joining, NodeLocks},
    readers::{Read, ReadResult, ReaderThreads, Readers, SharedRead, Subject},
    submit::{Request, Submitter, closed},
    thread,
};

/// A store engine as a [`Provider`](duroxide_provider::Provider) and
/// [`ProviderAdmin`](duroxide_provider::ProviderAdmin).
///
/// The provider is a handle: the engine lives in a thread, which ends, and is joined, when the provider is dropped.
pub struct StoreProvider {
    submitter: Arc<Submitter>,
    readers: Readers,
    watchers: Arc<Watchers>,
    name: Arc<str>,
    version: String,
    recorded_clock: Option<Arc<dyn Clock>>,
    joining: Joining,
    thread: Option<JoinHandle<()>>,
}

/// The parts of a provider.
pub(crate) struct ProviderParts {
    pub(crate) submitter: Arc<Submitter>,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) name: Arc<str>,
    pub(crate) version: String,
    pub(crate) recorded_clock: Option<Arc<dyn Clock>>,
    pub(crate) node_locks: Option<Arc<dyn NodeLocks>>,
}

impl StoreProvider {
    /// Serves this engine; see [`StoreBuilder`].
    pub fn builder(engine: impl StoreEngine + Send) -> StoreBuilder {
        StoreBuilder::new(engine)
    }

    pub(crate) fn new(parts: ProviderParts) -> Self {
        Self {
            readers: Readers::StoreThread(Arc::clone(&parts.submitter)),
            submitter: parts.submitter,
            watchers: parts.watchers,
            name: parts.name,
            version: parts.version,
            recorded_clock: parts.recorded_clock,
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

    /// Reads on a reader, or between two transactions if the store has no readers. For reads that the traits do not
    /// have.
    ///
    /// # Errors
    /// The error of the read; retryable if the store is closed.
    pub async fn query<T: Send + 'static>(
        &self,
        operation: &str,
        read: impl FnOnce(&mut dyn StoreReader) -> Result<T, StoreFailure> + Send + 'static,
    ) -> Result<T, ProviderError> {
        let (read, result) = Read::new(Arc::clone(&self.name), read);
        self.read(operation, read, result).await
    }

    /// Reads together with other callers that read the same of other instances. `read` is the variant of [`Read`].
    async fn read_shared<S: Subject>(
        &self,
        operation: &str,
        key: S::Key,
        read: fn(SharedRead<S>) -> Read,
    ) -> Result<S::Value, ProviderError> {
        let (shared, result) = SharedRead::new(Arc::clone(&self.name), key);
        self.read(operation, read(shared), result).await
    }

    /// Submits a read and waits for its result.
    async fn read<T>(&self, operation: &str, read: Read, result: ReadResult<T>) -> Result<T, ProviderError> {
        self.readers.submit(read);
        let result = result.await.unwrap_or_else(|_| Err(closed()));
        result.map_err(|failure| failure.into_provider_error(operation))
    }

    async fn commit(&self, operation: &'static str, token: &str, round: &Round) -> Result<(), ProviderError> {
        let op = PreparedRound::new(token, round).map(|round| Op::CommitRound(Box::new(round)));
        self.submitter.apply(operation, op).await.map(|_| ())
    }

    /// Reads history and key-value state of an execution.
    async fn load(&self, operation: &str, of: HistoryOf<'_>) -> Result<LoadedExecution, ProviderError> {
        let key = (of.instance.to_owned(), of.execution_id);
        let stored = self.read_shared(operation, key, Read::Executions).await?;
        Ok(decode_execution(stored, of))
    }

    async fn read_current(&self, operation: &str, instance: &str) -> Result<Vec<Event>, ProviderError> {
        let id = instance.to_owned();
        let read = self.query(operation, move |reader| match reader.current_execution(&id)? {
            Some(execution_id) => Ok((execution_id, reader.history(&id, Some(execution_id))?)),
            None => Ok((0, Vec::new())),
        });
        let (execution_id, rows) = read.await?;
        decode_history(operation, &rows, HistoryOf { instance, execution_id })
    }

    async fn read_execution(&self, operation: &str, of: HistoryOf<'_>) -> Result<Vec<Event>, ProviderError> {
        let (instance, execution_id) = (of.instance.to_owned(), of.execution_id);
        let rows = self.query(operation, move |reader| reader.history(&instance, Some(execution_id))).await?;
        decode_history(operation, &rows, of)
    }
}

/// A claim and its history as the plain fetch returns them.
fn plain_item(claim: OrchestrationClaim, loaded: LoadedExecution) -> (OrchestrationItem, String, u32) {
    let item = OrchestrationItem {
        instance: claim.instance,
        orchestration_name: claim.orchestration_name,
        execution_id: claim.execution_id,
        version: claim.version,
        history: loaded.history,
        messages: claim.messages,
        history_error: loaded.history_error,
        kv_snapshot: loaded.kv_snapshot,
    };
    (item, claim.lock_token, claim.attempt_count)
}

impl Drop for StoreProvider {
    fn drop(&mut self) {
        // The readers first: if all connections to a file close at the same time, none of them removes its log.
        self.readers = Readers::StoreThread(Arc::clone(&self.submitter));
        for gone in self.joining.give_up() {
            self.submitter.send(Request::NodeGone(Box::new(gone)));
        }
        self.submitter.send(Request::Close);
        if let Some(thread) = self.thread.take() {
            thread::join(thread);
        }
        // Remaining watchers read again, and get the error of a closed store.
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
