//! Events and their stored form. The envelope never changes; kinds are only added.

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
    /// The instance.
    pub instance_id: String,
    /// Its execution.
    pub execution_id: u64,
    /// When the event was made.
    pub timestamp_ms: u64,
    /// The duroxide version that made it.
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
        /// The orchestration's name.
        name: String,
        /// The handler version chosen for the whole execution.
        version: String,
        /// Its input, with its trace context: see [`TracedInput`](crate::TracedInput).
        #[serde(flatten, with = "crate::work_item::traced_input")]
        input: String,
        /// The parent, if this is a child.
        parent_instance: Option<String>,
        /// The event id of the parent's call.
        parent_id: Option<u64>,
        /// The parent's execution that made the call.
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
        /// What it returned.
        output: String,
    },
    /// The execution failed. Terminal.
    OrchestrationFailed {
        /// Why.
        details: ErrorDetails,
    },
    /// The execution ended and the next one begins. Terminal.
    OrchestrationContinuedAsNew {
        /// The next execution's input.
        input: String,
    },
    /// A client or the parent asked to cancel the instance.
    OrchestrationCancelRequested {
        /// Why.
        reason: String,
    },
    /// Code subscribes to requests to cancel the instance. The first request is delivered to the code instead of ending the
    /// execution.
    CancellationSubscribed,
    /// Code called an activity.
    ActivityScheduled {
        /// The activity's name.
        name: String,
        /// Its input.
        input: String,
        /// The session it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// Its routing tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// An activity returned.
    ActivityCompleted {
        /// What it returned.
        result: String,
    },
    /// An activity failed.
    ActivityFailed {
        /// Why.
        details: ErrorDetails,
    },
    /// Code gave an activity up.
    ActivityCancelRequested {
        /// Why.
        reason: String,
    },
    /// A step that ran in place ended.
    StepEnded {
        /// The position of the step among all steps of the execution, from 1.
        step: u64,
        /// Its name.
        name: String,
        /// What it returned.
        result: Result<String, ErrorDetails>,
    },
    /// Code created a timer.
    TimerCreated {
        /// When it fires.
        fire_at_ms: u64,
    },
    /// A timer fired.
    TimerFired {
        /// When it was due.
        fire_at_ms: u64,
    },
    /// Code waits for an external event.
    ExternalSubscribed {
        /// The event's name.
        name: String,
    },
    /// An external event arrived.
    ExternalEvent {
        /// Its name.
        name: String,
        /// Its data.
        data: String,
    },
    /// Code gave a wait up.
    ExternalSubscribedCancelled {
        /// Why.
        reason: String,
    },
    /// Code reads from an event queue.
    #[serde(rename = "ExternalSubscribedPersistent")]
    QueueSubscribed {
        /// The queue's name.
        name: String,
    },
    /// A queue message arrived.
    #[serde(rename = "ExternalEventPersistent")]
    QueueEventDelivered {
        /// The queue's name.
        name: String,
        /// Its data.
        data: String,
    },
    /// Code gave a read up.
    #[serde(rename = "ExternalSubscribedPersistentCancelled")]
    QueueSubscriptionCancelled {
        /// Why.
        reason: String,
    },
    /// Code started another instance without waiting for it.
    OrchestrationChained {
        /// The orchestration's name.
        name: String,
        /// The new instance.
        instance: String,
        /// Its input.
        input: String,
    },
    /// Code called a child.
    SubOrchestrationScheduled {
        /// The child's orchestration name.
        name: String,
        /// The child's id; the suffix of an automatic one.
        instance: String,
        /// Its input.
        input: String,
    },
    /// A child returned.
    SubOrchestrationCompleted {
        /// What it returned.
        result: String,
    },
    /// A child failed.
    SubOrchestrationFailed {
        /// Why.
        details: ErrorDetails,
    },
    /// Code gave a child up.
    SubOrchestrationCancelRequested {
        /// Why.
        reason: String,
    },
    /// Code set or reset the custom status.
    CustomStatusUpdated {
        /// The new status; `None` resets it.
        status: Option<String>,
    },
    /// Code set a key.
    KeyValueSet {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// When it was set; 0 in older data.
        #[serde(default)]
        last_updated_at_ms: u64,
    },
    /// Code removed a key.
    KeyValueCleared {
        /// The key.
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
