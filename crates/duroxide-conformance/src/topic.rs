//! One module per topic of the suite.

pub(crate) mod atomicity;
pub(crate) mod error_handling;
pub(crate) mod instance_creation;
pub(crate) mod instance_locking;
pub(crate) mod lock_expiration;
pub(crate) mod multi_execution;
pub(crate) mod queue_semantics;
