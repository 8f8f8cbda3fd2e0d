//! Many processes on one PostgreSQL schema: killed, frozen, and replaced by other builds.
//!
//! Children leave notes in files that outlive them; the store's own account is held against them.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(clippy::indexing_slicing, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

#[path = "../fixture/mod.rs"]
mod fixture;
#[path = "../crash/seeded_random.rs"]
mod luck;
#[path = "../crash/mix.rs"]
#[allow(dead_code, reason = "the workers of a cluster open another store")]
mod mix;
#[path = "../crash/sound.rs"]
#[allow(dead_code, reason = "shared with the tests of crashes")]
mod sound;

mod clocks;
mod copy;
mod faults;
mod idle;
mod intake;
mod kills;
mod pooler;
mod roles;
mod schema;
mod takeover;
mod upgrade;

use crate::fixture::process;

/// Not a test: child processes begin here.
#[test]
#[ignore = "child processes begin here"]
fn plays_a_role() {
    let Some(role) = process::role() else { return };
    match role.name.as_str() {
        "worker" => process::play(kills::work(&role.folder)),
        "killed by a turn" => process::play(kills::by_a_turn::work(&role.folder, &role.detail)),
        "copies" => process::play(copy::failures::work(&role.folder)),
        "owner" => process::play(takeover::work(&role.folder, &role.detail)),
        "slow" => process::play(takeover::slow::work(&role.folder, &role.detail)),
        "build" => process::play(upgrade::work(&role.folder, &role.detail)),
        "dies before its commit" => process::play(intake::leave_an_order_half_done(&role.folder)),
        other => panic!("no such role: {other}"),
    }
}
