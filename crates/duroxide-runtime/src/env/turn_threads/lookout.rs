//! Looks after turns that wait although every thread that should be awake is.
//!
//! Nobody wakes the lookout for a single turn, which would cost as much as waking a thread for it. It looks by itself
//! while turns keep coming, and goes when they stop.

use std::{sync::Arc, thread, time::Duration};

use tracing::error;

use super::{Shared, State};
use crate::env::lock;

/// How long a turn may wait before one more thread is woken for it.
const PATIENCE: Duration = Duration::from_millis(1);
/// Looks in a row without a turn, after which the lookout goes.
const QUIET_MAX: u32 = 1_000;

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
    loop {
        thread::sleep(PATIENCE);
        let mut state = lock(&shared.state);
        let is_held_up = !state.queue.is_empty() && taken_before == Some(state.taken);
        if is_held_up {
            Shared::add_thread(shared, &mut state);
        }
        quiet = if taken_before == Some(state.taken) && state.queue.is_empty() { quiet + 1 } else { 0 };
        taken_before = Some(state.taken);
        if state.queue.is_empty() && (state.closed || quiet > QUIET_MAX) {
            state.looked_after = false;
            return;
        }
    }
}
