//! [`ProviderError`]: why a provider call failed and whether it may be retried.

use std::fmt;

use duroxide_core::ErrorDetails;

/// A failed provider call. It tells the caller whether to retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderError {
    /// The call that failed.
    pub operation: String,
    /// The message, for logs and users.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

/// The token is unknown: the lock ended, or the commit it belongs to has already happened.
pub(crate) const INVALID_LOCK_TOKEN: &str = "Invalid lock token";
/// The token is known but its lease ended.
pub(crate) const INSTANCE_LOCK_EXPIRED: &str = "Instance lock expired";
/// The work item was taken over, completed or deleted.
pub(crate) const WORK_ITEM_LOCK_LOST: &str = "Work item not found, or its lock expired";
/// A page was asked for by a cursor that is none.
const INVALID_CURSOR: &str = "Invalid cursor";

impl ProviderError {
    /// An error that may go away.
    pub fn retryable(operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self { operation: operation.into(), message: message.into(), retryable: true }
    }

    /// An error that stays.
    pub fn permanent(operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self { operation: operation.into(), message: message.into(), retryable: false }
    }

    /// The permanent error for a cursor that no page of a store had; see
    /// [`query_instances`](crate::ProviderAdmin::query_instances).
    pub fn invalid_cursor(cursor: &str) -> Self {
        // A caller can send anything; the first characters are enough to recognise it by.
        let message = format!("{INVALID_CURSOR}: '{cursor:.64}' is not from a page of this store");
        Self::permanent("query_instances", message)
    }

    /// Whether this is [`Self::invalid_cursor`].
    pub fn is_invalid_cursor(&self) -> bool {
        !self.retryable && self.message.starts_with(INVALID_CURSOR)
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// Whether the caller no longer holds the lock it acted under. This reads the error's text; a wrong guess is harmless,
    /// because the store fences every write by its token.
    pub fn is_lock_lost(&self) -> bool {
        !self.retryable
            && [INVALID_LOCK_TOKEN, INSTANCE_LOCK_EXPIRED, WORK_ITEM_LOCK_LOST]
                .iter()
                .any(|text| self.message.contains(text))
    }

    /// This error as the reason of a failed orchestration.
    pub fn to_infrastructure_error(&self) -> ErrorDetails {
        ErrorDetails::Infrastructure {
            operation: self.operation.clone(),
            message: self.message.clone(),
            retryable: self.retryable,
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.message)
    }
}

impl std::error::Error for ProviderError {}

impl From<String> for ProviderError {
    fn from(message: String) -> Self {
        Self::retryable("unknown", message)
    }
}

impl From<&str> for ProviderError {
    fn from(message: &str) -> Self {
        Self::retryable("unknown", message)
    }
}
