//! Durable timers.

use std::{panic::Location, time::Duration};

use super::OrchestrationContext;
use crate::{Action, CallKind, DurableFuture, engine::Caller};

/// # Timers
impl OrchestrationContext {
    /// A durable timer: it fires `delay` from now, also if the process is down in between, and never early.
    #[track_caller]
    pub fn schedule_timer(&self, delay: Duration) -> DurableFuture<()> {
        self.timer_at(Location::caller(), delay)
    }

    /// A timer of a call at this location in the user's code.
    pub(crate) fn timer_at(&self, location: Caller, delay: Duration) -> DurableFuture<()> {
        let action =
            Action::CreateTimer { scheduling_event_id: 0, fire_at_ms: self.shared.fire_at_ms(delay) };
        self.call_at(location, CallKind::Timer, "", action, |_| ())
    }
}
