//! S1: messages that cannot be processed, with processes that really die and turns that really hang.
//!
//! A message that never succeeds is attempted `max_attempts` times and then ends as one recorded failure that holds the
//! whole message, while everything else goes on.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(clippy::indexing_slicing, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod beside;
mod crashes;
mod first_check;
mod handlers;
mod panics;
mod queues;
mod recovery;
mod strays;
mod stuck;

use crate::fixture::process;

/// Not a test: child processes begin here.
#[test]
#[ignore = "child processes begin here"]
fn plays_a_role() {
    let Some(role) = process::role() else { return };
    match role.name.as_str() {
        "worker" => process::play(crashes::work(&role.folder)),
        "wide worker" => process::play(crashes::work_side_by_side(&role.folder)),
        "recovery worker" => process::play(recovery::work(&role.folder, &role.detail)),
        "stuck turn" => process::play(stuck::turn(&role.folder)),
        "stuck activity" => process::play(stuck::activity(&role.folder)),
        other => panic!("no such role: {other}"),
    }
}
