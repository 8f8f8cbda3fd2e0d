//! How a turn ends: breadcrumbs, the terminal event, and the work to hand out.

use std::collections::BTreeSet;

use super::{
    Continuation, Kind, Outcome, Turn,
    execution::{Draft, Execution},
    limit_check,
};
use crate::{Action, ActivityInput, ErrorDetails, EventKind, INITIAL_EXECUTION_ID, WorkItem};

/// The reason of breadcrumbs for futures that code dropped.
pub(super) const DROPPED_FUTURE: &str = "dropped_future";
/// The reason of breadcrumbs for activities that code asked to stop and waits for. Their schedules stay open.
pub(super) const CANCEL_AND_WAIT: &str = "cancel_and_wait";
/// The reason of breadcrumbs for waits that are open when their execution ends.
pub(super) const TERMINAL: &str = "orchestration_terminal";
const CHILD_DROPPED: &str = "parent dropped sub-orchestration future";
pub(super) const PARENT_CANCELLED: &str = "parent canceled";

/// How an execution ends, and what of this turn counts.
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
        for (_, timer_id) in drops.iter().filter(|(kind, _)| *kind == Kind::Timer) {
            self.check.give_up(*timer_id);
        }
        let mut end = self.end();
        let code_counts = end.as_ref().is_none_or(|end| end.records_drops);
        if code_counts && let Some(text) = limit_check::violation(self, &draft) {
            self.discard_schedules(&mut draft);
            end = Some(End::failed(ErrorDetails::orchestration_failed(text), false));
        }
        match end {
            None => self.stay(draft, &drops),
            Some(end) => self.finish(draft, &drops, end),
        }
    }

    /// Whether and how the execution ends; the first that applies (2.10).
    fn end(&self) -> Option<End> {
        if let Some(reason) = &self.cancel_reason {
            let outcome = Outcome::Failed { details: ErrorDetails::cancelled(reason) };
            return Some(End { outcome, records_drops: false, cancels_children: true });
        }
        if let Some(details) = &self.failure {
            return Some(End::failed(details.clone(), false));
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
        match self.ended.clone()? {
            Ok(output) => {
                let outcome = Outcome::Completed { output };
                Some(End { outcome, records_drops: true, cancels_children: false })
            }
            Err(details) => Some(End::failed(details, true)),
        }
    }

    /// Takes back what the code asked for in this turn: it went over a limit.
    fn discard_schedules(&mut self, draft: &mut Draft) {
        draft.delta.retain(|event| event.event_id <= draft.received);
        draft.scheduled.clear();
        self.check.forget_after(draft.received);
    }

    /// The execution goes on.
    fn stay(&mut self, mut draft: Draft, drops: &BTreeSet<(Kind, u64)>) -> Turn {
        self.report_unheard_queues();
        self.append_drops(&mut draft, drops);
        let stopped_activities = self.append_stops(&mut draft, drops);
        let scheduled = std::mem::take(&mut draft.scheduled);
        let mut activities = Vec::new();
        let mut messages = Vec::new();
        for (event_id, action) in scheduled {
            let dropped = |kind| drops.contains(&(kind, event_id));
            match action {
                // Scheduled and dropped in one turn: recorded, never handed out (5.3).
                Action::CallActivity { .. } if dropped(Kind::Activity) => {}
                Action::CreateTimer { .. } if dropped(Kind::Timer) => {}
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
        messages.extend(self.child_cancellations(dropped_ids(drops, Kind::Child), CHILD_DROPPED));
        let earlier = |kind| dropped_ids(drops, kind).filter(|id| *id <= draft.base).collect();
        Turn {
            activities,
            messages,
            cancelled_activities: earlier(Kind::Activity),
            stopped_activities,
            cancelled_timers: earlier(Kind::Timer),
            outcome: Outcome::Running,
            parent: self.parent.clone(),
            delta: draft.delta,
        }
    }

    /// The execution ends: nothing is handed out but detached starts, and what is open is taken back.
    fn finish(&mut self, mut draft: Draft, drops: &BTreeSet<(Kind, u64)>, end: End) -> Turn {
        let base = draft.base;
        let earlier =
            |ids: &mut dyn Iterator<Item = u64>| -> Vec<u64> { ids.filter(|id| *id <= base).collect() };
        let cancelled_activities = earlier(&mut self.check.open_ids(Kind::Activity));
        let mut cancelled_timers = earlier(&mut self.check.open_ids(Kind::Timer));
        cancelled_timers.extend(earlier(&mut dropped_ids(drops, Kind::Timer)));
        let mut messages: Vec<WorkItem> = std::mem::take(&mut draft.scheduled)
            .into_iter()
            .filter(|(_, action)| matches!(action, Action::StartOrchestrationDetached { .. }))
            .filter_map(|(event_id, action)| self.work_item(event_id, action))
            .collect();
        let (children, reason) = if end.cancels_children {
            (earlier(&mut self.check.open_ids(Kind::Child)), PARENT_CANCELLED)
        } else {
            // Also in a turn over a limit: the child runs since an earlier turn, and nobody else would cancel it (5.2).
            (earlier(&mut dropped_ids(drops, Kind::Child)), CHILD_DROPPED)
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
            // What is open was taken back.
            stopped_activities: Vec::new(),
            cancelled_timers,
            outcome: end.outcome,
            parent: self.parent.clone(),
        }
    }

    /// Breadcrumbs of dropped futures: activities, children, waits, queue reads, each ascending.
    fn append_drops(&mut self, draft: &mut Draft, drops: &BTreeSet<(Kind, u64)>) {
        for (kind, event_id) in drops {
            let reason = DROPPED_FUTURE.to_owned();
            let breadcrumb = match kind {
                Kind::Activity => EventKind::ActivityCancelRequested { reason },
                Kind::Child => EventKind::SubOrchestrationCancelRequested { reason },
                Kind::Wait => EventKind::ExternalSubscribedCancelled { reason },
                Kind::Queue => EventKind::QueueSubscriptionCancelled { reason },
                Kind::Timer => continue,
            };
            self.append(draft, Some(*event_id), breadcrumb);
        }
    }

    /// Breadcrumbs of activities that the code asked to stop, ascending. One that has ended meanwhile, or whose future was
    /// dropped after all, needs none.
    fn append_stops(&mut self, draft: &mut Draft, drops: &BTreeSet<(Kind, u64)>) -> Vec<u64> {
        let asked: Vec<u64> = self.shared.lock().stops().iter().copied().collect();
        let is_open = |id: &u64| self.check.schedule(*id).is_some_and(|schedule| !schedule.completed);
        let stops: Vec<u64> =
            asked.into_iter().filter(|id| is_open(id) && !drops.contains(&(Kind::Activity, *id))).collect();
        for event_id in &stops {
            let reason = CANCEL_AND_WAIT.to_owned();
            self.append(draft, Some(*event_id), EventKind::ActivityCancelRequested { reason });
        }
        stops
    }

    /// Breadcrumbs of what is still open, then the terminal event.
    fn append_terminal(&mut self, draft: &mut Draft, drops: &BTreeSet<(Kind, u64)>, end: &End) {
        let (mut waits, mut reads) = {
            let state = self.shared.lock();
            (state.open_waits(), state.queues.open_reads())
        };
        if !end.records_drops {
            waits.extend(dropped_ids(drops, Kind::Wait));
            reads.extend(dropped_ids(drops, Kind::Queue));
        }
        let activities: Vec<u64> = self.check.open_ids(Kind::Activity).collect();
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

    /// The work that an action stands for; `None` for actions that are complete once recorded.
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

/// What is open when an execution ends and gets a breadcrumb.
#[derive(Debug, Default)]
pub(super) struct OpenSchedules {
    pub(super) activities: Vec<u64>,
    pub(super) waits: Vec<u64>,
    pub(super) reads: Vec<u64>,
}

impl OpenSchedules {
    /// The breadcrumbs with the schedule each names, in the order of 3.2.
    pub(super) fn breadcrumbs(mut self, outcome: &Outcome, last_event_id: u64) -> Vec<(u64, EventKind)> {
        // A schedule that was discarded with its turn is not there any more.
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

fn dropped_ids(drops: &BTreeSet<(Kind, u64)>, kind: Kind) -> impl Iterator<Item = u64> + '_ {
    drops.range((kind, 0)..=(kind, u64::MAX)).map(|(_, id)| *id)
}
