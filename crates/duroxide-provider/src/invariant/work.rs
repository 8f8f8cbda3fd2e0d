//! Invariant I06: scheduled work is not lost.

use duroxide_core::{CallKind, Event, EventKind, EventRole, WorkItem, build_child_instance_id};

use super::{
    Violations,
    view::{ExecutionView, InstanceView, View},
};

/// I06: in a running execution, each scheduled call that is neither completed nor cancelled has a row in the store.
pub(super) fn work_conserved(view: &View<'_>, instance: &InstanceView<'_>, found: &mut Violations) {
    let Some(current) = instance.current() else { return };
    if !current.readable || current.end().is_some() {
        return;
    }
    for event in current.open_schedules() {
        let EventRole::Call(call) = event.kind.role() else { continue };
        let carriers = match call {
            CallKind::Activity => activity_carriers(view, instance, current, event.event_id),
            CallKind::Child => child_carriers(view, instance, current, event),
            // A dropped timer leaves no breadcrumb, and its key keeps a second one out; a wait is its own carrier.
            CallKind::Timer | CallKind::Wait | CallKind::Queue => continue,
        };
        if carriers != 1 {
            let (kind, id) = (event.kind.wire_name(), event.event_id);
            let execution = current.row.execution_id;
            let detail = format!("{kind} {id} of execution {execution} has {carriers} carriers");
            found.add("I06 WorkConserved", instance.id(), detail);
        }
    }
}

fn activity_carriers(
    view: &View<'_>,
    instance: &InstanceView<'_>,
    execution: &ExecutionView<'_>,
    id: u64,
) -> usize {
    let execution_id = execution.row.execution_id;
    let rows = instance.row.activities.iter();
    let queued = rows.filter(|row| row.execution_id == execution_id && row.activity_id == id).count();
    let keys = [format!("AC/{execution_id}/{id}"), format!("AF/{execution_id}/{id}")];
    let completed = keys.iter().any(|key| instance.message_keys.contains(key.as_str()));
    let lost = view.dead_letters(instance.id()).any(|payload| concerns_activity(payload, execution_id, id));
    // A dead letter counts only if no other row carries the call: it may be left from a repeated run.
    (queued + usize::from(completed)).max(usize::from(lost))
}

fn concerns_activity(payload: &str, execution: u64, schedule: u64) -> bool {
    // An undecodable dead letter does not name its instance, so it may be the missing item.
    let Ok(item) = serde_json::from_str(payload) else { return true };
    match item {
        WorkItem::ActivityExecute { execution_id, id, .. }
        | WorkItem::ActivityCompleted { execution_id, id, .. }
        | WorkItem::ActivityFailed { execution_id, id, .. } => execution_id == execution && id == schedule,
        WorkItem::StartOrchestration { .. }
        | WorkItem::ContinueAsNew { .. }
        | WorkItem::SubOrchCompleted { .. }
        | WorkItem::SubOrchFailed { .. }
        | WorkItem::TimerFired { .. }
        | WorkItem::ExternalRaised { .. }
        | WorkItem::QueueMessage { .. }
        | WorkItem::CancelInstance { .. } => false,
    }
}

/// A child is started, alive, or has reported. A colliding start may be in the queue of a living one.
fn child_carriers(
    view: &View<'_>,
    parent: &InstanceView<'_>,
    execution: &ExecutionView<'_>,
    event: &Event,
) -> usize {
    let EventKind::SubOrchestrationScheduled { instance: child, .. } = &event.kind else { return 0 };
    let (execution_id, call) = (execution.row.execution_id, event.event_id);
    let reports = [format!("SC/{execution_id}/{call}"), format!("SF/{execution_id}/{call}")];
    let reported = reports.iter().any(|key| parent.message_keys.contains(key.as_str()));
    let child_id = build_child_instance_id(parent.id(), child);
    let child = view.instance(&child_id);
    let start = format!("ST/{}/{execution_id}/{call}", parent.id());
    let started = child.is_some_and(|child| child.message_keys.contains(start.as_str()));
    let alive =
        child.is_some_and(|child| !child.is_over() && is_child_of(child, parent.id(), execution_id, call));
    let lost = view.dead_letters(&child_id).chain(view.dead_letters(parent.id())).any(concerns_child);
    usize::from(reported || started || alive || lost)
}

fn concerns_child(payload: &str) -> bool {
    let Ok(item) = serde_json::from_str(payload) else { return true };
    match item {
        WorkItem::StartOrchestration { .. }
        | WorkItem::SubOrchCompleted { .. }
        | WorkItem::SubOrchFailed { .. } => true,
        WorkItem::ActivityExecute { .. }
        | WorkItem::ActivityCompleted { .. }
        | WorkItem::ActivityFailed { .. }
        | WorkItem::ContinueAsNew { .. }
        | WorkItem::TimerFired { .. }
        | WorkItem::ExternalRaised { .. }
        | WorkItem::QueueMessage { .. }
        | WorkItem::CancelInstance { .. } => false,
    }
}

fn is_child_of(child: &InstanceView<'_>, parent: &str, execution_id: u64, call: u64) -> bool {
    let first = child.current().and_then(|current| current.events.first());
    let link = first.and_then(Event::parent_link);
    // Between two executions the link is in the start that waits.
    link.is_none_or(|link| {
        link.instance == parent
            && link.event_id == call
            && link.execution_id.is_none_or(|execution| execution == execution_id)
    }) && child.row.parent.as_deref() == Some(parent)
}

/// I07: a finished execution has no activity and no timer left.
pub(super) fn terminal_holds_nothing(instance: &InstanceView<'_>, found: &mut Violations) {
    for execution in instance.executions.iter().filter(|execution| execution.end().is_some()) {
        let execution_id = execution.row.execution_id;
        for activity in instance.row.activities.iter().filter(|row| row.execution_id == execution_id) {
            let detail =
                format!("execution {execution_id} ended, activity {} is queued", activity.activity_id);
            found.add("I07 TerminalHoldsNothing", instance.id(), detail);
        }
        let timers = format!("TF/{execution_id}/");
        for key in instance.message_keys.iter().filter(|key| key.starts_with(&timers)) {
            let detail = format!("execution {execution_id} ended, timer {key} is queued");
            found.add("I07 TerminalHoldsNothing", instance.id(), detail);
        }
    }
}
