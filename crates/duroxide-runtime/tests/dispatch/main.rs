//! Stories of dispatch: how a node processes work, with and without faults.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod attempts;
mod bounds;
mod cache;
mod children;
mod failure_logs;
mod faults;
mod first_steps;
#[path = "../../src/fixture/listen.rs"]
mod listen;
mod locks;
#[path = "../../src/fixture/logs.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod logs;
mod lost_answers;
mod panics;
#[path = "../../src/fixture/recorder.rs"]
mod recorder;
mod scene;
mod shutdown;
mod slots;
mod stops;

use std::time::Duration;

/// The timeout of every wait in these tests.
const WAIT_MAX: Duration = Duration::from_secs(30);
