//! Validations of queues and activities.

pub(crate) mod cancellation;
pub(crate) mod dead_letters;
pub(crate) mod idempotent_enqueue;
pub(crate) mod long_polling;
pub(crate) mod poison_message;
pub(crate) mod queue_semantics;
pub(crate) mod sessions;
pub(crate) mod tag_filtering;
