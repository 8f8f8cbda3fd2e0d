//! Commands that only read.

pub mod explain;
pub mod history;
mod instance;
pub mod list;
pub mod nodes;
pub mod queues;
pub mod show;
pub mod stats;
pub mod tree;
pub mod versions;
pub mod watch;
