//! Invariants I01 to I05: well-formed histories.

use duroxide_core::engine::{HistoryCheck, HistoryViolation};

use super::{Violations, view::InstanceView};

/// I01 to I05: every history can be one that an execution made.
pub(super) fn well_formed(instance: &InstanceView<'_>, found: &mut Violations) {
    for execution in &instance.executions {
        let execution_id = execution.row.execution_id;
        let mut check = HistoryCheck::new();
        for (row, event) in execution.row.events.iter().zip(&execution.events) {
            if let Err(violation) = check.push(event) {
                let detail = format!("execution {execution_id}, event {}: {violation}", event.event_id);
                found.add(name(&violation), instance.id(), detail);
            }
            if row.event_id != event.event_id || event.execution_id != execution_id {
                let detail =
                    format!("event {} of execution {execution_id} is stored in another place", row.event_id);
                found.add("I03 Contiguous", instance.id(), detail);
            }
        }
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "violations may be added, and need no name of their own here"
)]
fn name(violation: &HistoryViolation) -> &'static str {
    match violation {
        HistoryViolation::MisplacedStart => "I01 SingleStart",
        HistoryViolation::AfterEnd { .. } => "I02 TerminalLast",
        HistoryViolation::NotContiguous { .. } => "I03 Contiguous",
        HistoryViolation::WrongKind { .. } => "I04 MatchedCompletion",
        // One that was never scheduled, or one that is completed: the check keeps them together.
        _ => "I05 OneCompletion",
    }
}
