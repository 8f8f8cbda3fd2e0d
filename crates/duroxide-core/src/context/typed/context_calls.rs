//! The typed calls of the context that have no options: events, queues, detached instances, continue-as-new, status and
//! key-values.

use std::future::{Future, pending};

use serde::{Serialize, de::DeserializeOwned};

use super::{DecodeError, Key, Orchestration, decode, encode};
use crate::{Action, DurableFuture, OrchestrationContext};

/// # Typed calls
impl OrchestrationContext {
    /// Waits for an external event whose data is the JSON of a `T`. The typed counterpart of
    /// [`schedule_wait`](Self::schedule_wait).
    #[track_caller]
    pub fn event<T: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
    ) -> DurableFuture<Result<T, DecodeError>> {
        let name = name.into();
        let origin = self.origin("data of event", &name);
        self.schedule_wait(name).map(move |data| decode(&data, || origin.to_string()))
    }

    /// Reads the next message of an event queue, which is the JSON of a `T`. The typed counterpart of
    /// [`dequeue_event`](Self::dequeue_event).
    #[track_caller]
    pub fn queue<T: DeserializeOwned + Send + 'static>(
        &self,
        queue: impl Into<String>,
    ) -> DurableFuture<Result<T, DecodeError>> {
        let queue = queue.into();
        let origin = self.origin("message of queue", &queue);
        self.dequeue_event(queue).map(move |data| decode(&data, || origin.to_string()))
    }

    /// Starts another instance without waiting for it. If the id exists already nothing happens. The typed counterpart of
    /// [`schedule_orchestration`](Self::schedule_orchestration).
    ///
    /// # Panics
    /// If the id could be taken for an automatic child id, or if the input has no JSON form.
    #[track_caller]
    pub fn detach<O: Orchestration>(&self, instance: impl Into<String>, input: O::Input) {
        let version = O::VERSION.map(str::to_owned);
        self.detached(O::NAME.to_owned(), version, instance.into(), json_or_panic(&input));
    }

    /// Ends this execution and starts the next one of the same orchestration with this input. The future never resolves.
    /// The typed counterpart of [`continue_as_new`](Self::continue_as_new).
    ///
    /// `O` is the orchestration that runs, or another version of it.
    ///
    /// # Panics
    /// If `O` has another name than the orchestration that runs, or if the input has no JSON form.
    #[track_caller]
    pub fn continue_as<O: Orchestration>(
        &self,
        input: O::Input,
    ) -> impl Future<Output = Result<O::Output, O::Error>> + use<O> {
        let running = self.orchestration_name();
        assert!(
            running == O::NAME,
            "orchestration '{running}' cannot continue as '{}': only as another version of itself",
            O::NAME
        );
        let version = O::VERSION.map(str::to_owned);
        self.emit(Action::ContinueAsNew { input: json_or_panic(&input), version });
        pending()
    }

    /// Sets the custom status to the JSON of a value. Clients read it with `Handle::custom_status`.
    ///
    /// # Panics
    /// If the value has no JSON form.
    #[track_caller]
    pub fn set_status<T: Serialize>(&self, status: &T) {
        self.set_custom_status(json_or_panic(status));
    }

    /// Sets a key of the key-value store to the JSON of a value.
    ///
    /// # Panics
    /// If the value has no JSON form.
    #[track_caller]
    pub fn set_value<T: Serialize>(&self, key: Key<T>, value: &T) {
        self.set_kv_value(key.name(), json_or_panic(value));
    }

    /// The value of a key of the key-value store.
    ///
    /// # Errors
    /// If the value is not the JSON of a `T`.
    #[track_caller]
    pub fn value<T: DeserializeOwned>(&self, key: Key<T>) -> Result<Option<T>, DecodeError> {
        let text = self.get_kv_value(key.name());
        text.map(|text| decode(&text, || self.origin("value of key", key.name()).to_string())).transpose()
    }

    /// Removes a key of the key-value store.
    #[track_caller]
    pub fn clear_value<T>(&self, key: Key<T>) {
        self.clear_kv_value(key.name());
    }
}

/// A value that has no JSON form is a mistake in the code.
#[expect(clippy::panic, reason = "the contract of typed calls that return no result")]
fn json_or_panic<T: Serialize>(value: &T) -> String {
    encode(value).unwrap_or_else(|error| panic!("encode: {error}"))
}
