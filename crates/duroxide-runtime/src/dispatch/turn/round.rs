//! Builds the round that a turn commits (2.16).

use duroxide_core::{
    AppErrorKind, ErrorDetails, Event, EventKind, ParentLink, Timestamp, TracedInput, WorkItem,
    engine::{Continuation, Outcome, Seed, Turn},
};
use duroxide_provider::{
    ActivityStop, ExecutionMetadata, NextExecution, Round, ScheduledActivityIdentifier,
    ScheduledTimerIdentifier,
};
use semver::Version;

use crate::dispatch::decide::{is_wake_up, wanted_handler};

/// The execution of a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExecutionRef<'a> {
    pub instance: &'a str,
    pub execution_id: u64,
    pub name: &'a str,
}

/// Whether this node can start the successor of a continued execution in the same round (8.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Successor {
    /// The round contains the start of the successor.
    Here { version: String },
    /// The node that processes the `ContinueAsNew` item starts the successor.
    Elsewhere,
}

/// The result of a child, for its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub link: ParentLink,
    pub result: Result<String, ErrorDetails>,
}

impl Notice {
    /// The message to the parent. `parent_execution` is used if the link does not name the execution that made the
    /// call.
    pub(crate) fn into_item(self, parent_execution: u64) -> WorkItem {
        let ParentLink { instance: parent_instance, event_id: parent_id, execution_id } = self.link;
        let parent_execution_id = execution_id.unwrap_or(parent_execution);
        match self.result {
            Ok(result) => {
                WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, result }
            }
            Err(details) => {
                WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, details }
            }
        }
    }
}

/// The round of a turn, without messages to parents.
pub(crate) fn round(execution: ExecutionRef<'_>, turn: Turn, successor: &Successor, now: Timestamp) -> Round {
    let activity = |activity_id| ScheduledActivityIdentifier {
        instance: execution.instance.to_owned(),
        execution_id: execution.execution_id,
        activity_id,
    };
    let timer = |timer_id| ScheduledTimerIdentifier {
        instance: execution.instance.to_owned(),
        execution_id: execution.execution_id,
        timer_id,
    };
    let stop_activities = turn.stopped_activities.iter().map(|id| activity_stop(execution, *id)).collect();
    let mut round = Round {
        execution_id: execution.execution_id,
        metadata: ExecutionMetadata { stop_activities, ..metadata(&turn.delta, &turn.outcome) },
        history_delta: turn.delta,
        worker_items: turn.activities,
        orchestrator_items: turn.messages,
        cancelled_activities: turn.cancelled_activities.into_iter().map(activity).collect(),
        cancelled_timers: turn.cancelled_timers.into_iter().map(timer).collect(),
        next_execution: None,
    };
    if let Outcome::ContinuedAsNew(continuation) = turn.outcome {
        continue_as_new(&mut round, execution, continuation, turn.parent, successor, now);
    }
    round
}

/// Asks an activity to stop, with the messages for its orchestration if no node runs the activity.
fn activity_stop(execution: ExecutionRef<'_>, activity_id: u64) -> ActivityStop {
    let failed = |details| WorkItem::ActivityFailed {
        instance: execution.instance.to_owned(),
        execution_id: execution.execution_id,
        id: activity_id,
        details,
    };
    ActivityStop {
        activity_id,
        never_started: failed(ErrorDetails::activity_never_started()),
        interrupted: failed(ErrorDetails::activity_stopped()),
    }
}

/// The cancellations of children in a round that the store refused. They are still sent, because the code gave up these
/// children. A child that the refused round was to start does not exist.
pub(crate) fn child_cancellations(refused: &Round) -> impl Iterator<Item = WorkItem> + '_ {
    let was_to_start = |child: &str| {
        let starts = |item: &WorkItem| matches!(item, WorkItem::StartOrchestration { instance, .. } if instance == child);
        refused.orchestrator_items.iter().any(starts)
    };
    let is_wanted = move |item: &&WorkItem| match item {
        WorkItem::CancelInstance { instance, .. } => !was_to_start(instance),
        WorkItem::StartOrchestration { .. }
        | WorkItem::ContinueAsNew { .. }
        | WorkItem::ActivityExecute { .. }
        | WorkItem::ActivityCompleted { .. }
        | WorkItem::ActivityFailed { .. }
        | WorkItem::TimerFired { .. }
        | WorkItem::ExternalRaised { .. }
        | WorkItem::QueueMessage { .. }
        | WorkItem::SubOrchCompleted { .. }
        | WorkItem::SubOrchFailed { .. } => false,
    };
    refused.orchestrator_items.iter().filter(is_wanted).cloned()
}

/// The message to the parent if the turn ended the child.
pub(crate) fn notice_of(turn: &Turn) -> Option<Notice> {
    let result = match &turn.outcome {
        Outcome::Completed { output } => Ok(output.clone()),
        Outcome::Failed { details } => Err(details.clone()),
        Outcome::Running | Outcome::ContinuedAsNew(_) => return None,
    };
    Some(Notice { link: turn.parent.clone()?, result })
}

/// The starts of a claim that are not accepted: the number to warn about, and the messages to parents.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RefusedStarts {
    pub duplicates: usize,
    pub notices: Vec<Notice>,
}

/// Collects the starts other than `accepted`. `recorded` is the call that created the instance. A repetition of that
/// call is not a collision, provided both name the execution that made it (6.5).
pub(crate) fn refused_starts(
    instance: &str,
    messages: &[WorkItem],
    accepted: Option<&WorkItem>,
    recorded: Option<&ParentLink>,
    ended: bool,
) -> RefusedStarts {
    let mut refused = RefusedStarts::default();
    for item in messages {
        if wanted_handler(item).is_none()
            || is_wake_up(item)
            || accepted.is_some_and(|accepted| std::ptr::eq(accepted, item))
        {
            continue;
        }
        refused.duplicates += 1;
        // A `ContinueAsNew` carries the link of the running child, whose parent was not refused anything.
        if matches!(item, WorkItem::ContinueAsNew { .. }) {
            continue;
        }
        let Some(link) = item.parent_link() else { continue };
        let repeated = !ended && link.execution_id.is_some() && recorded == Some(&link);
        if !repeated {
            refused.notices.push(Notice { link, result: Err(id_taken(instance, ended)) });
        }
    }
    refused
}

/// The error for a parent whose child cannot start because its id is taken (6.5).
fn id_taken(instance: &str, ended: bool) -> ErrorDetails {
    let suffix = if ended { " and is terminal" } else { "" };
    ErrorDetails::Application {
        kind: AppErrorKind::OrchestrationFailed,
        message: format!("sub-orchestration instance id '{instance}' already exists{suffix}"),
        retryable: false,
    }
}

/// Name, version, parent and pin come with the start, status and output with the end.
fn metadata(delta: &[Event], outcome: &Outcome) -> ExecutionMetadata {
    let (status, output) = match outcome {
        Outcome::Running => (None, None),
        Outcome::Completed { output } => (Some("Completed"), Some(output.clone())),
        Outcome::Failed { details } => (Some("Failed"), Some(details.display_message())),
        Outcome::ContinuedAsNew(next) => {
            (Some("ContinuedAsNew"), Some(TracedInput::plain(&next.input).to_owned()))
        }
    };
    ExecutionMetadata {
        status: status.map(str::to_owned),
        output,
        ..delta.first().map(start_metadata).unwrap_or_default()
    }
}

fn start_metadata(first: &Event) -> ExecutionMetadata {
    let EventKind::OrchestrationStarted { name, version, parent_instance, .. } = &first.kind else {
        return ExecutionMetadata::default();
    };
    ExecutionMetadata {
        orchestration_name: Some(name.clone()),
        orchestration_version: Some(version.clone()),
        parent_instance_id: parent_instance.clone(),
        pinned_duroxide_version: Version::parse(&first.duroxide_version).ok(),
        ..ExecutionMetadata::default()
    }
}

/// Adds the successor: its first events and a wake-up, or the message from which another node starts it (8.1 to 8.5).
fn continue_as_new(
    round: &mut Round,
    execution: ExecutionRef<'_>,
    continuation: Continuation,
    parent: Option<ParentLink>,
    successor: &Successor,
    now: Timestamp,
) {
    let start = continue_as_new_item(execution, &continuation, parent.as_ref());
    let Successor::Here { version } = successor else {
        round.orchestrator_items.push(start);
        return;
    };
    let execution_id = execution.execution_id + 1;
    let wake_up = WorkItem::StartOrchestration {
        instance: execution.instance.to_owned(),
        orchestration: execution.name.to_owned(),
        input: String::new(),
        version: Some(version.clone()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id,
    };
    let seed = Seed {
        instance: execution.instance.to_owned(),
        execution_id,
        name: execution.name.to_owned(),
        version: version.clone(),
        input: continuation.input,
        parent,
        carried: continuation.carried,
        custom_status: continuation.custom_status,
    };
    let history_delta = seed.into_events(now);
    round.next_execution = Some(NextExecution {
        execution_id,
        metadata: history_delta.first().map(start_metadata).unwrap_or_default(),
        history_delta,
        worker_items: Vec::new(),
        orchestrator_items: vec![wake_up],
        start,
    });
}

fn continue_as_new_item(
    execution: ExecutionRef<'_>,
    continuation: &Continuation,
    parent: Option<&ParentLink>,
) -> WorkItem {
    WorkItem::ContinueAsNew {
        instance: execution.instance.to_owned(),
        orchestration: execution.name.to_owned(),
        input: continuation.input.clone(),
        version: continuation.version.clone(),
        parent_instance: parent.map(|link| link.instance.clone()),
        parent_id: parent.map(|link| link.event_id),
        parent_execution_id: parent.and_then(|link| link.execution_id),
        carry_forward_events: continuation.carried.clone(),
        initial_custom_status: continuation.custom_status.clone(),
    }
}

/// The approximate memory of a round on its way to the store.
pub(crate) fn round_bytes(round: &Round) -> usize {
    let delta: usize = round.history_delta.iter().map(event_bytes).sum();
    let items: usize = round.worker_items.iter().chain(&round.orchestrator_items).map(item_bytes).sum();
    delta + items + round.next_execution.as_ref().map_or(0, next_bytes)
}

fn next_bytes(next: &NextExecution) -> usize {
    next.history_delta.iter().map(event_bytes).sum::<usize>() + item_bytes(&next.start)
}

fn carried_bytes<'a>(carried: impl IntoIterator<Item = &'a (String, String)>) -> usize {
    carried.into_iter().map(|(name, data)| name.len() + data.len()).sum()
}

pub(crate) fn event_bytes(event: &Event) -> usize {
    const ENVELOPE: usize = 128;
    use EventKind as E;
    let payload = match &event.kind {
        E::OrchestrationStarted { input, carry_forward_events, .. } => {
            input.len() + carried_bytes(carry_forward_events.iter().flatten())
        }
        E::OrchestrationCompleted { output: text }
        | E::OrchestrationContinuedAsNew { input: text }
        | E::ActivityScheduled { input: text, .. }
        | E::ActivityCompleted { result: text }
        | E::ExternalEvent { data: text, .. }
        | E::QueueEventDelivered { data: text, .. }
        | E::OrchestrationChained { input: text, .. }
        | E::SubOrchestrationScheduled { input: text, .. }
        | E::SubOrchestrationCompleted { result: text }
        | E::KeyValueSet { value: text, .. } => text.len(),
        E::StepEnded { result: Ok(text), .. } => text.len(),
        E::StepEnded { result: Err(_), .. }
        | E::OrchestrationFailed { .. }
        | E::OrchestrationCancelRequested { .. }
        | E::CancellationSubscribed
        | E::ActivityFailed { .. }
        | E::ActivityCancelRequested { .. }
        | E::TimerCreated { .. }
        | E::TimerFired { .. }
        | E::ExternalSubscribed { .. }
        | E::ExternalSubscribedCancelled { .. }
        | E::QueueSubscribed { .. }
        | E::QueueSubscriptionCancelled { .. }
        | E::SubOrchestrationFailed { .. }
        | E::SubOrchestrationCancelRequested { .. }
        | E::CustomStatusUpdated { .. }
        | E::KeyValueCleared { .. }
        | E::KeyValuesCleared => 0,
    };
    ENVELOPE + payload
}

/// The approximate memory of a work item.
pub(crate) fn item_bytes(item: &WorkItem) -> usize {
    const ENVELOPE: usize = 128;
    let payload = match item {
        WorkItem::StartOrchestration { input: text, .. }
        | WorkItem::ActivityExecute { input: text, .. }
        | WorkItem::ActivityCompleted { result: text, .. }
        | WorkItem::ExternalRaised { data: text, .. }
        | WorkItem::QueueMessage { data: text, .. }
        | WorkItem::SubOrchCompleted { result: text, .. } => text.len(),
        WorkItem::ContinueAsNew { input, carry_forward_events, .. } => {
            input.len() + carried_bytes(carry_forward_events)
        }
        WorkItem::ActivityFailed { .. }
        | WorkItem::TimerFired { .. }
        | WorkItem::SubOrchFailed { .. }
        | WorkItem::CancelInstance { .. } => 0,
    };
    ENVELOPE + payload
}

#[cfg(test)]
mod tests;
