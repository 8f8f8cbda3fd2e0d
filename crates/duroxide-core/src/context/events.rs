//! Waiting for external events and reading event queues.

use std::future::Future;

use serde::de::DeserializeOwned;

use super::{OrchestrationContext, decode_or_fail, into_data};
use crate::{Action, CallKind, DurableFuture, engine::Value};

/// # External events and event queues
impl OrchestrationContext {
    /// Waits for an external event. It goes to the oldest open wait of its name; an event that comes before
    /// a wait is open is recorded and not delivered. Use [`dequeue_event`](Self::dequeue_event) to keep messages.
    #[track_caller]
    pub fn schedule_wait(&self, name: impl Into<String>) -> DurableFuture<String> {
        self.wait(name.into(), into_data)
    }

    /// Waits for an external event with typed data. An event whose data does not decode fails the orchestration with the
    /// decode error.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](crate::codec) for what that loses.
    #[track_caller]
    pub fn schedule_wait_typed<T: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
    ) -> DurableFuture<T> {
        let name = name.into();
        let origin = self.origin("data of event", &name);
        self.wait(name, move |value| decode_or_fail(&into_data(value), &origin))
    }

    /// Reads the next message of an event queue. Messages are kept, in order, until they are read.
    #[track_caller]
    pub fn dequeue_event(&self, queue: impl Into<String>) -> DurableFuture<String> {
        let name = queue.into();
        let action = Action::DequeueEvent { scheduling_event_id: 0, name: name.clone() };
        self.call(CallKind::Queue, &name, action, into_data)
    }

    /// Reads the next message of an event queue with typed data. A message that does not decode fails the orchestration
    /// with the decode error.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](crate::codec) for what that loses.
    #[track_caller]
    pub fn dequeue_event_typed<T: DeserializeOwned>(
        &self,
        queue: impl Into<String>,
    ) -> impl Future<Output = T> {
        let queue = queue.into();
        let origin = self.origin("message of queue", &queue);
        let data = self.dequeue_event(queue);
        async move { decode_or_fail(&data.await, &origin) }
    }

    /// The older name of [`dequeue_event`](Self::dequeue_event).
    #[deprecated(note = "use dequeue_event")]
    #[track_caller]
    pub fn schedule_wait_persistent(&self, name: impl Into<String>) -> DurableFuture<String> {
        self.dequeue_event(name)
    }

    /// The older name of [`dequeue_event_typed`](Self::dequeue_event_typed).
    #[deprecated(note = "use dequeue_event_typed")]
    #[track_caller]
    pub fn schedule_wait_persistent_typed<T: DeserializeOwned>(
        &self,
        name: impl Into<String>,
    ) -> impl Future<Output = T> {
        self.dequeue_event_typed(name)
    }

    #[track_caller]
    fn wait<T>(&self, name: String, convert: impl FnOnce(Value) -> T + Send + 'static) -> DurableFuture<T> {
        let awaited = name.clone();
        self.call(CallKind::Wait, &awaited, Action::WaitExternal { scheduling_event_id: 0, name }, convert)
    }
}
