//! Servers that fall silent or refuse a connection, poolers, copies, and the settings of a schema and its connections.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is a test")]

mod copy;
#[path = "../fixture/mod.rs"]
mod fixture;
mod pooler;
mod refusals;
mod schema;
mod silence;
