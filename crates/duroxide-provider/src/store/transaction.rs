//! A transaction as one call: a batch goes in, and the result or a fault comes back.

mod batch;
mod early;
mod intake;
mod steps;

pub use self::{
    batch::{Batch, BatchPart, Done, Fault, NextWake, Submitted, WaitingFetch},
    early::{CommitEarly, EarlyClaims, EarlyTurns},
    intake::{INTAKE_ROWS_MAX, TakenOver, take_over},
    steps::{TransactionSteps, caught},
};
