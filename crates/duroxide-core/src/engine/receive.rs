//! Receives messages: each becomes an event, is dropped, or fails the turn (2.4, 2.5).

use super::execution::{Draft, Execution};
use crate::{CallKind, ErrorDetails, Event, EventKind, WorkItem};

/// How a message is recorded.
enum Incoming {
    /// As the completion of a schedule.
    Completion(Completion),
    /// As this event, always.
    Event(EventKind),
    /// As a request to cancel, until one of them ends the execution.
    Cancel { reason: String },
    /// Not at all: starts and continue-as-new items.
    Nothing,
}

struct Completion {
    execution_id: u64,
    schedule_id: u64,
    kind: CallKind,
    event: EventKind,
}

impl Execution {
    /// Appends the events of the messages to the turn. Returns a copy of each, to be applied to the code.
    pub(super) fn receive(&mut self, messages: Vec<WorkItem>, draft: &mut Draft) -> Vec<Event> {
        let seed_len = draft.delta.len();
        for message in messages {
            match Incoming::from(message) {
                Incoming::Completion(completion) => self.receive_completion(completion, draft),
                Incoming::Event(kind) => self.append(draft, None, kind),
                Incoming::Cancel { reason } if self.cancel_reason.is_none() => {
                    self.append(draft, None, EventKind::OrchestrationCancelRequested { reason });
                }
                Incoming::Cancel { .. } | Incoming::Nothing => {}
            }
        }
        draft.delta.iter().skip(seed_len).cloned().collect()
    }

    fn receive_completion(&mut self, completion: Completion, draft: &mut Draft) {
        let Completion { execution_id, schedule_id, kind, event } = completion;
        let current = self.shared.identity.execution_id;
        if execution_id != current {
            let why = if execution_id < current {
                "ignoring completion from previous execution"
            } else {
                "completion from different execution"
            };
            self.warn_dropped(why, schedule_id, execution_id, kind);
            return;
        }
        let Some(schedule) = self.check.schedule(schedule_id) else {
            let what = match kind {
                CallKind::Timer => "timer",
                CallKind::Child => "sub-orchestration",
                CallKind::Activity | CallKind::Wait | CallKind::Queue => "completion",
            };
            self.fail(ErrorDetails::nondeterminism(format!(
                "no matching schedule for {what} id={schedule_id}"
            )));
            return;
        };
        if schedule.kind != kind {
            self.fail(ErrorDetails::nondeterminism(format!(
                "completion kind mismatch for id={schedule_id}, expected '{}', got '{}'",
                schedule.kind.label(),
                kind.label()
            )));
            return;
        }
        if schedule.completed {
            self.warn_dropped("ignoring duplicate completion", schedule_id, execution_id, kind);
            return;
        }
        if let EventKind::ActivityFailed { details } | EventKind::SubOrchestrationFailed { details } = &event
            && details.is_system()
            && !schedule.cancelled
        {
            self.fail(details.clone());
        }
        self.append(draft, Some(schedule_id), event);
    }

    fn warn_dropped(&self, why: &'static str, schedule_id: u64, completion_execution: u64, kind: CallKind) {
        tracing::warn!(
            target: "duroxide::runtime",
            instance = %self.shared.identity.instance,
            execution_id = self.shared.identity.execution_id,
            completion_execution_id = completion_execution,
            schedule_id,
            kind = kind.label(),
            "{why}"
        );
    }
}

impl From<WorkItem> for Incoming {
    fn from(message: WorkItem) -> Self {
        let completion = |execution_id, schedule_id, kind, event| {
            Self::Completion(Completion { execution_id, schedule_id, kind, event })
        };
        match message {
            WorkItem::ActivityCompleted { execution_id, id, result, .. } => {
                completion(execution_id, id, CallKind::Activity, EventKind::ActivityCompleted { result })
            }
            WorkItem::ActivityFailed { execution_id, id, details, .. } => {
                completion(execution_id, id, CallKind::Activity, EventKind::ActivityFailed { details })
            }
            WorkItem::TimerFired { execution_id, id, fire_at_ms, .. } => {
                completion(execution_id, id, CallKind::Timer, EventKind::TimerFired { fire_at_ms })
            }
            WorkItem::SubOrchCompleted { parent_execution_id, parent_id, result, .. } => completion(
                parent_execution_id,
                parent_id,
                CallKind::Child,
                EventKind::SubOrchestrationCompleted { result },
            ),
            WorkItem::SubOrchFailed { parent_execution_id, parent_id, details, .. } => completion(
                parent_execution_id,
                parent_id,
                CallKind::Child,
                EventKind::SubOrchestrationFailed { details },
            ),
            WorkItem::ExternalRaised { name, data, .. } => {
                Self::Event(EventKind::ExternalEvent { name, data })
            }
            WorkItem::QueueMessage { name, data, .. } => {
                Self::Event(EventKind::QueueEventDelivered { name, data })
            }
            WorkItem::CancelInstance { reason, .. } => Self::Cancel { reason },
            WorkItem::StartOrchestration { .. }
            | WorkItem::ContinueAsNew { .. }
            | WorkItem::ActivityExecute { .. } => Self::Nothing,
        }
    }
}
