//! [`Round`]: everything that one turn changes, committed as a whole.

use duroxide_core::{Event, WorkItem};

use crate::{ExecutionMetadata, Provider, ProviderError, ScheduledActivityIdentifier};

/// Everything one turn changes. It is committed whole, or not at all.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// The execution the turn ran.
    pub execution_id: u64,
    /// Events to append.
    pub history_delta: Vec<Event>,
    /// Activities to enqueue.
    pub worker_items: Vec<WorkItem>,
    /// Messages to instances, this one included.
    pub orchestrator_items: Vec<WorkItem>,
    /// Status, output, name, version, parent and pin.
    pub metadata: ExecutionMetadata,
    /// Activities to delete from the worker queue.
    pub cancelled_activities: Vec<ScheduledActivityIdentifier>,
    /// Timers to delete from the orchestrator queue.
    pub cancelled_timers: Vec<ScheduledTimerIdentifier>,
    /// The next execution, if this one ended in continue-as-new.
    pub next_execution: Option<NextExecution>,
}

/// The beginning of the next execution, committed together with the end of the previous one.
#[derive(Debug, Clone)]
pub struct NextExecution {
    /// Its number.
    pub execution_id: u64,
    /// Its first events.
    pub history_delta: Vec<Event>,
    /// Activities to enqueue.
    pub worker_items: Vec<WorkItem>,
    /// Messages to instances; holds the wake-up.
    pub orchestrator_items: Vec<WorkItem>,
    /// Name, version and pin.
    pub metadata: ExecutionMetadata,
    /// The equivalent `ContinueAsNew` item, for providers that store rounds by `ack_orchestration_item`.
    pub start: WorkItem,
}

/// Identifies a timer by the event that created it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledTimerIdentifier {
    /// The id of the instance.
    pub instance: String,
    /// The number of the execution, from 1.
    pub execution_id: u64,
    /// The event id of the schedule.
    pub timer_id: u64,
}

/// Stores a round by [`Provider::ack_orchestration_item`], as far as that goes.
pub(crate) async fn ack_round<P: Provider + ?Sized>(
    provider: &P,
    lock_token: &str,
    round: Round,
) -> Result<(), ProviderError> {
    let mut orchestrator_items = round.orchestrator_items;
    orchestrator_items.extend(round.next_execution.map(|next| next.start));
    provider
        .ack_orchestration_item(
            lock_token,
            round.execution_id,
            round.history_delta,
            round.worker_items,
            orchestrator_items,
            round.metadata,
            round.cancelled_activities,
        )
        .await
}
