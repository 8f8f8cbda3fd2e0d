//! The test kit: clusters in virtual time.

mod crashes;
mod faults;
mod mocks;
mod order;
mod seeds;
mod time;
