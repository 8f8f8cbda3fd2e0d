//! The SQLite store engine, driven directly: time and nonces are arguments, nothing waits. `stories.rs` tests the
//! behaviour of every engine; these tests cover only this one: files, connections, damage, statements.

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
