//! Delivers external events and requests to cancel, which have no schedule.

use super::{Execution, wake};
use crate::engine::{Identity, state::CANCELLATION};

impl Execution {
    /// Delivers a request to cancel, if the code has subscribed. Otherwise the execution ends (2.10).
    pub(super) fn tell_of_cancellation(&mut self, reason: String) {
        let told = self.shared.lock().tell_of_cancellation(&reason);
        if told.is_empty() {
            // The code has not subscribed, or dropped its subscription earlier in this turn.
            self.cancel_reason.get_or_insert(reason);
        }
        for waker in told {
            self.poll_needed = true;
            wake(waker);
        }
    }

    pub(super) fn raise(&mut self, name: &str, data: String, event_id: u64) {
        // The name is reserved, so an event that has it by chance is not delivered.
        let delivered = if name == CANCELLATION { None } else { self.shared.lock().raise(name, data) };
        match delivered {
            Some(waker) => {
                self.poll_needed = true;
                wake(waker);
            }
            // A recorded event was reported when it arrived.
            None if event_id > self.replayed_to => {
                let Identity { instance, execution_id, .. } = &self.shared.identity;
                let (awaited_events, awaited_queues) = self.awaited();
                tracing::warn!(
                    target: "duroxide::runtime",
                    %instance,
                    execution_id,
                    event_name = name,
                    ?awaited_events,
                    ?awaited_queues,
                    "skipping ExternalEvent delivery: no pending subscription slot for event '{name}'"
                );
            }
            None => {}
        }
    }

    /// Warns of queues that received their first message and that the code has never read: the name may be misspelt. The
    /// messages are kept for a later read.
    pub(in crate::engine) fn warn_of_never_read_queues(&self) {
        let never_read = self.shared.lock().queues.take_never_read();
        let Identity { instance, execution_id, .. } = &self.shared.identity;
        for queue_name in never_read {
            let (awaited_events, awaited_queues) = self.awaited();
            tracing::warn!(
                target: "duroxide::runtime",
                %instance,
                execution_id,
                queue_name,
                ?awaited_events,
                ?awaited_queues,
                "nothing has read queue '{queue_name}' yet: its messages wait"
            );
        }
    }

    /// The names of the events and queues that the code waits for.
    fn awaited(&self) -> (Vec<String>, Vec<String>) {
        let state = self.shared.lock();
        (state.awaited_events(), state.queues.awaited())
    }
}
