//! The watchdog of stalled turns: wakes more threads if queued turns wait although enough threads are awake.
//!
//! The watchdog is not woken for a single turn, which would cost as much as waking a turn thread. It checks
//! periodically while turns arrive, less often while no turn is stalled, and ends when no more turns arrive.

use std::{sync::Arc, thread, time::Duration};

use tracing::error;

use super::{Shared, State};
use crate::env::lock;

/// The check interval while turns are stalled, and so how long a turn waits for one more thread.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// The check interval while no turn is stalled, so that quick turns do not pay for frequent checks.
const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(8);
/// Consecutive checks without a turn, after which the watchdog ends.
const QUIET_CHECKS_MAX: u32 = 128;

/// Starts the watchdog unless it runs.
pub(super) fn ensure_running(shared: &Arc<Shared>, state: &mut State) {
    if state.watchdog_runs {
        return;
    }
    let watched = Arc::clone(shared);
    match thread::Builder::new().name("duroxide-watchdog".into()).spawn(move || watch(&watched)) {
        Ok(_) => state.watchdog_runs = true,
        Err(reason) => {
            error!(target: "duroxide::runtime", %reason, "could not start the watchdog of the turn threads");
            Shared::add_thread(shared, state);
        }
    }
}

fn watch(shared: &Arc<Shared>) {
    let mut taken_before = None;
    let mut quiet = 0;
    let mut interval = CHECK_INTERVAL;
    loop {
        thread::sleep(interval);
        let mut state = lock(&shared.state);
        let is_stalled = !state.queue.is_empty() && taken_before == Some(state.taken);
        if is_stalled {
            Shared::add_thread(shared, &mut state);
        }
        interval = interval_after(interval, is_stalled);
        quiet = if taken_before == Some(state.taken) && state.queue.is_empty() { quiet + 1 } else { 0 };
        taken_before = Some(state.taken);
        if state.queue.is_empty() && (state.closed || quiet > QUIET_CHECKS_MAX) {
            state.watchdog_runs = false;
            drop(state);
            shared.ended.notify_waiters();
            return;
        }
    }
}

fn interval_after(interval: Duration, is_stalled: bool) -> Duration {
    if is_stalled { CHECK_INTERVAL } else { interval.saturating_mul(2).min(CHECK_INTERVAL_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_checks_rarely_while_no_turn_is_stalled_and_often_while_one_is() {
        let quick = (0..10).fold(CHECK_INTERVAL, |interval, _| interval_after(interval, false));
        assert_eq!(quick, CHECK_INTERVAL_MAX);
        assert_eq!(interval_after(quick, true), CHECK_INTERVAL);
        assert_eq!(interval_after(CHECK_INTERVAL, true), CHECK_INTERVAL);
    }
}
