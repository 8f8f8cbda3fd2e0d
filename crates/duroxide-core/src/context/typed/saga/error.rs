//! [`SagaError`]: why a saga failed, and which steps could not be undone.

use std::{error::Error, fmt};

use serde::{Deserialize, Serialize};

/// Why a saga failed. Its steps have been undone, except those in `not_undone`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SagaError<E> {
    /// Why the steps were undone.
    pub cause: SagaCause<E>,
    /// The undos that failed, in the order in which they were tried.
    pub not_undone: Vec<NotUndone>,
}

/// Why the steps of a saga were undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SagaCause<E> {
    /// The scope returned this error.
    Failed(E),
    /// The instance is to be cancelled.
    Cancelled {
        /// Why.
        reason: String,
    },
}

/// An undo that failed although it was retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotUndone {
    /// The activity that should have undone the step.
    pub activity: String,
    /// Its last error.
    pub error: String,
}

impl<E> SagaError<E> {
    /// Whether the steps were undone because the instance is to be cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.cause, SagaCause::Cancelled { .. })
    }
}

impl<E: fmt::Display> fmt::Display for SagaError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            SagaCause::Failed(error) => write!(f, "{error}")?,
            SagaCause::Cancelled { reason } => write!(f, "canceled: {reason}")?,
        }
        for NotUndone { activity, error } in &self.not_undone {
            write!(f, "; not undone by {activity}: {error}")?;
        }
        Ok(())
    }
}

impl<E: fmt::Debug + fmt::Display> Error for SagaError<E> {}

impl<E: fmt::Display> From<SagaError<E>> for String {
    fn from(error: SagaError<E>) -> Self {
        error.to_string()
    }
}
