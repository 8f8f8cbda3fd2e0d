//! [`MockClient`]: a client for tests of code that starts orchestrations.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use duroxide_core::{
    OrchestrationContext, TracedInput, WorkItem,
    typed::{Orchestration, decode, encode, encode_error},
};
use duroxide_provider::{Provider, ProviderError, ProviderLayer, StartOutcome, impl_provider_for_layer};
use duroxide_runtime::{
    ActivityRegistry, Client, OrchestrationRegistry, Runtime, registry::OrchestrationRegistryBuilder,
};
use duroxide_store::MemoryProvider;
use semver::Version;
use serde::de::DeserializeOwned;

use crate::cluster::fail;

/// A [`Client`] that records its requests, for tests of code that starts and signals orchestrations. An orchestration
/// with an answer ends with that answer at once; no other orchestration runs.
///
/// ```
/// # use duroxide_core::typed::Orchestration;
/// # use duroxide_runtime::{Client, ClientError};
/// # use duroxide_testing::MockClient;
/// # enum order {}
/// # impl Orchestration for order {
/// #     const NAME: &'static str = "order";
/// #     type Input = u64;
/// #     type Output = String;
/// #     type Error = String;
/// # }
/// async fn check_out(client: &Client, amount: u64) -> Result<String, ClientError> {
///     let order = client.start::<order>("order-1", amount).await?;
///     Ok(order.result().await?.unwrap_or_else(|error| error.to_string()))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mock = MockClient::builder().answering::<order>(|amount| Ok(format!("{amount} paid"))).build().await;
/// assert_eq!(check_out(&mock.client(), 700).await.unwrap(), "700 paid");
/// assert_eq!(mock.starts::<order>(), [("order-1".to_owned(), 700)]);
/// # }
/// ```
pub struct MockClient {
    store: Arc<NotingStore>,
    /// The node that runs the answers.
    _runtime: Arc<Runtime>,
}

/// Collects the answers of a [`MockClient`].
#[derive(Debug, Default)]
#[must_use]
pub struct MockClientBuilder {
    answers: OrchestrationRegistryBuilder,
}

impl MockClientBuilder {
    /// Ends every instance of `O` with the result of `answer`.
    pub fn answering<O: Orchestration>(
        mut self,
        answer: impl Fn(O::Input) -> Result<O::Output, O::Error> + Send + Sync + 'static,
    ) -> Self {
        let answer = move |_ctx: OrchestrationContext, input: String| {
            let result = match answer(json(&input)) {
                Ok(output) => Ok(encode(&output).unwrap_or_else(|error| fail(&error))),
                Err(error) => Err(encode_error(&error)),
            };
            async { result }
        };
        let version = O::VERSION.map_or(Version::new(1, 0, 0).to_string(), str::to_owned);
        self.answers = self.answers.register_versioned(O::NAME, version, answer);
        self
    }

    /// Builds the mock, whose node runs on the current tokio runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn build(self) -> MockClient {
        let store = Arc::new(NotingStore { inner: MemoryProvider::new(), requests: Mutex::default() });
        let answers: OrchestrationRegistry = self.answers.build();
        let node = Arc::clone(&store) as Arc<dyn Provider>;
        let runtime = Runtime::start_with_store(node, ActivityRegistry::default(), answers).await;
        MockClient { store, _runtime: runtime }
    }
}

impl MockClient {
    /// A builder without answers.
    pub fn builder() -> MockClientBuilder {
        MockClientBuilder::default()
    }

    /// The client to give to the code under test.
    pub fn client(&self) -> Client {
        Client::new(Arc::clone(&self.store) as Arc<dyn Provider>)
    }

    /// All requests so far: starts, events, queue messages, cancellations.
    pub fn requests(&self) -> Vec<WorkItem> {
        self.store.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The ids and inputs of all starts of an orchestration so far.
    pub fn starts<O: Orchestration>(&self) -> Vec<(String, O::Input)> {
        let start = |item| {
            let WorkItem::StartOrchestration { instance, orchestration, input, .. } = item else {
                return None;
            };
            (orchestration == O::NAME).then(|| (instance, json(TracedInput::plain(&input))))
        };
        self.requests().into_iter().filter_map(start).collect()
    }
}

fn json<T: DeserializeOwned>(text: &str) -> T {
    decode(text, || "input of a mocked orchestration".to_owned())
        .unwrap_or_else(|error| fail(&error.to_string()))
}

impl fmt::Debug for MockClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockClient").field("requests", &self.requests()).finish_non_exhaustive()
    }
}

/// A store in memory that records the work items that clients enqueue.
struct NotingStore {
    inner: MemoryProvider,
    requests: Mutex<Vec<WorkItem>>,
}

impl NotingStore {
    fn note(&self, item: &WorkItem) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(item.clone());
    }
}

impl_provider_for_layer!([] NotingStore);

impl ProviderLayer for NotingStore {
    fn inner(&self) -> &dyn Provider {
        &self.inner
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.note(&item);
        self.inner().enqueue_for_orchestrator(item, delay).await
    }

    async fn enqueue_within(&self, item: WorkItem, mailbox_max: u64) -> Result<bool, ProviderError> {
        self.note(&item);
        self.inner().enqueue_within(item, mailbox_max).await
    }

    async fn start_if_new(&self, start: WorkItem) -> Result<StartOutcome, ProviderError> {
        self.note(&start);
        self.inner().start_if_new(start).await
    }
}
