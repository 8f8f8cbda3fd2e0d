//! The test kit: clusters in virtual time, mocks, recorded histories, checks before a rollout.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this is a test"
)]

mod audit;
mod crashes;
mod faults;
mod histories;
mod mocks;
mod order;
mod seeds;
mod steps;
mod time;
mod units;
mod verify;
