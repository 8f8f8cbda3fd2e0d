//! [`EventRole`]: sorts the event kinds by their meaning for an execution.
//!
//! The match in [`EventKind::role`] names every kind, so a new kind does not compile until it is sorted.

use super::EventKind;
use crate::ErrorDetails;

/// What an event means for its execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventRole<'a> {
    /// The execution begins.
    Start,
    /// The execution ends. [`EventKind::into_end`] returns how.
    End,
    /// The instance is asked to cancel.
    CancelRequest,
    /// Code makes a call and waits for its completion.
    Call(CallKind),
    /// The call that `source_event_id` names is completed.
    Completion(CallKind),
    /// Code gives up the call that `source_event_id` names, or asks it to stop: a breadcrumb.
    GivenUp {
        /// What is given up.
        call: CallKind,
        /// The recorded reason.
        reason: &'a str,
    },
    /// An external event, a queue message or the result of a step arrives.
    Message,
    /// Code starts another instance and does not wait for it.
    DetachedStart,
    /// Code sets the custom status, or resets it with `None`.
    CustomStatus(Option<&'a str>),
    /// Code changes the key-value state.
    KeyValues(KeyValueChange<'a>),
}

/// What code calls and waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// An activity.
    Activity,
    /// A child orchestration.
    Child,
    /// An external event, or a request to cancel the instance.
    Wait,
    /// A message of an event queue.
    Queue,
    /// A timer.
    Timer,
}

/// A change of the key-value state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyValueChange<'a> {
    /// A key is set.
    Set {
        /// The key that is set.
        key: &'a str,
        /// The new value.
        value: &'a str,
        /// When the key is set, in milliseconds since the Unix epoch.
        last_updated_at_ms: u64,
    },
    /// A key is removed.
    Clear {
        /// The key that is removed.
        key: &'a str,
    },
    /// All keys are removed.
    ClearAll,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionEnd {
    /// The orchestration returned.
    Completed {
        /// The `Ok` value of the code.
        output: String,
    },
    /// The orchestration failed or was cancelled.
    Failed {
        /// The category and the text of the failure.
        details: ErrorDetails,
    },
    /// The next execution follows.
    ContinuedAsNew {
        /// The input of the next execution.
        input: String,
    },
}

impl CallKind {
    /// The word for it in error texts.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Activity => "activity",
            Self::Timer => "timer",
            Self::Child => "suborchestration",
            Self::Wait => "external",
            Self::Queue => "queue",
        }
    }
}

impl EventKind {
    /// What the event means for its execution.
    pub fn role(&self) -> EventRole<'_> {
        use EventRole as R;
        match self {
            Self::OrchestrationStarted { .. } => R::Start,
            Self::OrchestrationCompleted { .. }
            | Self::OrchestrationFailed { .. }
            | Self::OrchestrationContinuedAsNew { .. } => R::End,
            Self::OrchestrationCancelRequested { .. } => R::CancelRequest,
            Self::ActivityScheduled { .. } => R::Call(CallKind::Activity),
            Self::ActivityCompleted { .. } | Self::ActivityFailed { .. } => R::Completion(CallKind::Activity),
            Self::ActivityCancelRequested { reason } => R::GivenUp { call: CallKind::Activity, reason },
            Self::TimerCreated { .. } => R::Call(CallKind::Timer),
            Self::TimerFired { .. } => R::Completion(CallKind::Timer),
            Self::ExternalSubscribed { .. } | Self::CancellationSubscribed => R::Call(CallKind::Wait),
            Self::ExternalSubscribedCancelled { reason } => R::GivenUp { call: CallKind::Wait, reason },
            Self::QueueSubscribed { .. } => R::Call(CallKind::Queue),
            Self::QueueSubscriptionCancelled { reason } => R::GivenUp { call: CallKind::Queue, reason },
            Self::ExternalEvent { .. } | Self::QueueEventDelivered { .. } | Self::StepEnded { .. } => {
                R::Message
            }
            Self::OrchestrationChained { .. } => R::DetachedStart,
            Self::SubOrchestrationScheduled { .. } => R::Call(CallKind::Child),
            Self::SubOrchestrationCompleted { .. } | Self::SubOrchestrationFailed { .. } => {
                R::Completion(CallKind::Child)
            }
            Self::SubOrchestrationCancelRequested { reason } => R::GivenUp { call: CallKind::Child, reason },
            Self::CustomStatusUpdated { status } => R::CustomStatus(status.as_deref()),
            Self::KeyValueSet { key, value, last_updated_at_ms } => {
                R::KeyValues(KeyValueChange::Set { key, value, last_updated_at_ms: *last_updated_at_ms })
            }
            Self::KeyValueCleared { key } => R::KeyValues(KeyValueChange::Clear { key }),
            Self::KeyValuesCleared => R::KeyValues(KeyValueChange::ClearAll),
        }
    }

    /// How the execution ended. `None` if it does not end with this event. Moves the payload instead of copying it.
    pub fn into_end(self) -> Option<ExecutionEnd> {
        if let Self::OrchestrationCompleted { output } = self {
            return Some(ExecutionEnd::Completed { output });
        }
        if let Self::OrchestrationFailed { details } = self {
            return Some(ExecutionEnd::Failed { details });
        }
        let Self::OrchestrationContinuedAsNew { input } = self else { return None };
        Some(ExecutionEnd::ContinuedAsNew { input })
    }
}
