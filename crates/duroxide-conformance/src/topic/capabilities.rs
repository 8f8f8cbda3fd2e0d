//! Validations of which work a node gets.

pub(crate) mod capability_filtering;
pub(crate) mod handler_capability;
pub(crate) mod nodes;
