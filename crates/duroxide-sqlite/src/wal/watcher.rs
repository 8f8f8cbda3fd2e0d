//! Watches the write-ahead log through inotify, because SQLite does not notify of other processes' writes.

#[cfg_attr(target_os = "linux", path = "watcher/inotify.rs")]
#[cfg_attr(not(target_os = "linux"), path = "watcher/unavailable.rs")]
mod system;

use std::{path::Path, sync::Arc};

use duroxide_provider::store::TellOfWrite;

use self::system::FileWatch;

/// Watches the log of one store, from the first request on.
#[derive(Debug, Default)]
pub(crate) enum WalWatcher {
    #[default]
    NotStarted,
    Watching(FileWatch),
    /// The system has no file notifications, or no room for one more watch.
    Unavailable,
}

impl WalWatcher {
    /// Calls `tell` once at the next write to `log`. Returns whether it watches the file.
    pub(crate) fn tell_of_write(&mut self, log: &Path, tell: &TellOfWrite) -> bool {
        if matches!(self, Self::NotStarted) {
            *self = match FileWatch::new(Arc::clone(tell)) {
                Ok(watch) => Self::Watching(watch),
                Err(error) => {
                    tracing::debug!(target: "duroxide::providers::sqlite", %error, "the log cannot be watched");
                    Self::Unavailable
                }
            };
        }
        match self {
            Self::Watching(watch) => watch.arm(log).is_ok(),
            Self::NotStarted | Self::Unavailable => false,
        }
    }
}
