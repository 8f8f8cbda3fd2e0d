//! [`WorkItem`]: a message of one of the two queues, with its JSON.

mod activity_input;
mod trace_context;
pub(crate) mod traced_input;

pub use activity_input::{ActivityInput, RunOptions};
pub use trace_context::{InvalidTraceparent, TraceContext};
pub use traced_input::TracedInput;

use serde::{Deserialize, Serialize};

use crate::ErrorDetails;

/// A message in one of the two queues.
///
/// `ActivityExecute` goes to the worker queue; all others go to the mailbox of an instance. `id` and
/// `parent_id` are the event id of the schedule the message belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkItem {
    /// Start an instance, or wake a continued one.
    StartOrchestration {
        /// The id of the new instance.
        instance: String,
        /// The name under which the orchestration is registered.
        orchestration: String,
        /// The input with its trace context: see [`TracedInput`](crate::TracedInput).
        #[serde(flatten, with = "traced_input")]
        input: String,
        /// The version that the start asks for; `None` leaves the choice to the node.
        version: Option<String>,
        /// The parent, if this is a child.
        parent_instance: Option<String>,
        /// The event id of the parent's call.
        parent_id: Option<u64>,
        /// The parent's execution that made the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// The execution to start.
        execution_id: u64,
    },
    /// Run an activity.
    ActivityExecute {
        /// The instance that scheduled it.
        instance: String,
        /// The execution that scheduled it.
        execution_id: u64,
        /// The event id of the schedule.
        id: u64,
        /// The name under which the activity is registered.
        name: String,
        /// The input with its trace context: see [`TracedInput`](crate::TracedInput).
        #[serde(flatten, with = "traced_input")]
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
        /// The instance that scheduled it.
        instance: String,
        /// The execution that scheduled it.
        execution_id: u64,
        /// The event id of the schedule.
        id: u64,
        /// The `Ok` value of the activity.
        result: String,
    },
    /// An activity failed.
    ActivityFailed {
        /// The instance that scheduled it.
        instance: String,
        /// The execution that scheduled it.
        execution_id: u64,
        /// The event id of the schedule.
        id: u64,
        /// The category and the text of the failure.
        details: ErrorDetails,
    },
    /// A timer is due.
    TimerFired {
        /// The instance that created it.
        instance: String,
        /// The execution that created it.
        execution_id: u64,
        /// The event id of the schedule.
        id: u64,
        /// When the timer is due and the message becomes visible, in milliseconds since the Unix epoch.
        fire_at_ms: u64,
    },
    /// An external event for an open wait.
    ExternalRaised {
        /// The receiving instance.
        instance: String,
        /// The name under which the event is raised.
        name: String,
        /// The data that the client sends.
        data: String,
    },
    /// A message for an event queue.
    QueueMessage {
        /// The receiving instance.
        instance: String,
        /// The queue to which the message is sent.
        name: String,
        /// The data that the client sends.
        data: String,
    },
    /// A child returned.
    SubOrchCompleted {
        /// The id of the parent, which receives the message.
        parent_instance: String,
        /// The parent's execution that made the call.
        parent_execution_id: u64,
        /// The event id of the call.
        parent_id: u64,
        /// The output of the child.
        result: String,
    },
    /// A child failed.
    SubOrchFailed {
        /// The id of the parent, which receives the message.
        parent_instance: String,
        /// The parent's execution that made the call.
        parent_execution_id: u64,
        /// The event id of the call.
        parent_id: u64,
        /// The category and the text of the failure.
        details: ErrorDetails,
    },
    /// End an instance as cancelled.
    CancelInstance {
        /// The instance to cancel.
        instance: String,
        /// The text that the client gave, or the reason of the parent.
        reason: String,
    },
    /// Start the next execution of an instance, where a round could not hold it.
    ContinueAsNew {
        /// The instance that continues.
        instance: String,
        /// The name under which the orchestration is registered.
        orchestration: String,
        /// The next execution's input, with its trace context.
        #[serde(flatten, with = "traced_input")]
        input: String,
        /// The version that the code asks for; `None` leaves the choice to the node.
        version: Option<String>,
        /// The parent, if this is a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_instance: Option<String>,
        /// The event id of the parent's call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<u64>,
        /// The parent's execution that made the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// Unread queue messages (name, data), in order of arrival.
        #[serde(default)]
        carry_forward_events: Vec<(String, String)>,
        /// The custom status at the end of the previous execution.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
    },
}

/// The call of a parent that started a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentLink {
    /// The id of the parent.
    pub instance: String,
    /// The event id of the call.
    pub event_id: u64,
    /// The execution that made the call; `None` in data of older versions.
    pub execution_id: Option<u64>,
}

impl WorkItem {
    /// The name of the variant.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::StartOrchestration { .. } => "StartOrchestration",
            Self::ActivityExecute { .. } => "ActivityExecute",
            Self::ActivityCompleted { .. } => "ActivityCompleted",
            Self::ActivityFailed { .. } => "ActivityFailed",
            Self::TimerFired { .. } => "TimerFired",
            Self::ExternalRaised { .. } => "ExternalRaised",
            Self::QueueMessage { .. } => "QueueMessage",
            Self::SubOrchCompleted { .. } => "SubOrchCompleted",
            Self::SubOrchFailed { .. } => "SubOrchFailed",
            Self::CancelInstance { .. } => "CancelInstance",
            Self::ContinueAsNew { .. } => "ContinueAsNew",
        }
    }

    /// The instance that receives the item; for an activity, the instance that scheduled it.
    pub fn target_instance(&self) -> &str {
        match self {
            Self::StartOrchestration { instance, .. }
            | Self::ActivityExecute { instance, .. }
            | Self::ActivityCompleted { instance, .. }
            | Self::ActivityFailed { instance, .. }
            | Self::TimerFired { instance, .. }
            | Self::ExternalRaised { instance, .. }
            | Self::QueueMessage { instance, .. }
            | Self::CancelInstance { instance, .. }
            | Self::ContinueAsNew { instance, .. } => instance,
            Self::SubOrchCompleted { parent_instance, .. } | Self::SubOrchFailed { parent_instance, .. } => {
                parent_instance
            }
        }
    }

    /// The parent link of a start or a continue-as-new.
    pub fn parent_link(&self) -> Option<ParentLink> {
        match self {
            Self::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. }
            | Self::ContinueAsNew { parent_instance, parent_id, parent_execution_id, .. } => {
                Some(ParentLink {
                    instance: parent_instance.clone()?,
                    event_id: (*parent_id)?,
                    execution_id: *parent_execution_id,
                })
            }
            Self::ActivityExecute { .. }
            | Self::ActivityCompleted { .. }
            | Self::ActivityFailed { .. }
            | Self::TimerFired { .. }
            | Self::ExternalRaised { .. }
            | Self::QueueMessage { .. }
            | Self::SubOrchCompleted { .. }
            | Self::SubOrchFailed { .. }
            | Self::CancelInstance { .. } => None,
        }
    }
}
