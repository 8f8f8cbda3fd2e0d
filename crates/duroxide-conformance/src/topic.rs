//! One module per topic of the suite, in four groups.

mod capabilities;
mod clients;
mod executions;
mod queues;

pub(crate) use self::{
    capabilities::{capability_filtering, handler_capability, nodes},
    clients::{bulk_deletion, custom_status, deletion, error_handling, kv_store, management, prune, status},
    executions::{
        atomicity, instance_creation, instance_locking, lock_expiration, multi_execution, race_replay, rounds,
    },
    queues::{
        cancellation, dead_letters, idempotent_enqueue, long_polling, poison_message, queue_semantics,
        sessions, tag_filtering,
    },
};
