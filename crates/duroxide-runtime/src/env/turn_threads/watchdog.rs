//! Looks after turns that wait although every thread that should be awake is.
//!
//! Nobody wakes the lookout for a single turn, which would cost as much as waking a thread for it. It looks by itself
//! while turns keep coming, less often while it finds nothing to do, and goes when they stop.

use std::{sync::Arc, thread, time::Duration};

use tracing::error;

use super::{Shared, State};
use crate::env::lock;

/// How long a turn may wait before one more thread is woken for it, while turns are held up.
const PATIENCE: Duration = Duration::from_millis(1);
/// The same while none was held up for some time: quick turns should not pay for a lookout that wakes all the time.
const PATIENCE_MAX: Duration = Duration::from_millis(8);
/// Looks in a row without a turn, after which the lookout goes.
const QUIET_MAX: u32 = 128;

/// Sees to it that there is a lookout.
pub(super) fn post(shared: &Arc<Shared>, state: &mut State) {
    if state.looked_after {
        return;
    }
    let watched = Arc::clone(shared);
    match thread::Builder::new().name("duroxide-lookout".into()).spawn(move || look_out(&watched)) {
        Ok(_) => state.looked_after = true,
        Err(reason) => {
            error!(target: "duroxide::runtime", %reason, "could not start the lookout of the turn threads");
            Shared::add_thread(shared, state);
        }
    }
}

fn look_out(shared: &Arc<Shared>) {
    let mut taken_before = None;
    let mut quiet = 0;
    let mut patience = PATIENCE;
    loop {
        thread::sleep(patience);
        let mut state = lock(&shared.state);
        let is_held_up = !state.queue.is_empty() && taken_before == Some(state.taken);
        if is_held_up {
            Shared::add_thread(shared, &mut state);
        }
        patience = patience_after(patience, is_held_up);
        quiet = if taken_before == Some(state.taken) && state.queue.is_empty() { quiet + 1 } else { 0 };
        taken_before = Some(state.taken);
        if state.queue.is_empty() && (state.closed || quiet > QUIET_MAX) {
            state.looked_after = false;
            drop(state);
            shared.ended.notify_waiters();
            return;
        }
    }
}

fn patience_after(patience: Duration, is_held_up: bool) -> Duration {
    if is_held_up { PATIENCE } else { patience.saturating_mul(2).min(PATIENCE_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lookout_looks_seldom_while_no_turn_is_held_up_and_often_while_one_is() {
        let quick = (0..10).fold(PATIENCE, |patience, _| patience_after(patience, false));
        assert_eq!(quick, PATIENCE_MAX);
        assert_eq!(patience_after(quick, true), PATIENCE);
        assert_eq!(patience_after(PATIENCE, true), PATIENCE);
    }
}
