//! Large fan-outs on a SQLite file.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "tests")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod fan_in;
