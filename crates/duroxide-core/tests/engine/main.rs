//! The engine, in short stories of code and messages. Each runs on a live execution and by replay.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod authoring;
mod calls;
mod cancellation;
mod continuation;
mod events;
mod limits;
mod logs;
mod nondeterminism;
mod races;
mod random_programs;
mod state;
mod stored_form;
mod story;
mod views;
