//! The named guarantees after random sequences of all public calls: client, management, and runtimes that come and go.
//!
//! The seed decides the calls of a run, but not how they interleave with the runtime's work. A failure names the seed
//! and the last calls.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this is a test"
)]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

#[path = "../fixture/mod.rs"]
mod fixture;
#[path = "../crash/seeded_random.rs"]
mod seeded_random;

mod calls;
mod script;
mod store;
mod views;
mod world;

use store::Store;
use world::World;

const CALLS: usize = 120;
/// Calls between two checks of the guarantees.
const STRIDE: usize = 12;

async fn run(store: Store, seed: u64) {
    let mut world = World::new(store, seed);
    for call in 0..CALLS {
        world.any_call().await;
        if call % STRIDE == 0 {
            world.assert_sound().await;
        }
    }
    world.settle().await;
    world.assert_sound().await;
    world.assert_views_agree().await;
    world.delete_everything().await;
}

/// I01 to I08, I15 to I17, I19, L1
#[tokio::test]
async fn in_memory_the_guarantees_hold_after_any_calls() {
    for seed in 1..=8 {
        run(Store::memory(), seed).await;
    }
}

/// The same on a file.
#[tokio::test]
async fn on_sqlite_the_guarantees_hold_after_any_calls() {
    for seed in 101..=105 {
        run(Store::sqlite().await, seed).await;
    }
}
