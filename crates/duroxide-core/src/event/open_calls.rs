//! [`OpenCalls`]: the calls that an execution waits for, read from its history.

use std::collections::BTreeMap;

use super::{CallKind, Event, EventKind, EventRole};
use crate::engine::CANCEL_AND_WAIT;

/// The calls of an execution that are neither completed nor given up, and the events that arrived without a wait.
///
/// A history does not record that code gave up a timer, so a timer that lost a select is still among the open calls. Its
/// message is no longer in the mailbox of the instance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenCalls<'a> {
    /// The open calls, in the order of their events.
    pub calls: Vec<OpenCall<'a>>,
    /// The names of external events that arrived while no wait for them was open, in the order of their arrival. They are
    /// lost for the code.
    pub missed_events: Vec<&'a str>,
    /// The names of the queues whose messages wait to be read, a name per message, in the order of their arrival.
    pub unread_messages: Vec<&'a str>,
}

/// A call that is neither completed nor given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall<'a> {
    /// The event that records the call.
    pub event_id: u64,
    /// When the call was made, in milliseconds since the epoch.
    pub since_ms: u64,
    /// What is called.
    pub target: CallTarget<'a>,
}

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallTarget<'a> {
    /// An activity.
    Activity {
        /// The name under which the activity is registered.
        name: &'a str,
        /// The tag that a worker must take.
        tag: Option<&'a str>,
        /// Whether code asked it to stop and waits for its outcome.
        stop_requested: bool,
    },
    /// A child orchestration.
    Child {
        /// The name under which the orchestration is registered.
        name: &'a str,
        /// The id of the child; of an automatic id only the suffix.
        instance: &'a str,
    },
    /// An external event.
    Event {
        /// The name for which the code waits.
        name: &'a str,
    },
    /// A request to cancel the instance.
    Cancellation,
    /// A message of an event queue.
    Queue {
        /// The queue from which the code reads.
        name: &'a str,
    },
    /// A timer.
    Timer {
        /// When it is due, in milliseconds since the epoch.
        fire_at_ms: u64,
    },
}

impl<'a> OpenCalls<'a> {
    /// Finds the open calls of the execution with this history.
    pub fn of(history: &'a [Event]) -> Self {
        let mut walk = Walk::default();
        for event in history {
            walk.take(event);
        }
        let calls = walk.open.into_values().collect();
        Self { calls, missed_events: walk.missed_events, unread_messages: walk.unread_messages }
    }
}

#[derive(Default)]
struct Walk<'a> {
    open: BTreeMap<u64, OpenCall<'a>>,
    /// Queue reads that a message was matched with. A read that is given up later gives its message back.
    answered_reads: BTreeMap<u64, OpenCall<'a>>,
    missed_events: Vec<&'a str>,
    unread_messages: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn take(&mut self, event: &'a Event) {
        match event.kind.role() {
            EventRole::Start => self.carry_messages(event),
            EventRole::End => self.open.clear(),
            EventRole::CancelRequest => self.open.retain(|_, call| call.target != CallTarget::Cancellation),
            EventRole::Call(_) => self.call(event),
            EventRole::Completion(_) => {
                event.source_event_id.map(|call| self.open.remove(&call));
            }
            EventRole::GivenUp { call: CallKind::Activity, reason: CANCEL_AND_WAIT } => {
                self.ask_to_stop(event.source_event_id);
            }
            EventRole::GivenUp { .. } => self.give_up(event.source_event_id),
            EventRole::Message => self.deliver(event),
            EventRole::DetachedStart | EventRole::CustomStatus(_) | EventRole::KeyValues(_) => {}
        }
    }

    fn carry_messages(&mut self, start: &'a Event) {
        let EventKind::OrchestrationStarted { carry_forward_events: Some(carried), .. } = &start.kind else {
            return;
        };
        self.unread_messages.extend(carried.iter().map(|(queue, _)| queue.as_str()));
    }

    fn call(&mut self, event: &'a Event) {
        let Some(target) = CallTarget::of(&event.kind) else { return };
        let call = OpenCall { event_id: event.event_id, since_ms: event.timestamp_ms, target };
        if let CallTarget::Queue { name } = target
            && let Some(position) = self.unread_messages.iter().position(|unread| *unread == name)
        {
            self.unread_messages.remove(position);
            self.answered_reads.insert(event.event_id, call);
        } else {
            self.open.insert(event.event_id, call);
        }
    }

    fn ask_to_stop(&mut self, call: Option<u64>) {
        let call = call.and_then(|call| self.open.get_mut(&call));
        if let Some(OpenCall { target: CallTarget::Activity { stop_requested, .. }, .. }) = call {
            *stop_requested = true;
        }
    }

    fn give_up(&mut self, call: Option<u64>) {
        let Some(call) = call else { return };
        self.open.remove(&call);
        if let Some(OpenCall { target: CallTarget::Queue { name }, .. }) = self.answered_reads.remove(&call) {
            self.deliver_message(name);
        }
    }

    fn deliver(&mut self, event: &'a Event) {
        if let EventKind::ExternalEvent { name, .. } = &event.kind {
            match self.oldest(CallTarget::Event { name }) {
                Some(wait) => drop(self.open.remove(&wait)),
                None => self.missed_events.push(name),
            }
        } else if let EventKind::QueueEventDelivered { name, .. } = &event.kind {
            self.deliver_message(name);
        }
        // The call of a step is not recorded, so the end of one closes nothing.
    }

    fn deliver_message(&mut self, queue: &'a str) {
        let read = self.oldest(CallTarget::Queue { name: queue }).and_then(|read| self.open.remove(&read));
        match read {
            Some(read) => drop(self.answered_reads.insert(read.event_id, read)),
            None => self.unread_messages.push(queue),
        }
    }

    /// The oldest open call of this target (9.1, 10.1).
    fn oldest(&self, target: CallTarget<'_>) -> Option<u64> {
        self.open.values().find(|call| call.target == target).map(|call| call.event_id)
    }
}

impl<'a> CallTarget<'a> {
    fn of(kind: &'a EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::ActivityScheduled { name, tag, .. } => {
                Self::Activity { name, tag: tag.as_deref(), stop_requested: false }
            }
            EventKind::SubOrchestrationScheduled { name, instance, .. } => Self::Child { name, instance },
            EventKind::ExternalSubscribed { name } => Self::Event { name },
            EventKind::CancellationSubscribed => Self::Cancellation,
            EventKind::QueueSubscribed { name } => Self::Queue { name },
            EventKind::TimerCreated { fire_at_ms } => Self::Timer { fire_at_ms: *fire_at_ms },
            EventKind::OrchestrationStarted { .. }
            | EventKind::OrchestrationCompleted { .. }
            | EventKind::OrchestrationFailed { .. }
            | EventKind::OrchestrationContinuedAsNew { .. }
            | EventKind::OrchestrationCancelRequested { .. }
            | EventKind::ActivityCompleted { .. }
            | EventKind::ActivityFailed { .. }
            | EventKind::ActivityCancelRequested { .. }
            | EventKind::StepEnded { .. }
            | EventKind::TimerFired { .. }
            | EventKind::ExternalEvent { .. }
            | EventKind::ExternalSubscribedCancelled { .. }
            | EventKind::QueueEventDelivered { .. }
            | EventKind::QueueSubscriptionCancelled { .. }
            | EventKind::OrchestrationChained { .. }
            | EventKind::SubOrchestrationCompleted { .. }
            | EventKind::SubOrchestrationFailed { .. }
            | EventKind::SubOrchestrationCancelRequested { .. }
            | EventKind::CustomStatusUpdated { .. }
            | EventKind::KeyValueSet { .. }
            | EventKind::KeyValueCleared { .. }
            | EventKind::KeyValuesCleared => return None,
        })
    }
}

#[cfg(test)]
mod tests;
