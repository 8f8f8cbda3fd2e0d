//! [`TokioTimer`]: the timer of clients.

use tokio::time::Instant;

use super::{BoxFuture, Moment, Timer};

/// The timer of the tokio runtime in which a sleep is created. Unlike a [`RealEnv`](super::RealEnv) it is not bound to
/// a runtime, so it can be created anywhere.
#[derive(Debug, Clone)]
pub struct TokioTimer {
    began: Instant,
}

impl TokioTimer {
    /// A timer whose moments count from now.
    pub fn new() -> Self {
        Self { began: Instant::now() }
    }
}

impl Default for TokioTimer {
    fn default() -> Self {
        Self::new()
    }
}

impl Timer for TokioTimer {
    fn moment(&self) -> Moment {
        Moment::new(self.began.elapsed())
    }

    fn sleep_until(&self, deadline: Moment) -> BoxFuture {
        // A deadline that the clock cannot represent is never reached.
        match self.began.checked_add(deadline.since_begin()) {
            Some(deadline) => Box::pin(tokio::time::sleep_until(deadline)),
            None => Box::pin(std::future::pending()),
        }
    }
}
