//! Servers that fall silent, poolers, and what a schema and its connections are set to.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is a test")]

#[path = "../fixture/mod.rs"]
mod fixture;
mod pooler;
mod schema;
mod silence;
