//! Bad input gets a typed, clear error; nothing is lost, nothing blocked, nothing panics.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod mailbox;
mod names;
mod parents;
mod sizes;
mod unknown_instances;
mod wrong_files;

use duroxide::ClientError;

/// The call was refused at the door, with a message that says this.
#[track_caller]
fn refused(result: Result<(), ClientError>, text: &str) {
    match result {
        Err(ClientError::InvalidInput { message }) => assert!(message.contains(text), "{message}"),
        other => panic!("expected InvalidInput, got {other:?}"),
    }
}
