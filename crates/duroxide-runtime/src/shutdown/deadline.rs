//! The earliest deadline of all calls of `shutdown`.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Either, select};
use tokio::sync::watch;

use crate::env::{Env, Moment};

/// The deadline of running work: the earliest of all calls.
#[derive(Debug)]
pub(super) struct Deadline {
    earliest: watch::Sender<Option<Moment>>,
}

impl Default for Deadline {
    fn default() -> Self {
        Self { earliest: watch::Sender::new(None) }
    }
}

impl Deadline {
    /// Adds the deadline of another call. A timeout of zero precedes any other.
    pub(super) fn bring_forward(&self, env: &Arc<dyn Env>, timeout: Duration) {
        let asked = if timeout.is_zero() { Moment::default() } else { env.moment().after(timeout) };
        self.earliest.send_modify(|earliest| {
            *earliest = Some(earliest.map_or(asked, |earlier| earlier.min(asked)));
        });
    }

    /// Whether a call asked for a shutdown without provider calls.
    pub(super) fn is_immediate(&self) -> bool {
        *self.earliest.borrow() == Some(Moment::default())
    }

    /// Resolves when the deadline has passed, even if it is moved forward meanwhile.
    pub(super) async fn passed(&self, env: &Arc<dyn Env>) {
        let mut changes = self.earliest.subscribe();
        loop {
            let earliest = *changes.borrow_and_update();
            let passed = async {
                match earliest {
                    Some(deadline) if deadline <= env.moment() => {}
                    Some(deadline) => {
                        // Activities that block all threads of the executor also stop its timers.
                        let left = deadline.since(env.moment());
                        select(env.sleep_until(deadline), env.sleep_off_executor(left)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            if let Either::Left(_) = select(pin!(passed), pin!(changes.changed())).await {
                return;
            }
        }
    }
}
