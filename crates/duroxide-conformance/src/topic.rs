//! One module per topic of the suite.

pub(crate) mod atomicity;
pub(crate) mod bulk_deletion;
pub(crate) mod cancellation;
pub(crate) mod capability_filtering;
pub(crate) mod custom_status;
pub(crate) mod dead_letters;
pub(crate) mod deletion;
pub(crate) mod error_handling;
pub(crate) mod handler_capability;
pub(crate) mod idempotent_enqueue;
pub(crate) mod instance_creation;
pub(crate) mod instance_locking;
pub(crate) mod kv_store;
pub(crate) mod lock_expiration;
pub(crate) mod long_polling;
pub(crate) mod management;
pub(crate) mod multi_execution;
pub(crate) mod nodes;
pub(crate) mod poison_message;
pub(crate) mod prune;
pub(crate) mod queue_semantics;
pub(crate) mod race_replay;
pub(crate) mod rounds;
pub(crate) mod sessions;
pub(crate) mod status;
pub(crate) mod tag_filtering;
