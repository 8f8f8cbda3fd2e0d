//! A transaction as one call: a batch goes in, and what was done, or why nothing was, comes back.

mod batch;
mod panics;
mod serving;
mod steps;

pub use self::{
    batch::{Batch, BatchPart, Done, Fault, Submitted, WaitingFetch},
    panics::caught,
    steps::TransactionSteps,
};
