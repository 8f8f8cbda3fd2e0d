//! Durable timers.

use std::time::Duration;

use super::OrchestrationContext;
use crate::{Action, CallKind, DurableFuture};

/// # Timers
impl OrchestrationContext {
    /// A durable timer: it fires `delay` from now, also if the process is down in between, and never early.
    pub fn schedule_timer(&self, delay: Duration) -> DurableFuture<()> {
        let fire_at_ms = self.shared.fire_at_ms(delay);
        self.call(CallKind::Timer, "", Action::CreateTimer { scheduling_event_id: 0, fire_at_ms }, |_| ())
    }
}
