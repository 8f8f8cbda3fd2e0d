//! The peek-lock adapter on a store of ordered maps.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]

mod conformance;
mod crash_windows;
mod rules;
mod table_store;
