//! Validations of commits, instances, locks and executions.

pub(crate) mod atomicity;
pub(crate) mod instance_creation;
pub(crate) mod instance_locking;
pub(crate) mod lock_expiration;
pub(crate) mod multi_execution;
pub(crate) mod race_replay;
pub(crate) mod rounds;
