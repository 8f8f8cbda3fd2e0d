//! Validations of the reads and calls of clients and operators.

pub(crate) mod bulk_deletion;
pub(crate) mod custom_status;
pub(crate) mod deletion;
pub(crate) mod error_handling;
pub(crate) mod kv_store;
pub(crate) mod management;
pub(crate) mod prune;
pub(crate) mod status;
