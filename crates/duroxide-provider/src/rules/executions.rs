//! Executions and their events: appended exactly as given, never changed afterwards (S3.T47).

use std::collections::BTreeSet;

use super::{ExecutionRow, InstanceChange, InstanceRow, Rows, Rules, Tables, is_end_of_execution};
use crate::{
    ExecutionMetadata,
    store::{Answer, ApplyError, EventRow, Refusal, StateChange},
};

impl<T: Tables> Rules<T> {
    /// Refuses events whose id is already stored, or that come twice. Above the last event of a `stored` execution there is
    /// nothing to look up.
    pub(super) fn check_new_events(
        &mut self,
        row: &InstanceRow,
        execution_id: u64,
        stored: Option<&ExecutionRow>,
        events: &[EventRow],
    ) -> Result<(), ApplyError> {
        let last = stored.map_or(0, |execution| execution.last_event_id);
        if are_ascending_above(last, events) {
            return Ok(());
        }
        let mut seen = BTreeSet::new();
        for event in events {
            let is_stored =
                event.event_id <= last && self.tables.has_event(row.number, execution_id, event.event_id)?;
            if is_stored || !seen.insert(event.event_id) {
                return Err(duplicate(&row.id, execution_id, event).into());
            }
        }
        Ok(())
    }

    /// Appends events to an execution, which begins if it is not `stored`, and applies their changes of state. The
    /// caller writes the execution's row.
    pub(super) fn append_events(
        &mut self,
        row: &mut InstanceRow,
        execution_id: u64,
        stored: Option<ExecutionRow>,
        events: &[EventRow],
        changes: &[StateChange],
    ) -> Rows<ExecutionRow> {
        if execution_id > row.execution_id {
            // Changes of an execution that was never ended belong to the past all the same.
            self.merge_key_values(row.number)?;
            row.execution_id = execution_id;
        }
        let mut execution = stored.unwrap_or_else(|| ExecutionRow::begun(self.now));
        self.tables.append_events(row.number, execution_id, events)?;
        let last = events.iter().map(|event| event.event_id).max().unwrap_or_default();
        execution.last_event_id = execution.last_event_id.max(last);
        self.change_key_values(row.number, changes)?;
        self.change_custom_status(row.number, changes)?;
        row.known = true;
        Ok(execution)
    }

    /// Appends events outside a round, for tests and repair.
    pub(super) fn append(
        &mut self,
        instance: &str,
        execution_id: u64,
        events: &[EventRow],
        changes: &[StateChange],
    ) -> Result<Answer, ApplyError> {
        if events.is_empty() {
            return Ok(Answer::Done);
        }
        if let Some(row) = self.tables.instance_named(instance)? {
            let stored = self.tables.execution(row.number, execution_id)?;
            self.check_new_events(&row, execution_id, stored.as_ref(), events)?;
        } else {
            check_distinct(instance, execution_id, events)?;
        }
        let mut row = self.open_instance(instance)?;
        let stored = self.tables.execution(row.number, execution_id)?;
        let execution = self.append_events(&mut row, execution_id, stored, events, changes)?;
        self.tables.write_execution(row.number, execution_id, &execution)?;
        if execution_id == row.execution_id {
            row.status = Some(execution.status);
        }
        row.route = None;
        self.settle_with(row, InstanceChange::Description)?;
        Ok(Answer::Done)
    }

    /// Applies the metadata of a round to an execution. Unset fields stay.
    pub(super) fn describe_execution(&self, execution: &mut ExecutionRow, metadata: &ExecutionMetadata) {
        if let Some(status) = &metadata.status {
            execution.status.clone_from(status);
            execution.output.clone_from(&metadata.output);
            execution.completed_at = is_end_of_execution(status).then_some(self.now);
        }
        if let Some(version) = &metadata.pinned_duroxide_version {
            execution.pinned = Some(version.into());
        }
    }
}

/// Whether each event follows the one before it, as those of a turn do: then none can be there already.
fn are_ascending_above(last: u64, events: &[EventRow]) -> bool {
    let before = std::iter::once(last).chain(events.iter().map(|event| event.event_id));
    before.zip(events).all(|(before, event)| before < event.event_id)
}

fn check_distinct(instance: &str, execution_id: u64, events: &[EventRow]) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    match events.iter().find(|event| !seen.insert(event.event_id)) {
        Some(event) => Err(duplicate(instance, execution_id, event)),
        None => Ok(()),
    }
}

fn duplicate(instance: &str, execution_id: u64, event: &EventRow) -> Refusal {
    Refusal::DuplicateEvent { instance: instance.to_owned(), execution_id, event_id: event.event_id }
}
