//! S4: processes that are killed in the middle of everything, on a file that others use too.
//!
//! Activities run at least once, their completions are recorded exactly once, and an acknowledged call is durable.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(clippy::indexing_slicing, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod busy;
mod cancellation;
mod commits;
mod duplicates;
mod intake;
mod kills;
mod messages;
mod mix;
mod owners;
mod seeded_random;
mod sessions;
mod sound;

use crate::fixture::process;

/// Not a test: child processes begin here.
#[test]
#[ignore = "child processes begin here"]
fn plays_a_role() {
    let Some(role) = process::role() else { return };
    match role.name.as_str() {
        "worker" => process::play(mix::work(&role.folder)),
        "dies at a commit" => process::play(commits::work(&role.folder, &role.detail)),
        "client" => process::play(messages::send(&role.folder, &role.detail)),
        "reader" => process::play(messages::work(&role.folder)),
        "activities only" => process::play(cancellation::work(&role.folder)),
        "busy worker" => process::play(busy::work(&role.folder)),
        "writer" => process::play(busy::hold_the_write_lock(&role.folder)),
        "owner" => process::play(owners::work(&role.folder, &role.detail)),
        "session worker" => process::play(sessions::work(&role.folder)),
        "dies before its commit" => process::play(intake::leave_an_order_half_done(&role.folder)),
        other => panic!("no such role: {other}"),
    }
}
