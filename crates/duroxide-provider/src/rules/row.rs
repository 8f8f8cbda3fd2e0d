//! Rows as the rules see them.
//!
//! A set of tables stores these values under columns of its own; some of SQLite's have older names. `number` is the key of a
//! row: numbers are drawn from one sequence ([`Tables::next_number`](super::Tables::next_number)), give rows their order,
//! and are never reused.

mod activity;
mod dead_letter;
mod instance;
mod message;
mod removal;

pub use self::{
    activity::{Lane, LaneId, QueuedActivity, SessionRow},
    dead_letter::{DeadLetterRow, Origin},
    instance::{
        CONTINUED_AS_NEW, ExecutionRow, Extent, InstanceLock, InstanceRow, Lease, Loaded, RUNNING, Readiness,
        Route, RouteId, is_end_of_execution, is_end_of_instance,
    },
    message::{
        ClaimBound, NOT_HIDDEN, QueuedMessage, VISIBLE_AT_ONCE, VisibleMessages, is_start, still_hidden,
    },
    removal::{ExecutionAge, Family, Removal},
};
