//! Commands that change instances.

pub mod cancel;
pub mod dead_letters;
pub mod delete;
mod each;
pub mod enqueue;
mod message;
pub mod prune;
pub mod raise;
pub mod start;
