//! Ends a turn: writes breadcrumbs and the terminal event, and collects the scheduled work.

use std::collections::BTreeSet;

use super::{
    Continuation, Outcome, Turn,
    execution::{Draft, Execution},
    limit_check,
    state::{Identity, Resolved},
};
use crate::{Action, ActivityInput, CallKind, ErrorDetails, EventKind, INITIAL_EXECUTION_ID, WorkItem};

/// The reason of breadcrumbs for futures that code dropped.
pub(super) const DROPPED_FUTURE: &str = "dropped_future";
/// The reason of breadcrumbs for activities that code asked to stop and waits for. Their schedules stay open.
pub(crate) const CANCEL_AND_WAIT: &str = "cancel_and_wait";
/// The reason of breadcrumbs for waits that are open when their execution ends.
pub(super) const TERMINAL: &str = "orchestration_terminal";
const CHILD_DROPPED: &str = "parent dropped sub-orchestration future";
pub(super) const PARENT_CANCELLED: &str = "parent canceled";

/// How an execution ends, and which effects of its last turn are kept.
struct End {
    outcome: Outcome,
    /// Whether futures dropped in this turn are recorded as dropped. If not, they count as still open.
    records_drops: bool,
    /// Whether open children are cancelled.
    cancels_children: bool,
}

impl Execution {
    pub(super) fn conclude(&mut self, mut draft: Draft) -> Turn {
        let drops = self.shared.lock().drops().clone();
        for (_, timer_id) in drops.iter().filter(|(kind, _)| *kind == CallKind::Timer) {
            self.check.give_up(*timer_id);
        }
        let mut end = self.end();
        let code_counts = end.as_ref().is_none_or(|end| end.records_drops);
        if code_counts && let Some(text) = limit_check::violation(self, &draft) {
            self.discard_schedules(&mut draft);
            end = Some(End::failed(ErrorDetails::orchestration_failed(text), false));
        }
        match end {
            None => self.keep_running(draft, &drops),
            Some(end) => self.end_execution(draft, &drops, end),
        }
    }

    /// How the execution ends, if it does. The first cause that applies decides (2.10).
    fn end(&self) -> Option<End> {
        if let Some(reason) = &self.cancel_reason {
            let outcome = Outcome::Failed { details: ErrorDetails::cancelled(reason) };
            return Some(End { outcome, records_drops: false, cancels_children: true });
        }
        if let Some(details) = &self.failure {
            return Some(End::failed(details.clone(), false));
        }
        if let Some(reason) = self.cleaned_up() {
            let outcome = Outcome::Failed { details: ErrorDetails::cancelled(reason) };
            return Some(End { outcome, records_drops: false, cancels_children: true });
        }
        if let Some((input, version)) = &self.continuation {
            let state = self.shared.lock();
            let outcome = Outcome::ContinuedAsNew(Continuation {
                input: input.clone(),
                version: version.clone(),
                carried: state.queues.unread(),
                custom_status: state.custom_status.clone(),
            });
            return Some(End { outcome, records_drops: true, cancels_children: false });
        }
        match self.ended.clone() {
            Some(Ok(output)) => {
                let outcome = Outcome::Completed { output };
                Some(End { outcome, records_drops: true, cancels_children: false })
            }
            Some(Err(details)) => Some(End::failed(details, true)),
            None => Some(End::failed(ErrorDetails::nondeterminism(self.foreign_wait()?), true)),
        }
    }

    /// The reason of the cancellation, if the code has received it and has finished its cleanup: the code asked to end as
    /// cancelled, continues as new, or has no open call.
    fn cleaned_up(&self) -> Option<String> {
        let state = self.shared.lock();
        let rests = self.ended.is_none() && !state.has_open_calls();
        let done = state.ends_cancelled || self.continuation.is_some() || rests;
        state.told_to_cancel.clone().filter(|_| done)
    }

    /// The error of code that waits although none of its calls is open: no event could ever wake it.
    fn foreign_wait(&self) -> Option<String> {
        let Identity { name, generation, .. } = &self.shared.identity;
        let state = self.shared.lock();
        if state.has_open_calls() || !generation.refuses_foreign_waits() {
            return None;
        }
        let place = match state.last_resolved() {
            Some(Resolved { kind, name, event_id }) => {
                let name = if name.is_empty() { String::new() } else { format!(" '{name}'") };
                format!("after its {}{name} (event {event_id}) resolved", kind.label())
            }
            None => "before any of its calls resolved".to_owned(),
        };
        Some(format!(
            "orchestration '{name}' waits, {place}, for something that is not recorded (a sleep, a channel, a lock, a \
             spawned task): none of its own calls is open, so nothing would ever wake it. Use schedule_timer in place of \
             a sleep, schedule_wait or dequeue_event in place of a channel, and an activity for other work"
        ))
    }

    /// Discards all actions of this turn, because it went over a limit.
    fn discard_schedules(&mut self, draft: &mut Draft) {
        draft.delta.retain(|event| event.event_id <= draft.received);
        draft.scheduled.clear();
        self.check.forget_after(draft.received);
    }

    /// Ends a turn after which the execution goes on: returns all scheduled work.
    fn keep_running(&mut self, mut draft: Draft, drops: &BTreeSet<(CallKind, u64)>) -> Turn {
        self.warn_of_never_read_queues();
        self.append_drops(&mut draft, drops);
        let stopped_activities = self.append_stops(&mut draft, drops);
        let scheduled = std::mem::take(&mut draft.scheduled);
        let mut activities = Vec::new();
        let mut messages = Vec::new();
        for (event_id, action) in scheduled {
            let dropped = |kind| drops.contains(&(kind, event_id));
            match action {
                // Work that was scheduled and dropped in the same turn is recorded and never enqueued (5.3).
                Action::CallActivity { .. } if dropped(CallKind::Activity) => {}
                Action::CreateTimer { .. } if dropped(CallKind::Timer) => {}
                Action::CallActivity { .. } => {
                    let mut item = self.work_item(event_id, action);
                    if let Some(WorkItem::ActivityExecute { input, .. }) = &mut item {
                        let options = draft.run_options.get(&event_id).copied().unwrap_or_default();
                        let plain = ActivityInput { input: std::mem::take(input), options };
                        *input = plain.into_item_input();
                    }
                    activities.extend(item);
                }
                Action::CreateTimer { .. }
                | Action::WaitExternal { .. }
                | Action::AwaitCancellation
                | Action::DequeueEvent { .. }
                | Action::StartSubOrchestration { .. }
                | Action::StartOrchestrationDetached { .. }
                | Action::ContinueAsNew { .. }
                | Action::UpdateCustomStatus { .. }
                | Action::SetKeyValue { .. }
                | Action::ClearKeyValue { .. }
                | Action::ClearKeyValues => messages.extend(self.work_item(event_id, action)),
            }
        }
        messages.extend(self.child_cancellations(dropped_ids(drops, CallKind::Child), CHILD_DROPPED));
        let earlier = |kind| dropped_ids(drops, kind).filter(|id| *id <= draft.base).collect();
        Turn {
            activities,
            messages,
            cancelled_activities: earlier(CallKind::Activity),
            stopped_activities,
            cancelled_timers: earlier(CallKind::Timer),
            outcome: Outcome::Running,
            parent: self.parent.clone(),
            delta: draft.delta,
        }
    }

    /// Ends a turn that ends the execution: returns only detached starts, and cancels open work.
    fn end_execution(&mut self, mut draft: Draft, drops: &BTreeSet<(CallKind, u64)>, end: End) -> Turn {
        let base = draft.base;
        let earlier =
            |ids: &mut dyn Iterator<Item = u64>| -> Vec<u64> { ids.filter(|id| *id <= base).collect() };
        let cancelled_activities = earlier(&mut self.check.open_ids(CallKind::Activity));
        let mut cancelled_timers = earlier(&mut self.check.open_ids(CallKind::Timer));
        cancelled_timers.extend(earlier(&mut dropped_ids(drops, CallKind::Timer)));
        let mut messages: Vec<WorkItem> = std::mem::take(&mut draft.scheduled)
            .into_iter()
            .filter(|(_, action)| matches!(action, Action::StartOrchestrationDetached { .. }))
            .filter_map(|(event_id, action)| self.work_item(event_id, action))
            .collect();
        let (children, reason) = if end.cancels_children {
            (earlier(&mut self.check.open_ids(CallKind::Child)), PARENT_CANCELLED)
        } else {
            // Also in a turn over a limit, because the child has been running since an earlier turn and nothing else
            // would cancel it (5.2).
            (earlier(&mut dropped_ids(drops, CallKind::Child)), CHILD_DROPPED)
        };
        messages.extend(self.child_cancellations(children.into_iter(), reason));
        if end.records_drops {
            self.append_drops(&mut draft, drops);
        }
        self.append_terminal(&mut draft, drops, &end);
        Turn {
            delta: draft.delta,
            activities: Vec::new(),
            messages,
            cancelled_activities,
            // An activity that was asked to stop is still open, so it is cancelled with the others.
            stopped_activities: Vec::new(),
            cancelled_timers,
            outcome: end.outcome,
            parent: self.parent.clone(),
        }
    }

    /// Appends the breadcrumbs of dropped futures: activities, children, waits, queue reads, each by ascending id.
    fn append_drops(&mut self, draft: &mut Draft, drops: &BTreeSet<(CallKind, u64)>) {
        for (kind, event_id) in drops {
            let reason = DROPPED_FUTURE.to_owned();
            let breadcrumb = match kind {
                CallKind::Activity => EventKind::ActivityCancelRequested { reason },
                CallKind::Child => EventKind::SubOrchestrationCancelRequested { reason },
                CallKind::Wait => EventKind::ExternalSubscribedCancelled { reason },
                CallKind::Queue => EventKind::QueueSubscriptionCancelled { reason },
                CallKind::Timer => continue,
            };
            self.append(draft, Some(*event_id), breadcrumb);
        }
    }

    /// Appends the breadcrumbs of activities that the code asked to stop, by ascending id. An activity that has ended
    /// meanwhile, or whose future was dropped afterwards, needs none.
    fn append_stops(&mut self, draft: &mut Draft, drops: &BTreeSet<(CallKind, u64)>) -> Vec<u64> {
        let asked: Vec<u64> = self.shared.lock().stops().iter().copied().collect();
        let is_open = |id: &u64| self.check.schedule(*id).is_some_and(|schedule| !schedule.completed);
        let stops: Vec<u64> = asked
            .into_iter()
            .filter(|id| is_open(id) && !drops.contains(&(CallKind::Activity, *id)))
            .collect();
        for event_id in &stops {
            let reason = CANCEL_AND_WAIT.to_owned();
            self.append(draft, Some(*event_id), EventKind::ActivityCancelRequested { reason });
        }
        stops
    }

    /// Appends the breadcrumbs of open calls, then the terminal event.
    fn append_terminal(&mut self, draft: &mut Draft, drops: &BTreeSet<(CallKind, u64)>, end: &End) {
        let (mut waits, mut reads) = {
            let state = self.shared.lock();
            (state.open_waits(), state.queues.open_reads())
        };
        if !end.records_drops {
            waits.extend(dropped_ids(drops, CallKind::Wait));
            reads.extend(dropped_ids(drops, CallKind::Queue));
        }
        let activities: Vec<u64> = self.check.open_ids(CallKind::Activity).collect();
        let open = OpenSchedules { activities, waits, reads };
        for (source, breadcrumb) in open.breadcrumbs(&end.outcome, self.last_event_id()) {
            self.append(draft, Some(source), breadcrumb);
        }
        if let Some(terminal) = terminal_event(&end.outcome) {
            self.append(draft, None, terminal);
        }
    }

    fn child_cancellations(
        &self,
        children: impl Iterator<Item = u64>,
        reason: &'static str,
    ) -> Vec<WorkItem> {
        children
            .filter_map(|event_id| self.children.get(&event_id))
            .map(|child| WorkItem::CancelInstance { instance: child.clone(), reason: reason.to_owned() })
            .collect()
    }

    /// The work item that carries out an action. `None` for an action that is complete once it is recorded.
    fn work_item(&self, event_id: u64, action: Action) -> Option<WorkItem> {
        let identity = &self.shared.identity;
        let instance = identity.instance.clone();
        let execution_id = identity.execution_id;
        match action {
            Action::CallActivity { name, input, session_id, tag, .. } => Some(WorkItem::ActivityExecute {
                instance,
                execution_id,
                id: event_id,
                name,
                input,
                session_id,
                tag,
            }),
            Action::CreateTimer { fire_at_ms, .. } => {
                Some(WorkItem::TimerFired { instance, execution_id, id: event_id, fire_at_ms })
            }
            Action::StartSubOrchestration { name, version, input, .. } => {
                Some(WorkItem::StartOrchestration {
                    instance: self.children.get(&event_id).cloned().unwrap_or_default(),
                    orchestration: name,
                    input,
                    version,
                    parent_instance: Some(instance),
                    parent_id: Some(event_id),
                    parent_execution_id: Some(execution_id),
                    execution_id: INITIAL_EXECUTION_ID,
                })
            }
            Action::StartOrchestrationDetached { name, version, instance, input, .. } => {
                Some(WorkItem::StartOrchestration {
                    instance,
                    orchestration: name,
                    input,
                    version,
                    parent_instance: None,
                    parent_id: None,
                    parent_execution_id: None,
                    execution_id: INITIAL_EXECUTION_ID,
                })
            }
            Action::WaitExternal { .. }
            | Action::AwaitCancellation
            | Action::DequeueEvent { .. }
            | Action::ContinueAsNew { .. }
            | Action::UpdateCustomStatus { .. }
            | Action::SetKeyValue { .. }
            | Action::ClearKeyValue { .. }
            | Action::ClearKeyValues => None,
        }
    }
}

impl End {
    fn failed(details: ErrorDetails, records_drops: bool) -> Self {
        Self { outcome: Outcome::Failed { details }, records_drops, cancels_children: false }
    }
}

/// Calls that are open when an execution ends and get a breadcrumb.
#[derive(Debug, Default)]
pub(super) struct OpenSchedules {
    pub(super) activities: Vec<u64>,
    pub(super) waits: Vec<u64>,
    pub(super) reads: Vec<u64>,
}

impl OpenSchedules {
    /// The breadcrumbs, each with the schedule it names, in the order of rule 3.2.
    pub(super) fn breadcrumbs(mut self, outcome: &Outcome, last_event_id: u64) -> Vec<(u64, EventKind)> {
        // A schedule that was discarded with its turn no longer exists.
        self.waits.retain(|id| *id <= last_event_id);
        self.reads.retain(|id| *id <= last_event_id);
        self.waits.sort_unstable();
        self.reads.sort_unstable();
        let suffix = match outcome {
            Outcome::Completed { .. } | Outcome::Running => "completed",
            Outcome::Failed { .. } => "failed",
            Outcome::ContinuedAsNew(_) => "continued_as_new",
        };
        let activities = self
            .activities
            .into_iter()
            .map(|id| (id, EventKind::ActivityCancelRequested { reason: format!("{TERMINAL}_{suffix}") }));
        let waits = self
            .waits
            .into_iter()
            .map(|id| (id, EventKind::ExternalSubscribedCancelled { reason: TERMINAL.to_owned() }));
        let reads = self
            .reads
            .into_iter()
            .map(|id| (id, EventKind::QueueSubscriptionCancelled { reason: TERMINAL.to_owned() }));
        activities.chain(waits).chain(reads).collect()
    }
}

/// The event that ends an execution with this outcome.
pub(super) fn terminal_event(outcome: &Outcome) -> Option<EventKind> {
    match outcome {
        Outcome::Running => None,
        Outcome::Completed { output } => Some(EventKind::OrchestrationCompleted { output: output.clone() }),
        Outcome::Failed { details } => Some(EventKind::OrchestrationFailed { details: details.clone() }),
        Outcome::ContinuedAsNew(next) => {
            Some(EventKind::OrchestrationContinuedAsNew { input: next.input.clone() })
        }
    }
}

fn dropped_ids(drops: &BTreeSet<(CallKind, u64)>, kind: CallKind) -> impl Iterator<Item = u64> + '_ {
    drops.range((kind, 0)..=(kind, u64::MAX)).map(|(_, id)| *id)
}
