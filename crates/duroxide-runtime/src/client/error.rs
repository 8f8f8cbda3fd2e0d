//! [`ClientError`]: why a client call failed.

use std::fmt;

use duroxide_provider::ProviderError;

/// Why a client call failed.
#[derive(Debug, Clone)]
pub enum ClientError {
    /// The store failed.
    Provider(ProviderError),
    /// The store has no management calls.
    ManagementNotAvailable,
    /// The call itself is wrong: a reserved id, a payload over its limit, a value that does not encode.
    InvalidInput {
        /// The reason.
        message: String,
    },
    /// The awaited change did not happen in time.
    Timeout,
    /// A running instance is deleted only by force.
    InstanceStillRunning {
        /// The id of the instance.
        instance_id: String,
    },
    /// A child is deleted only with its root.
    CannotDeleteSubOrchestration {
        /// The child.
        instance_id: String,
    },
    /// No instance has this id.
    InstanceNotFound {
        /// The id of the instance.
        instance_id: String,
    },
}

impl ClientError {
    pub(super) fn invalid_input(message: impl Into<String>) -> Self {
        Self::InvalidInput { message: message.into() }
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Provider(error) => error.is_retryable(),
            Self::Timeout => true,
            Self::ManagementNotAvailable
            | Self::InvalidInput { .. }
            | Self::InstanceStillRunning { .. }
            | Self::CannotDeleteSubOrchestration { .. }
            | Self::InstanceNotFound { .. } => false,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(error) => error.fmt(f),
            Self::ManagementNotAvailable => {
                f.write_str("Management features not available - provider doesn't implement ProviderAdmin")
            }
            Self::InvalidInput { message } => write!(f, "Invalid input: {message}"),
            Self::Timeout => f.write_str("Operation timed out"),
            Self::InstanceStillRunning { instance_id } => {
                write!(f, "Instance {instance_id} is still running. Use force=true or cancel first.")
            }
            Self::CannotDeleteSubOrchestration { instance_id } => write!(
                f,
                "Cannot delete sub-orchestration {instance_id} directly. Delete the root orchestration instead."
            ),
            Self::InstanceNotFound { instance_id } => write!(f, "Instance {instance_id} not found"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<ProviderError> for ClientError {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}
