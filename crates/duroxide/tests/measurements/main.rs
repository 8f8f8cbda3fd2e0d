//! Measurements of bounds that are promised: `cargo xtask measure` runs each of them in a process of its own.
//!
//! Each prints its figures, and fails beyond its bound. They are no part of the tests, because a busy machine
//! or disk can spoil them.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(clippy::print_stdout, reason = "this is a measurement")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod bulk_delete;
mod cache_memory;
mod full_tables;
mod held_transaction;
mod hello_load;
mod recovery;
mod verify;

use crate::fixture::process;

/// Not a measurement: child processes begin here.
#[test]
#[ignore = "child processes begin here"]
fn plays_a_role() {
    let Some(role) = process::role() else { return };
    match role.name.as_str() {
        "worker" => process::play(recovery::work(&role.folder)),
        other => panic!("no such role: {other}"),
    }
}
