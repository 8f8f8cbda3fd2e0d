//! Events: appended exactly as given, never read back or changed by a commit (S3.T47).

use std::collections::BTreeSet;

use duroxide_provider::store::{Answer, ApplyError, EventRow, Refusal, StateChange, StoreFailure};

use crate::{
    SqliteEngine,
    db::number,
    executions::ExecutionRow,
    instances::{Changed, InstanceRow},
};

const INSERT: &str = "INSERT INTO history (instance, execution_id, event_id, data) VALUES (?1, ?2, ?3, ?4)";
const EXISTS: &str = "SELECT 1 FROM history WHERE instance = ?1 AND execution_id = ?2 AND event_id = ?3";

impl SqliteEngine {
    /// Refuses events whose id is already stored, or that come twice. Above the `last` stored id there is nothing to
    /// look up.
    pub(crate) fn check_new_events(
        &self,
        row: &InstanceRow,
        execution_id: u64,
        last: u64,
        events: &[EventRow],
    ) -> Result<(), ApplyError> {
        if above(last, events) {
            return Ok(());
        }
        let mut seen = BTreeSet::new();
        for event in events {
            let is_stored = event.event_id <= last
                && self.db.exists(EXISTS, (row.id, number(execution_id), number(event.event_id)))?;
            if is_stored || !seen.insert(event.event_id) {
                return Err(Refusal::DuplicateEvent {
                    instance: row.instance_id.clone(),
                    execution_id,
                    event_id: event.event_id,
                }
                .into());
            }
        }
        Ok(())
    }

    /// Appends events to an execution, which begins if it is not `stored`, with what they change beside the history.
    /// The caller writes the execution's row.
    pub(crate) fn append_events(
        &mut self,
        row: &mut InstanceRow,
        execution_id: u64,
        stored: Option<ExecutionRow>,
        events: &[EventRow],
        changes: &[StateChange],
    ) -> Result<ExecutionRow, StoreFailure> {
        if execution_id > row.execution_id {
            // Changes of an execution that was never ended belong to the past all the same.
            self.merge_kv(row.id)?;
            row.execution_id = execution_id;
        }
        let mut execution = stored.unwrap_or_else(|| ExecutionRow::begun(self.now));
        let key = (row.id, number(execution_id));
        let rows = events.iter().map(|event| (key.0, key.1, number(event.event_id), &event.data));
        self.db.execute_each(INSERT, rows)?;
        let last = events.iter().map(|event| event.event_id).max().unwrap_or_default();
        execution.last_event_id = execution.last_event_id.max(last);
        self.change_kv(row.id, changes)?;
        self.change_custom_status(row.id, changes)?;
        row.known = true;
        Ok(execution)
    }

    /// Appends events outside a round, for tests and repair.
    pub(crate) fn append(
        &mut self,
        instance: &str,
        execution_id: u64,
        events: &[EventRow],
        changes: &[StateChange],
    ) -> Result<Answer, ApplyError> {
        if events.is_empty() {
            return Ok(Answer::Done);
        }
        if let Some(row) = self.instance_named(instance)? {
            let stored = self.execution(row.id, execution_id)?;
            let last = stored.map_or(0, |execution| execution.last_event_id);
            self.check_new_events(&row, execution_id, last, events)?;
        } else {
            check_distinct(instance, execution_id, events)?;
        }
        let mut row = self.open_instance(instance)?;
        let stored = self.execution(row.id, execution_id)?;
        let execution = self.append_events(&mut row, execution_id, stored, events, changes)?;
        self.write_execution(row.id, execution_id, &execution)?;
        if execution_id == row.execution_id {
            row.status = Some(execution.status);
        }
        row.route = None;
        self.write_settled(&row, Changed::Description)?;
        Ok(Answer::Done)
    }
}

/// Whether each event follows the one before it, as those of a turn do: then none can be there already.
fn above(last: u64, events: &[EventRow]) -> bool {
    let before = std::iter::once(last).chain(events.iter().map(|event| event.event_id));
    before.zip(events).all(|(before, event)| before < event.event_id)
}

fn check_distinct(instance: &str, execution_id: u64, events: &[EventRow]) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    match events.iter().find(|event| !seen.insert(event.event_id)) {
        Some(event) => Err(Refusal::DuplicateEvent {
            instance: instance.to_owned(),
            execution_id,
            event_id: event.event_id,
        }),
        None => Ok(()),
    }
}
