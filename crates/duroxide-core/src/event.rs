//! Events and their stored form. The fields of [`Event`] never change; kinds are only added.

mod open_calls;
mod role;
mod stamp;

pub use open_calls::{CallTarget, OpenCall, OpenCalls};
pub use role::{CallKind, EventRole, ExecutionEnd, KeyValueChange};

use serde::{Deserialize, Serialize};

use crate::{ErrorDetails, ParentLink};

/// One recorded step of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Position in the history, from 1, without gaps.
    pub event_id: u64,
    /// The schedule event that this one completes or cancels.
    pub source_event_id: Option<u64>,
    /// The instance to whose history the event belongs.
    pub instance_id: String,
    /// The execution of the instance, from 1.
    pub execution_id: u64,
    /// When the event was made, in milliseconds since the Unix epoch.
    pub timestamp_ms: u64,
    /// The duroxide version of the node that made the event.
    pub duroxide_version: String,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum EventKind {
    /// The execution began. Always the first event.
    OrchestrationStarted {
        /// The name under which the orchestration is registered.
        name: String,
        /// The handler version chosen for the whole execution.
        version: String,
        /// The input with its trace context: see [`TracedInput`](crate::TracedInput).
        #[serde(flatten, with = "crate::work_item::traced_input")]
        input: String,
        /// The instance id of the parent; `None` unless this is a child.
        parent_instance: Option<String>,
        /// The event id of the parent's call; `None` unless this is a child.
        parent_id: Option<u64>,
        /// The parent's execution that made the call; `None` in data of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// Queue messages (name, data) that the previous execution left unread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carry_forward_events: Option<Vec<(String, String)>>,
        /// The custom status that the previous execution left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
    },
    /// The execution returned. Terminal.
    OrchestrationCompleted {
        /// The `Ok` value of the code.
        output: String,
    },
    /// The execution failed. Terminal.
    OrchestrationFailed {
        /// The category and the text of the failure.
        details: ErrorDetails,
    },
    /// The execution ended and the next one begins. Terminal.
    OrchestrationContinuedAsNew {
        /// The next execution's input.
        input: String,
    },
    /// A client or the parent asked to cancel the instance.
    OrchestrationCancelRequested {
        /// The text that the client gave, or the reason of the parent.
        reason: String,
    },
    /// Code subscribes to requests to cancel the instance. The first request is delivered to the code instead of ending the
    /// execution.
    CancellationSubscribed,
    /// Code called an activity.
    ActivityScheduled {
        /// The name under which the activity is registered.
        name: String,
        /// The plain input, without a trace context.
        input: String,
        /// The session whose owner runs the activity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// The tag that a worker must take; `None` for workers that take untagged activities.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// An activity returned.
    ActivityCompleted {
        /// The `Ok` value of the activity.
        result: String,
    },
    /// An activity failed.
    ActivityFailed {
        /// The category and the text of the failure.
        details: ErrorDetails,
    },
    /// An activity was asked to stop: its future was dropped, the code waits for its end, or the execution ended while it
    /// was open.
    ActivityCancelRequested {
        /// `dropped_future`, `cancel_and_wait`, or `orchestration_terminal_` with the way in which the execution ended.
        reason: String,
    },
    /// A step that ran in place ended.
    StepEnded {
        /// The position of the step among all steps of the execution, from 1.
        step: u64,
        /// The name in the call, which a replay compares.
        name: String,
        /// The value or the error that the step returned.
        result: Result<String, ErrorDetails>,
    },
    /// Code created a timer.
    TimerCreated {
        /// When the timer is due, in milliseconds since the Unix epoch.
        fire_at_ms: u64,
    },
    /// A timer fired.
    TimerFired {
        /// When the timer was due, in milliseconds since the Unix epoch; it may have fired later.
        fire_at_ms: u64,
    },
    /// Code waits for an external event.
    ExternalSubscribed {
        /// The name for which the code waits.
        name: String,
    },
    /// An external event arrived.
    ExternalEvent {
        /// The name under which the event was raised.
        name: String,
        /// The data that the client sent.
        data: String,
    },
    /// The future of a wait was dropped, or the execution ended while it was open.
    ExternalSubscribedCancelled {
        /// `dropped_future` or `orchestration_terminal`.
        reason: String,
    },
    /// Code reads from an event queue.
    #[serde(rename = "ExternalSubscribedPersistent")]
    QueueSubscribed {
        /// The queue from which the code reads.
        name: String,
    },
    /// A queue message arrived.
    #[serde(rename = "ExternalEventPersistent")]
    QueueEventDelivered {
        /// The queue to which the message was sent.
        name: String,
        /// The data that the client sent.
        data: String,
    },
    /// The future of a read was dropped, or the execution ended while it was open.
    #[serde(rename = "ExternalSubscribedPersistentCancelled")]
    QueueSubscriptionCancelled {
        /// `dropped_future` or `orchestration_terminal`.
        reason: String,
    },
    /// Code started another instance without waiting for it.
    OrchestrationChained {
        /// The name of the other instance's orchestration.
        name: String,
        /// The id of the other instance.
        instance: String,
        /// The plain input of the other instance.
        input: String,
    },
    /// Code called a child.
    SubOrchestrationScheduled {
        /// The name of the child's orchestration.
        name: String,
        /// The id of the child; of an automatic id only the suffix.
        instance: String,
        /// The plain input of the child.
        input: String,
    },
    /// A child returned.
    SubOrchestrationCompleted {
        /// The output of the child.
        result: String,
    },
    /// A child failed.
    SubOrchestrationFailed {
        /// The category and the text of the failure.
        details: ErrorDetails,
    },
    /// The future of a child was dropped.
    SubOrchestrationCancelRequested {
        /// `dropped_future`.
        reason: String,
    },
    /// Code set or reset the custom status.
    CustomStatusUpdated {
        /// The new status; `None` resets it.
        status: Option<String>,
    },
    /// Code set a key.
    KeyValueSet {
        /// The key that was set.
        key: String,
        /// The new value.
        value: String,
        /// When the key was set, in milliseconds since the Unix epoch; 0 in older data.
        #[serde(default)]
        last_updated_at_ms: u64,
    },
    /// Code removed a key.
    KeyValueCleared {
        /// The key that was removed.
        key: String,
    },
    /// Code removed all keys.
    KeyValuesCleared,
}

impl Event {
    /// Position in the history.
    pub fn event_id(&self) -> u64 {
        self.event_id
    }

    /// The schedule event that this one completes or cancels.
    pub fn source_event_id(&self) -> Option<u64> {
        self.source_event_id
    }

    /// Whether the execution ends with this event.
    pub fn is_terminal(&self) -> bool {
        self.kind.role() == EventRole::End
    }

    /// The parent link, if this is the start of a child.
    pub fn parent_link(&self) -> Option<ParentLink> {
        let EventKind::OrchestrationStarted { parent_instance, parent_id, parent_execution_id, .. } =
            &self.kind
        else {
            return None;
        };
        Some(ParentLink {
            instance: parent_instance.clone()?,
            event_id: (*parent_id)?,
            execution_id: *parent_execution_id,
        })
    }
}

impl EventKind {
    /// The name under which the kind is stored.
    pub fn wire_name(&self) -> &'static str {
        match self {
            Self::OrchestrationStarted { .. } => "OrchestrationStarted",
            Self::OrchestrationCompleted { .. } => "OrchestrationCompleted",
            Self::OrchestrationFailed { .. } => "OrchestrationFailed",
            Self::OrchestrationContinuedAsNew { .. } => "OrchestrationContinuedAsNew",
            Self::OrchestrationCancelRequested { .. } => "OrchestrationCancelRequested",
            Self::CancellationSubscribed => "CancellationSubscribed",
            Self::ActivityScheduled { .. } => "ActivityScheduled",
            Self::ActivityCompleted { .. } => "ActivityCompleted",
            Self::ActivityFailed { .. } => "ActivityFailed",
            Self::ActivityCancelRequested { .. } => "ActivityCancelRequested",
            Self::StepEnded { .. } => "StepEnded",
            Self::TimerCreated { .. } => "TimerCreated",
            Self::TimerFired { .. } => "TimerFired",
            Self::ExternalSubscribed { .. } => "ExternalSubscribed",
            Self::ExternalEvent { .. } => "ExternalEvent",
            Self::ExternalSubscribedCancelled { .. } => "ExternalSubscribedCancelled",
            Self::QueueSubscribed { .. } => "ExternalSubscribedPersistent",
            Self::QueueEventDelivered { .. } => "ExternalEventPersistent",
            Self::QueueSubscriptionCancelled { .. } => "ExternalSubscribedPersistentCancelled",
            Self::OrchestrationChained { .. } => "OrchestrationChained",
            Self::SubOrchestrationScheduled { .. } => "SubOrchestrationScheduled",
            Self::SubOrchestrationCompleted { .. } => "SubOrchestrationCompleted",
            Self::SubOrchestrationFailed { .. } => "SubOrchestrationFailed",
            Self::SubOrchestrationCancelRequested { .. } => "SubOrchestrationCancelRequested",
            Self::CustomStatusUpdated { .. } => "CustomStatusUpdated",
            Self::KeyValueSet { .. } => "KeyValueSet",
            Self::KeyValueCleared { .. } => "KeyValueCleared",
            Self::KeyValuesCleared => "KeyValuesCleared",
        }
    }
}
