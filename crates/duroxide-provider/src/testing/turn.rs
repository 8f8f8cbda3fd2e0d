//! Builds the round of one turn, event by event, for tests of store engines.

use duroxide_core::{ErrorDetails, Event, EventKind, WorkItem, build_child_instance_id};
use semver::Version;

use super::items::{self, ORDER, VERSION};
use crate::{
    ActivityStop, ExecutionMetadata, NextExecution, OrchestrationClaim, Round, ScheduledActivityIdentifier,
    ScheduledTimerIdentifier,
};

/// Builds the round of one turn, event by event.
#[derive(Debug, Clone)]
pub struct Turn {
    instance: String,
    last_event_id: u64,
    round: Round,
}

impl Turn {
    /// The first turn of an instance: it starts.
    pub fn first(instance: &str) -> Self {
        Self::start_of(instance, 1)
    }

    /// The first turn of an execution.
    pub fn start_of(instance: &str, execution_id: u64) -> Self {
        let mut turn = Self::after(instance, execution_id, 0).event(None, started(None));
        turn.round.metadata.orchestration_name = Some(ORDER.to_owned());
        turn.round.metadata.orchestration_version = Some(VERSION.to_owned());
        turn
    }

    /// A turn of an execution whose last event is this one.
    pub fn after(instance: &str, execution_id: u64, last_event_id: u64) -> Self {
        let round = Round { execution_id, ..Round::default() };
        Self { instance: instance.to_owned(), last_event_id, round }
    }

    /// A later turn of a claimed instance.
    pub fn later(claim: &OrchestrationClaim) -> Self {
        let last_event_id = claim.position.map_or(0, |position| position.last_event_id);
        Self::after(&claim.instance, claim.execution_id, last_event_id)
    }

    /// The first turn of a child.
    pub fn first_of_child(instance: &str, parent: &str, parent_execution: u64, call: u64) -> Self {
        Self::first(instance).of_parent(parent, parent_execution, call)
    }

    /// Links the start of an execution to a parent's call.
    #[must_use]
    pub fn of_parent(mut self, parent: &str, parent_execution: u64, call: u64) -> Self {
        self.round.history_delta[0].kind = started(Some((parent, parent_execution, call)));
        self.round.metadata.parent_instance_id = Some(parent.to_owned());
        self
    }

    /// Pins the execution.
    #[must_use]
    pub fn pinned(mut self, version: Version) -> Self {
        self.round.metadata.pinned_duroxide_version = Some(version);
        self
    }

    /// Names another version than the usual one.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.round.metadata.orchestration_version = Some(version.to_owned());
        self
    }

    /// Appends an event.
    #[must_use]
    pub fn event(mut self, source: Option<u64>, kind: EventKind) -> Self {
        self.last_event_id += 1;
        let event = event(&self.instance, self.round.execution_id, self.last_event_id, source, kind);
        self.round.history_delta.push(event);
        self
    }

    /// The id of the last event.
    pub fn last_event_id(&self) -> u64 {
        self.last_event_id
    }

    /// Schedules an activity.
    #[must_use]
    pub fn activity(self) -> Self {
        self.routed_activity(None, None)
    }

    /// Schedules an activity with tag and session.
    #[must_use]
    pub fn routed_activity(self, tag: Option<&str>, session: Option<&str>) -> Self {
        let mut turn = self.event(None, activity_scheduled(tag, session));
        let mut item = items::routed_activity(&turn.instance, turn.last_event_id, tag, session);
        if let WorkItem::ActivityExecute { execution_id, .. } = &mut item {
            *execution_id = turn.round.execution_id;
        }
        turn.round.worker_items.push(item);
        turn
    }

    /// Creates a timer.
    #[must_use]
    pub fn timer(self, fire_at_ms: u64) -> Self {
        let mut turn = self.event(None, EventKind::TimerCreated { fire_at_ms });
        turn.round.orchestrator_items.push(WorkItem::TimerFired {
            instance: turn.instance.clone(),
            execution_id: turn.round.execution_id,
            id: turn.last_event_id,
            fire_at_ms,
        });
        turn
    }

    /// Calls a child; `sub::…` is the suffix of an automatic id.
    #[must_use]
    pub fn child(self, child: &str) -> Self {
        let id = build_child_instance_id(&self.instance, child);
        let scheduled = EventKind::SubOrchestrationScheduled {
            name: ORDER.to_owned(),
            instance: child.to_owned(),
            input: "{}".to_owned(),
        };
        let turn = self.event(None, scheduled);
        let item = items::child_start(&id, &turn.instance, turn.round.execution_id, turn.last_event_id);
        turn.send(item)
    }

    /// Records an activity's result.
    #[must_use]
    pub fn completed(self, schedule: u64) -> Self {
        self.event(Some(schedule), EventKind::ActivityCompleted { result: "ok".to_owned() })
    }

    /// Sends a message.
    #[must_use]
    pub fn send(mut self, item: WorkItem) -> Self {
        self.round.orchestrator_items.push(item);
        self
    }

    /// Sets a key.
    #[must_use]
    pub fn set(self, key: &str, value: &str) -> Self {
        let kind =
            EventKind::KeyValueSet { key: key.to_owned(), value: value.to_owned(), last_updated_at_ms: 1 };
        self.event(None, kind)
    }

    /// Removes a key.
    #[must_use]
    pub fn clear(self, key: &str) -> Self {
        self.event(None, EventKind::KeyValueCleared { key: key.to_owned() })
    }

    /// Sets the custom status.
    #[must_use]
    pub fn status(self, status: Option<&str>) -> Self {
        self.event(None, EventKind::CustomStatusUpdated { status: status.map(str::to_owned) })
    }

    /// Deletes a queued activity of this execution.
    #[must_use]
    pub fn cancel_activity(mut self, activity_id: u64) -> Self {
        let (instance, execution_id) = (self.instance.clone(), self.round.execution_id);
        let cancelled = ScheduledActivityIdentifier { instance, execution_id, activity_id };
        self.round.cancelled_activities.push(cancelled);
        self
    }

    /// Asks an activity of this execution to stop. Its messages are a failure `never started` or `interrupted`.
    #[must_use]
    pub fn stop_activity(mut self, activity_id: u64) -> Self {
        let message = |reason: &str| WorkItem::ActivityFailed {
            instance: self.instance.clone(),
            execution_id: self.round.execution_id,
            id: activity_id,
            details: ErrorDetails::cancelled(reason),
        };
        let stop = ActivityStop {
            activity_id,
            never_started: message("never started"),
            interrupted: message("interrupted"),
        };
        self.round.metadata.stop_activities.push(stop);
        self
    }

    /// Deletes a queued timer of this execution.
    #[must_use]
    pub fn cancel_timer(mut self, timer_id: u64) -> Self {
        let (instance, execution_id) = (self.instance.clone(), self.round.execution_id);
        self.round.cancelled_timers.push(ScheduledTimerIdentifier { instance, execution_id, timer_id });
        self
    }

    /// Ends the instance with a result.
    #[must_use]
    pub fn complete(self, output: &str) -> Self {
        let kind = EventKind::OrchestrationCompleted { output: output.to_owned() };
        self.end("Completed", output, kind)
    }

    /// Ends the instance with a failure.
    #[must_use]
    pub fn fail(self) -> Self {
        let details = items::refused();
        let output = details.display_message();
        self.end("Failed", &output, EventKind::OrchestrationFailed { details })
    }

    /// Ends the execution; the successor is not part of the round.
    #[must_use]
    pub fn continue_as_new(self) -> Self {
        self.end("ContinuedAsNew", "{}", EventKind::OrchestrationContinuedAsNew { input: "{}".to_owned() })
    }

    /// Ends the execution and begins the next one in the same round.
    #[must_use]
    pub fn continue_with(self, next: Turn) -> Self {
        let mut turn = self.continue_as_new();
        let round = next.round;
        let mut orchestrator_items = round.orchestrator_items;
        orchestrator_items.push(items::wake_up(&turn.instance, round.execution_id));
        turn.round.next_execution = Some(NextExecution {
            execution_id: round.execution_id,
            history_delta: round.history_delta,
            worker_items: round.worker_items,
            orchestrator_items,
            metadata: round.metadata,
            start: items::continue_as_new(&turn.instance, None),
        });
        turn
    }

    fn end(self, status: &str, output: &str, kind: EventKind) -> Self {
        let mut turn = self.event(None, kind);
        turn.round.metadata = ExecutionMetadata {
            status: Some(status.to_owned()),
            output: Some(output.to_owned()),
            ..turn.round.metadata
        };
        turn
    }

    /// The round.
    pub fn round(self) -> Round {
        self.round
    }
}

/// An event with a fixed stamp.
pub(super) fn event(
    instance: &str,
    execution_id: u64,
    event_id: u64,
    source: Option<u64>,
    kind: EventKind,
) -> Event {
    Event {
        event_id,
        source_event_id: source,
        instance_id: instance.to_owned(),
        execution_id,
        timestamp_ms: 1,
        duroxide_version: "1.0.0".to_owned(),
        kind,
    }
}

fn started(parent: Option<(&str, u64, u64)>) -> EventKind {
    EventKind::OrchestrationStarted {
        name: ORDER.to_owned(),
        version: VERSION.to_owned(),
        input: "{}".to_owned(),
        parent_instance: parent.map(|(instance, _, _)| instance.to_owned()),
        parent_id: parent.map(|(_, _, call)| call),
        parent_execution_id: parent.map(|(_, execution, _)| execution),
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

fn activity_scheduled(tag: Option<&str>, session: Option<&str>) -> EventKind {
    EventKind::ActivityScheduled {
        name: "charge".to_owned(),
        input: "{}".to_owned(),
        session_id: session.map(str::to_owned),
        tag: tag.map(str::to_owned),
    }
}
