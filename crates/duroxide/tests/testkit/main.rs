//! The test kit: clusters in virtual time, mocks, recorded histories, checks before a rollout.

mod crashes;
mod faults;
mod histories;
mod mocks;
mod order;
mod seeds;
mod time;
mod verify;
