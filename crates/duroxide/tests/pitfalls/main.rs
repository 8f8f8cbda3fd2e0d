//! Pitfalls: ways in which an engine fails although its ordinary tests pass, on a file store and with the durations that
//! the specification names. The same rules are tested closer to where they live, with other stores and numbers.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(clippy::indexing_slicing, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod cancellation;
mod changed_code;
mod faults;
mod leases;
mod outages;
mod panics;
mod queues;
mod status_reads;
mod turns;
