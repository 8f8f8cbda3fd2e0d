//! The SQLite store on disks that lose power, fail and run full.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod caller;
mod failures;
mod power_cuts;
mod transcript;
