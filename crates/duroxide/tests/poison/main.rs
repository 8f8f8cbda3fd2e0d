//! S1: work that takes its process down with it, and work that nobody can do.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod beside;
mod crashing;
mod first_check;
