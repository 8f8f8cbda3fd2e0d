//! [`Action`]: a request of orchestration code to the engine.

/// A request of orchestration code to the engine. Each action except `ContinueAsNew` becomes one event.
#[derive(Debug, Clone)]
pub enum Action {
    /// Run an activity.
    CallActivity {
        /// Event id of the schedule; 0 until it is recorded.
        scheduling_event_id: u64,
        /// The name under which the activity is registered.
        name: String,
        /// The plain input.
        input: String,
        /// The session whose owner runs the activity.
        session_id: Option<String>,
        /// The tag that a worker must take; `None` for workers that take untagged activities.
        tag: Option<String>,
    },
    /// Start a durable timer.
    CreateTimer {
        /// Event id of the schedule; 0 until it is recorded.
        scheduling_event_id: u64,
        /// When the timer is due, in milliseconds since the Unix epoch.
        fire_at_ms: u64,
    },
    /// Wait for an external event.
    WaitExternal {
        /// Event id of the schedule; 0 until it is recorded.
        scheduling_event_id: u64,
        /// The name for which the code waits.
        name: String,
    },
    /// Receive requests to cancel the instance.
    AwaitCancellation,
    /// Read the next message of an event queue.
    DequeueEvent {
        /// Event id of the schedule; 0 until it is recorded.
        scheduling_event_id: u64,
        /// The queue from which the code reads.
        name: String,
    },
    /// Start a child and wait for its result.
    StartSubOrchestration {
        /// Event id of the schedule; 0 until it is recorded.
        scheduling_event_id: u64,
        /// The child's orchestration name.
        name: String,
        /// The version asked for.
        version: Option<String>,
        /// The child's instance id; empty asks for an automatic one.
        instance: String,
        /// The plain input of the child.
        input: String,
    },
    /// Start another instance without waiting for it.
    StartOrchestrationDetached {
        /// Event id of the schedule; 0 until it is recorded.
        scheduling_event_id: u64,
        /// The orchestration's name.
        name: String,
        /// The version asked for.
        version: Option<String>,
        /// The new instance's id.
        instance: String,
        /// The plain input of the other instance.
        input: String,
    },
    /// End this execution and start the next one.
    ContinueAsNew {
        /// The next execution's input.
        input: String,
        /// The version asked for.
        version: Option<String>,
    },
    /// Set or reset the custom status.
    UpdateCustomStatus {
        /// The new status; `None` resets it.
        status: Option<String>,
    },
    /// Set a key.
    SetKeyValue {
        /// The key that is set.
        key: String,
        /// The new value.
        value: String,
        /// When the key is set, in milliseconds since the Unix epoch.
        last_updated_at_ms: u64,
    },
    /// Remove a key.
    ClearKeyValue {
        /// The key that is removed.
        key: String,
    },
    /// Remove all keys.
    ClearKeyValues,
}
