//! Invariants I16 and I17: executions in a row, parents and children.

use duroxide_core::{EventKind, ExecutionEnd, build_child_instance_id};

use super::{
    Violations,
    view::{ExecutionView, InstanceView, View},
};

/// I16: the current execution is the last, and all before it continued as new.
pub(super) fn one_current_execution(instance: &InstanceView<'_>, found: &mut Violations) {
    const NAME: &str = "I16 StartIdempotent";
    let Some(last) = instance.executions.last() else { return };
    let (current, last) = (instance.row.execution_id, last.row.execution_id);
    if current != last {
        found.add(NAME, instance.id(), format!("execution {current} is current, {last} is the last"));
    }
    let earlier = instance.executions.iter().filter(|execution| execution.row.execution_id < current);
    for execution in earlier.filter(|execution| execution.readable) {
        if !matches!(execution.end(), Some(ExecutionEnd::ContinuedAsNew { .. })) {
            let detail =
                format!("execution {} has a successor but did not continue", execution.row.execution_id);
            found.add(NAME, instance.id(), detail);
        }
    }
}

/// I17: a child points to the exact call of its parent. If the parent was deleted or pruned, nothing is checked.
pub(super) fn family_agrees(view: &View<'_>, instance: &InstanceView<'_>, found: &mut Violations) {
    const NAME: &str = "I17 FamilyAgrees";
    for execution in &instance.executions {
        let Some(link) = execution.events.first().map(duroxide_core::Event::parent_link) else { continue };
        let parent = link.as_ref().map(|link| link.instance.as_str());
        if instance.row.name.is_some() && parent != instance.row.parent.as_deref() {
            let detail = format!("stored parent {:?}, recorded parent {parent:?}", instance.row.parent);
            found.add(NAME, instance.id(), detail);
        }
        let Some(link) = link else { continue };
        let Some(caller) = link.execution_id.and_then(|id| view.instance(&link.instance)?.execution(id))
        else {
            continue;
        };
        if caller.readable && !calls(caller, &link.instance, link.event_id, instance.id()) {
            let detail = format!("event {} of {} is no call of this child", link.event_id, link.instance);
            found.add(NAME, instance.id(), detail);
        }
    }
}

/// Events are in the order of their ids; a search keeps the check of a parent of many children short.
fn calls(caller: &ExecutionView<'_>, parent: &str, call: u64, child: &str) -> bool {
    let position = caller.events.binary_search_by_key(&call, |event| event.event_id);
    let event = position.ok().and_then(|position| caller.events.get(position));
    event.is_some_and(|event| {
        let EventKind::SubOrchestrationScheduled { instance, .. } = &event.kind else { return false };
        build_child_instance_id(parent, instance) == child
    })
}
