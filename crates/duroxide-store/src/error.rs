//! Why a store could not be opened or served.

use std::fmt;

use duroxide_provider::{ProviderError, store::StoreFailure};

/// A store that could not be opened or served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    /// What was tried.
    pub operation: String,
    /// What went wrong.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

impl StoreError {
    /// An error that may go away.
    pub fn retryable(operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self { operation: operation.into(), message: message.into(), retryable: true }
    }

    /// An error that stays.
    pub fn permanent(operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self { operation: operation.into(), message: message.into(), retryable: false }
    }

    /// The failure of an engine while it was opened.
    pub fn from_failure(operation: &str, failure: StoreFailure) -> Self {
        let error = failure.into_provider_error(operation);
        Self { operation: error.operation, message: error.message, retryable: error.retryable }
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.message)
    }
}

impl std::error::Error for StoreError {}

impl From<StoreError> for ProviderError {
    fn from(error: StoreError) -> Self {
        Self { operation: error.operation, message: error.message, retryable: error.retryable }
    }
}
