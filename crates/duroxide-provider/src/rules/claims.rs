//! Claims: what a fetch locks.

mod activities;
mod instances;

pub(crate) use self::instances::identity_in_event;
