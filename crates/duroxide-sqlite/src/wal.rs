//! The write-ahead log: moving it into the database, allocating its space, and detecting writes by other processes.

mod checkpoint;
mod log_space;
mod watcher;

pub(crate) use self::{
    checkpoint::{LOG_BYTES_DUE, Log, run_full as checkpoint_fully},
    log_space::LogSpace,
    watcher::WalWatcher,
};
