//! The SQLite store engine, driven directly: time and nonces are arguments, nothing waits. What every engine does is
//! in `stories.rs`; here is what only this one has: files, connections, damage, statements.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests are tests")]

mod clocks;
mod damage;
mod files;
mod fixture;
mod listing;
mod mailbox_cost;
mod payloads;
mod plans;
mod refused_files;
mod removal;
mod row_cache;
mod sharing;
mod timers;
mod upgrades;
