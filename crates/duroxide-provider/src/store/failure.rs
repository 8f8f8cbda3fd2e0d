//! Why an operation had no effect: a refusal by the rules, or a failure of the store.
//!
//! An error says what its reader may do, and each layer has a type of its own for that:
//!
//! | Error | Made by | Read by | Decides |
//! |---|---|---|---|
//! | [`Refusal`] | the rules, before the first write of an operation | the caller of the operation | the transaction goes on; the call fails for good |
//! | [`StoreFailure`], by its [`FailureClass`] | tables, from an error code of the database | the rules pass it on; reads return it | whether trying again may help |
//! | [`ApplyError`] | the rules: one of the two above | [`carry_out`](super::TransactionSteps::carry_out) | a refusal is the answer to one operation, a failure is a fault |
//! | [`Fault`](super::Fault) | [`transact`](super::StoreEngine::transact): a failure, and the part of the batch that it belongs to | the store thread | which part is left out, whether the batch is tried again at once, whether the store is opened anew |
//! | [`ProviderError`] | the store thread, of a refusal or a failure | the runtime and clients | whether to call again |
//!
//! `Fault` follows from the class of its failure by [`Fault::of`](super::Fault::of). A store in steps blames the part that it carried
//! out instead: its failures say nothing about other parts.

use std::fmt;

use crate::{
    ProviderError,
    error::{INSTANCE_LOCK_EXPIRED, INVALID_LOCK_TOKEN, WORK_ITEM_LOCK_LOST},
};

/// Why an operation had no effect.
#[derive(Debug)]
pub enum ApplyError {
    /// The operation was checked and found impossible before its first write. The transaction goes on.
    Refused(Refusal),
    /// The store failed in the middle. The transaction must be rolled back.
    Broken(StoreFailure),
}

impl ApplyError {
    /// This error as the error of a provider call.
    pub fn into_provider_error(self, operation: &str) -> ProviderError {
        match self {
            Self::Refused(refusal) => refusal.into_provider_error(operation),
            Self::Broken(failure) => failure.into_provider_error(operation),
        }
    }
}

impl From<Refusal> for ApplyError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreFailure> for ApplyError {
    fn from(failure: StoreFailure) -> Self {
        Self::Broken(failure)
    }
}

/// An operation that the rules refuse on a healthy store. Always a permanent error to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The token is unknown.
    InvalidLockToken,
    /// The token is known but its lease ended.
    InstanceLockExpired,
    /// The work item was taken over, completed or deleted.
    WorkItemLockLost,
    /// An event with this id is already stored.
    DuplicateEvent {
        /// The id of the instance.
        instance: String,
        /// The number of the execution, from 1.
        execution_id: u64,
        /// The id of the event.
        event_id: u64,
    },
    /// The item does not belong into that queue.
    InvalidWorkItemType {
        /// The item's kind.
        kind: &'static str,
    },
    /// No instance has this id.
    InstanceNotFound {
        /// The id.
        instance: String,
    },
    /// The instance runs and `force` was not given.
    InstanceStillRunning {
        /// The id.
        instance: String,
    },
    /// The instance is a child and cannot be deleted alone.
    IsSubOrchestration {
        /// The id.
        instance: String,
    },
    /// A child appeared after its tree was read.
    ChildAppeared {
        /// The id of the parent.
        parent: String,
        /// The id of the child.
        child: String,
    },
    /// No dead letter has this number.
    DeadLetterNotFound {
        /// The id.
        id: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidLockToken => f.write_str(INVALID_LOCK_TOKEN),
            Self::InstanceLockExpired => f.write_str(INSTANCE_LOCK_EXPIRED),
            Self::WorkItemLockLost => f.write_str(WORK_ITEM_LOCK_LOST),
            Self::DuplicateEvent { instance, execution_id, event_id } => {
                write!(
                    f,
                    "Event {event_id} already exists in execution {execution_id} of instance {instance}"
                )
            }
            Self::InvalidWorkItemType { kind } => write!(f, "Invalid work item type: {kind}"),
            Self::InstanceNotFound { instance } => write!(f, "Instance {instance} not found"),
            Self::InstanceStillRunning { instance } => write!(
                f,
                "Instance {instance} is still running. Use force=true to delete anyway, or cancel first."
            ),
            Self::IsSubOrchestration { instance } => write!(
                f,
                "Cannot delete sub-orchestration {instance} directly. Delete root instance instead."
            ),
            Self::ChildAppeared { parent, child } => write!(
                f,
                "Cannot delete: instance {parent} has child {child} that was created after tree traversal. \
                 Re-fetch the tree and retry."
            ),
            Self::DeadLetterNotFound { id } => write!(f, "Dead letter {id} not found"),
        }
    }
}

impl Refusal {
    /// This refusal as the error of a provider call.
    pub fn into_provider_error(self, operation: &str) -> ProviderError {
        ProviderError::permanent(operation, self.to_string())
    }
}

/// The store itself failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFailure {
    /// The message, for logs and users.
    pub message: String,
    /// Whether a retry can help.
    pub class: FailureClass,
    /// The step of the engine that panicked, if one did.
    pub panicked_in: Option<&'static str>,
}

/// Whether a retry can help after a failure of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// Nothing happened; trying again may help (busy, full, I/O error before the commit).
    Retryable,
    /// Nothing happened, because another transaction was in the way; trying again at once may help.
    LostRace,
    /// Nothing happened; trying again will not help (constraint, encoding, corrupt file).
    Permanent,
    /// The commit itself failed: it may or may not have happened. The engine must be reopened.
    OutcomeUnknown,
}

impl StoreFailure {
    /// A failure of this class.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self { message: message.into(), class, panicked_in: None }
    }

    /// This failure as the error of a provider call. An unknown outcome is retryable: a repeated commit finds
    /// either its lock or an invalid token.
    pub fn into_provider_error(self, operation: &str) -> ProviderError {
        match self.class {
            FailureClass::Retryable | FailureClass::LostRace | FailureClass::OutcomeUnknown => {
                ProviderError::retryable(operation, self.message)
            }
            FailureClass::Permanent => ProviderError::permanent(operation, self.message),
        }
    }
}

impl fmt::Display for StoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreFailure {}
