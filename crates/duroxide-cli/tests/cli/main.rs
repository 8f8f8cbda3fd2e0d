//! The real program on real stores: every command, every form of output, every exit code.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod change;
mod example;
mod fixture;
mod look;
mod maintain;
mod output;
#[cfg(feature = "postgres")]
mod postgres;
mod refusals;
mod stuck;
mod terminal;
#[cfg(feature = "ui")]
mod ui;
