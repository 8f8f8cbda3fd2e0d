use std::future::Future;

use serde::de::DeserializeOwned;

use super::{OrchestrationContext, decode_or_panic, into_data};
use crate::{
    Action, DurableFuture,
    engine::{Kind, Value},
};

/// # External events and event queues
impl OrchestrationContext {
    /// Waits for an external event. It goes to the oldest open wait of its name; an event that comes before
    /// anyone waits is recorded and goes to nobody. Use [`dequeue_event`](Self::dequeue_event) to keep messages.
    pub fn schedule_wait(&self, name: impl Into<String>) -> DurableFuture<String> {
        self.wait(name.into(), into_data)
    }

    /// Waits for an external event with typed data.
    ///
    /// # Panics
    /// The future panics if the data does not decode.
    pub fn schedule_wait_typed<T: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
    ) -> DurableFuture<T> {
        self.wait(name.into(), |value| decode_or_panic(&into_data(value)))
    }

    /// Reads the next message of an event queue. Messages are kept, in order, until they are read.
    pub fn dequeue_event(&self, queue: impl Into<String>) -> DurableFuture<String> {
        let name = queue.into();
        let action = Action::DequeueEvent { scheduling_event_id: 0, name: name.clone() };
        self.call(Kind::Queue, &name, action, into_data)
    }

    /// Reads the next message of an event queue with typed data.
    ///
    /// # Panics
    /// The future panics if the data does not decode.
    pub fn dequeue_event_typed<T: DeserializeOwned>(
        &self,
        queue: impl Into<String>,
    ) -> impl Future<Output = T> {
        let data = self.dequeue_event(queue.into());
        async move { decode_or_panic(&data.await) }
    }

    /// The older name of [`dequeue_event`](Self::dequeue_event).
    #[deprecated(note = "use dequeue_event")]
    pub fn schedule_wait_persistent(&self, name: impl Into<String>) -> DurableFuture<String> {
        self.dequeue_event(name)
    }

    /// The older name of [`dequeue_event_typed`](Self::dequeue_event_typed).
    #[deprecated(note = "use dequeue_event_typed")]
    pub fn schedule_wait_persistent_typed<T: DeserializeOwned>(
        &self,
        name: impl Into<String>,
    ) -> impl Future<Output = T> {
        self.dequeue_event_typed(name)
    }

    fn wait<T>(&self, name: String, convert: impl FnOnce(Value) -> T + Send + 'static) -> DurableFuture<T> {
        let awaited = name.clone();
        self.call(Kind::Wait, &awaited, Action::WaitExternal { scheduling_event_id: 0, name }, convert)
    }
}
