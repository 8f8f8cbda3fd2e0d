//! Rounds, prepared on the caller's thread.

use duroxide_core::{Event, WorkItem};

use super::{ActivityRow, EventRow, MessageRow, Refusal, StateChange, StoredStatus};
use crate::rules::is_end_of_instance;
use crate::{ActivityStop, ExecutionMetadata, Round, ScheduledActivityIdentifier, ScheduledTimerIdentifier};

/// A round in the form a store keeps.
#[derive(Debug, Clone)]
pub struct PreparedRound {
    /// The lock it is committed under.
    pub token: String,
    /// The execution the turn ran.
    pub execution: PreparedExecution,
    /// The next one, after a continue-as-new. Applied after `execution`.
    pub next: Option<PreparedExecution>,
    /// Activities to delete, after the inserts. Unknown ones are no error.
    pub cancelled_activities: Vec<ScheduledActivityIdentifier>,
    /// Timers to delete, after the inserts. Unknown ones are no error.
    pub cancelled_timers: Vec<ScheduledTimerIdentifier>,
}

impl PreparedRound {
    /// A round in the form a store keeps.
    ///
    /// # Errors
    /// [`Refusal::InvalidWorkItemType`] if an item is in the wrong list.
    pub fn new(token: &str, round: &Round) -> Result<Self, Refusal> {
        let execution = PreparedExecution::new(
            round.execution_id,
            &round.history_delta,
            &round.worker_items,
            &round.orchestrator_items,
            round.metadata.clone(),
        )?;
        let next = round
            .next_execution
            .as_ref()
            .map(|next| {
                PreparedExecution::new(
                    next.execution_id,
                    &next.history_delta,
                    &next.worker_items,
                    &next.orchestrator_items,
                    next.metadata.clone(),
                )
            })
            .transpose()?;
        Ok(Self {
            token: token.to_owned(),
            execution,
            next,
            cancelled_activities: round.cancelled_activities.clone(),
            cancelled_timers: round.cancelled_timers.clone(),
        })
    }
}

/// The notification that a round sends to waiting clients: none, a change of the instance, or its end.
impl PreparedRound {
    /// Whether the round changes something of its instance that a client can wait for: an execution ended, or the custom
    /// status or a value of the instance is another.
    pub fn is_worth_telling(&self) -> bool {
        let ends = self.next.is_some() || self.execution.metadata.status.is_some();
        ends || !self.execution.changes.is_empty()
    }

    /// The id of its last event, if it ends its instance and not only an execution.
    pub fn end(&self) -> Option<u64> {
        let status = self.execution.metadata.status.as_deref();
        let ended = self.next.is_none() && status.is_some_and(is_end_of_instance);
        self.execution.events.iter().map(|event| event.event_id).max().filter(|_| ended)
    }

    /// Whether the round, just stored, has ended its instance: the current execution is still the one that it ended, and has
    /// no later event.
    pub fn has_ended(&self, execution_id: u64, last_event_id: u64) -> bool {
        execution_id == self.execution.execution_id && self.end() == Some(last_event_id)
    }

    /// The status of its instance since it was committed, for a round that [`Ended`] it.
    pub fn status_after(&self, ended: &Ended) -> StoredStatus {
        let last = self.execution.events.iter().max_by_key(|event| event.event_id);
        StoredStatus {
            execution_id: self.execution.execution_id,
            terminal_event: last.map(|event| event.data.clone()),
            custom_status: ended.custom_status.clone(),
            custom_status_version: ended.custom_status_version,
        }
    }
}

/// The values of an instance that a round has ended. Together with the last event of that round they give exactly the
/// answer of [`StoreReader::status`](super::StoreReader::status) from now on: see [`PreparedRound::status_after`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The custom status, if the code has set one.
    pub custom_status: Option<String>,
    /// How often it was set.
    pub custom_status_version: u64,
}

/// The changes that a round makes to one execution.
#[derive(Debug, Clone, Default)]
pub struct PreparedExecution {
    /// The number of the execution, from 1.
    pub execution_id: u64,
    /// Events to append.
    pub events: Vec<EventRow>,
    /// The changes of state that those events record.
    pub changes: Vec<StateChange>,
    /// Activities to queue.
    pub activities: Vec<ActivityRow>,
    /// Messages to queue.
    pub messages: Vec<MessageRow>,
    /// Status, output, name, version, parent and pin.
    pub metadata: ExecutionMetadata,
    /// Activities that are asked to stop, after the inserts and deletes. Unknown ones are no error.
    pub stops: Vec<PreparedStop>,
}

/// An [`ActivityStop`](crate::ActivityStop) in the form a store keeps.
#[derive(Debug, Clone)]
pub struct PreparedStop {
    /// The event id of the schedule.
    pub activity_id: u64,
    never_started: MessageRow,
    interrupted: MessageRow,
}

impl PreparedStop {
    fn new(stop: ActivityStop) -> Result<Self, Refusal> {
        Ok(Self {
            activity_id: stop.activity_id,
            never_started: MessageRow::new(stop.never_started, None)?,
            interrupted: MessageRow::new(stop.interrupted, None)?,
        })
    }

    /// The message that is queued instead of an activity that no worker holds.
    pub fn message(&self, claimed: bool) -> &MessageRow {
        if claimed { &self.interrupted } else { &self.never_started }
    }
}

impl PreparedExecution {
    fn new(
        execution_id: u64,
        events: &[Event],
        activities: &[WorkItem],
        messages: &[WorkItem],
        mut metadata: ExecutionMetadata,
    ) -> Result<Self, Refusal> {
        let stops = std::mem::take(&mut metadata.stop_activities);
        Ok(Self {
            execution_id,
            events: events.iter().map(EventRow::new).collect(),
            changes: StateChange::of(events),
            activities: activities.iter().cloned().map(ActivityRow::new).collect::<Result<_, _>>()?,
            messages: messages
                .iter()
                .map(|item| MessageRow::new(item.clone(), None))
                .collect::<Result<_, _>>()?,
            metadata,
            stops: stops.into_iter().map(PreparedStop::new).collect::<Result<_, _>>()?,
        })
    }
}
