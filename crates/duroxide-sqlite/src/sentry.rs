//! Word from the system that someone writes the log. SQLite itself tells nobody.

#[cfg_attr(target_os = "linux", path = "sentry/inotify.rs")]
#[cfg_attr(not(target_os = "linux"), path = "sentry/nowhere.rs")]
mod post;

use std::{path::Path, sync::Arc};

use duroxide_provider::store::TellOfWrite;

use self::post::Post;

/// Watches the log of one store, once somebody asks for it.
#[derive(Debug, Default)]
pub(crate) enum Sentry {
    #[default]
    Unasked,
    Posted(Post),
    /// The system does not tell, or has no room for one more who asks.
    Unavailable,
}

impl Sentry {
    /// Has the next write to `log` told, once. Returns whether it will be.
    pub(crate) fn tell_of_write(&mut self, log: &Path, tell: &TellOfWrite) -> bool {
        if matches!(self, Self::Unasked) {
            *self = match Post::new(Arc::clone(tell)) {
                Ok(post) => Self::Posted(post),
                Err(error) => {
                    tracing::debug!(target: "duroxide::providers::sqlite", %error, "writes are not told");
                    Self::Unavailable
                }
            };
        }
        match self {
            Self::Posted(post) => post.watch(log).is_ok(),
            Self::Unasked | Self::Unavailable => false,
        }
    }
}
