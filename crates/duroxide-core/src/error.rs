//! [`ErrorDetails`]: how an execution or an activity failed, by category.

mod poison_reason;
mod reason;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use poison_reason::with_poison_reason;
pub use reason::shortened_reason;

/// Why an orchestration, or one step of it, failed.
///
/// The category names the cause: the platform (`Infrastructure`), the deployment (`Configuration`), the business logic
/// (`Application`), or a message that could not be processed and has to be inspected (`Poison`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorDetails {
    /// The platform failed: a provider call, a commit, the engine itself.
    Infrastructure {
        /// The name of the failed operation, such as `commit_round`.
        operation: String,
        /// What went wrong.
        message: String,
        /// Whether a retry may succeed.
        retryable: bool,
    },
    /// The deployment does not fit: changed code, or a version no node can replay.
    Configuration {
        /// The kind of mismatch.
        kind: ConfigErrorKind,
        /// What it concerns; may be empty.
        resource: String,
        /// Details, if there are any.
        message: Option<String>,
    },
    /// User code failed, panicked or was cancelled.
    Application {
        /// How it failed.
        kind: AppErrorKind,
        /// The error text of user code.
        message: String,
        /// Whether a retry may succeed.
        retryable: bool,
    },
    /// A message was fetched too often without ever being processed.
    Poison {
        /// The number of fetches.
        attempt_count: u32,
        /// The number that was allowed.
        max_attempts: u32,
        /// The poisoned message.
        message_type: PoisonMessageType,
        /// The JSON of the poisoned messages, or the decode error. See also [`ErrorDetails::poison_reason`].
        message: String,
    },
}

/// Kinds of configuration error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConfigErrorKind {
    /// The code did something other than what its history records.
    Nondeterminism,
    /// No node could replay the execution's pinned engine version.
    UnsupportedVersion,
}

/// Kinds of application error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AppErrorKind {
    /// An activity returned an error.
    ActivityFailed,
    /// The orchestration returned an error, or went over a limit.
    OrchestrationFailed,
    /// The orchestration panicked.
    Panicked,
    /// A client or the parent cancelled the instance.
    Cancelled {
        /// Why.
        reason: String,
    },
}

/// The subject of a poison error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoisonMessageType {
    /// The messages of a claim.
    Orchestration {
        /// The instance that should have received the messages.
        instance: String,
        /// The execution that should have received the messages.
        execution_id: u64,
    },
    /// One activity.
    Activity {
        /// The instance that scheduled it.
        instance: String,
        /// The execution that scheduled it.
        execution_id: u64,
        /// The name under which the activity is registered.
        activity_name: String,
        /// The event id that scheduled it.
        activity_id: u64,
    },
    /// An execution whose history cannot be decoded.
    FailedDeserialization {
        /// The instance with the damaged history.
        instance: String,
        /// The execution with the damaged history.
        execution_id: u64,
        /// The decode error.
        error: String,
    },
}

impl ErrorDetails {
    /// An application error of an orchestration that may not be retried: the usual way to fail one.
    pub fn orchestration_failed(message: impl Into<String>) -> Self {
        Self::Application {
            kind: AppErrorKind::OrchestrationFailed,
            message: message.into(),
            retryable: false,
        }
    }

    /// The error of an activity or a step that returned this text.
    pub fn activity_failed(message: impl Into<String>) -> Self {
        Self::Application { kind: AppErrorKind::ActivityFailed, message: message.into(), retryable: false }
    }

    /// The error of a cancelled instance.
    pub fn cancelled(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Application {
            message: reason.clone(),
            kind: AppErrorKind::Cancelled { reason },
            retryable: false,
        }
    }

    /// The failure of an activity that was asked to stop before a worker started it.
    pub fn activity_never_started() -> Self {
        Self::cancelled("the activity never started")
    }

    /// The failure of an activity that was asked to stop and ended without an outcome: it was dropped after its grace
    /// period, or its worker died.
    pub fn activity_stopped() -> Self {
        Self::cancelled("the activity was stopped")
    }

    /// The error of code that does not fit its history.
    pub fn nondeterminism(message: impl Into<String>) -> Self {
        Self::Configuration {
            kind: ConfigErrorKind::Nondeterminism,
            resource: String::new(),
            message: Some(message.into()),
        }
    }

    /// `infrastructure`, `configuration`, `application` or `poison`.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Infrastructure { .. } => "infrastructure",
            Self::Configuration { .. } => "configuration",
            Self::Application { .. } => "application",
            Self::Poison { .. } => "poison",
        }
    }

    /// Whether doing the same thing again may help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Infrastructure { retryable, .. } | Self::Application { retryable, .. } => *retryable,
            Self::Configuration { .. } | Self::Poison { .. } => false,
        }
    }

    /// Whether this is a system error, which user code did not cause. User code of a parent never receives one.
    pub fn is_system(&self) -> bool {
        !matches!(self, Self::Application { .. })
    }

    /// The text users see.
    pub fn display_message(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for ErrorDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Infrastructure { operation, message, .. } => {
                write!(f, "infrastructure:{operation}: {message}")
            }
            Self::Configuration { kind, resource, message } => {
                let label = match kind {
                    ConfigErrorKind::Nondeterminism => "nondeterministic",
                    ConfigErrorKind::UnsupportedVersion => "unsupported version",
                };
                match message {
                    Some(message) => write!(f, "{label}: {message}"),
                    None => write!(f, "{label} in {resource}"),
                }
            }
            Self::Application { kind, message, .. } => match kind {
                AppErrorKind::Cancelled { reason } => write!(f, "canceled: {reason}"),
                AppErrorKind::Panicked => write!(f, "orchestration panicked: {message}"),
                AppErrorKind::ActivityFailed | AppErrorKind::OrchestrationFailed => f.write_str(message),
            },
            Self::Poison { attempt_count, max_attempts, message_type, .. } => {
                write_poison(f, message_type, *attempt_count, *max_attempts)
            }
        }
    }
}

fn write_poison(
    f: &mut fmt::Formatter<'_>,
    message_type: &PoisonMessageType,
    attempt_count: u32,
    max_attempts: u32,
) -> fmt::Result {
    match message_type {
        PoisonMessageType::Orchestration { instance, .. } => write!(
            f,
            "poison: orchestration {instance} exceeded {attempt_count} attempts (max {max_attempts})"
        ),
        PoisonMessageType::Activity { activity_name, activity_id, .. } => write!(
            f,
            "poison: activity {activity_name}#{activity_id} exceeded {attempt_count} attempts (max {max_attempts})"
        ),
        PoisonMessageType::FailedDeserialization { instance, error, .. } => write!(
            f,
            "poison: orchestration {instance} history deserialization failed after {attempt_count} attempts \
             (max {max_attempts}): {error}"
        ),
    }
}

impl std::error::Error for ErrorDetails {}
