//! Executions and their events.

use duroxide_provider::{
    rules::{ExecutionAge, ExecutionRow},
    store::EventRow,
};

use super::PostgresTables;
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    record::{Event, Execution, Record},
    value::{Columns, limit, number, time},
};

const EXECUTION: &str = "SELECT {columns execution} FROM {s}.execution
    WHERE execution.instance = $1 AND execution.execution_id = $2";
const HAS_EVENT: &str =
    "SELECT 1 FROM {s}.history WHERE instance = $1 AND execution_id = $2 AND event_id = $3";
const FIRST_EVENT: &str = "SELECT data FROM {s}.history WHERE instance = $1 AND execution_id = $2
      AND NOT EXISTS (SELECT 1 FROM {s}.removal WHERE removal.instance = $1 AND removal.execution_id = $2)
    ORDER BY event_id LIMIT 1";
const NTH_NEWEST: &str = "SELECT execution_id FROM {s}.execution WHERE instance = $1
    ORDER BY execution_id DESC OFFSET $2 LIMIT 1";
const BETWEEN: &str = "SELECT execution_id, status, completed_at FROM {s}.execution
    WHERE instance = $1 AND execution_id > $2 AND execution_id < $3 ORDER BY execution_id LIMIT $4";

impl PostgresTables {
    pub(super) fn execution(
        &mut self,
        instance: u64,
        execution_id: u64,
    ) -> Result<Option<ExecutionRow>, DatabaseError> {
        let key = (instance, execution_id);
        // An instance that was never started has no execution.
        let never_ran = self.set.instances.get(&instance).is_some_and(|row| !row.known);
        if !self.set.executions.knows(&key) && !never_ran {
            let query = Query::new(EXECUTION, parameters![number(instance), number(execution_id)]);
            let answers = self.send(&[query])?;
            let found = answers.iter().flatten().next().map(Execution::read).transpose()?;
            self.set.executions.learn(key, found);
        }
        Ok(self.set.executions.get(&key).map(|execution| execution.row.clone()))
    }

    pub(super) fn write_execution(
        &mut self,
        instance: u64,
        execution_id: u64,
        row: &ExecutionRow,
    ) -> Result<(), DatabaseError> {
        let execution = Execution { instance, execution_id, row: row.clone() };
        self.set.executions.overwrite((instance, execution_id), execution);
        Ok(())
    }

    pub(super) fn delete_execution(&mut self, instance: u64, execution_id: u64) -> Result<(), DatabaseError> {
        self.set.executions.delete(&(instance, execution_id));
        Ok(())
    }

    pub(super) fn has_event(
        &mut self,
        instance: u64,
        execution_id: u64,
        event_id: u64,
    ) -> Result<bool, DatabaseError> {
        let parameters = parameters![number(instance), number(execution_id), number(event_id)];
        Ok(!self.ask(Query::new(HAS_EVENT, parameters))?.is_empty())
    }

    pub(super) fn append_events(
        &mut self,
        instance: u64,
        execution_id: u64,
        events: &[EventRow],
    ) -> Result<(), DatabaseError> {
        for EventRow { event_id, data } in events {
            let event = Event { instance, execution_id, event_id: *event_id, data: data.clone() };
            self.set.events.put((instance, execution_id, *event_id), event);
        }
        self.set.first_events.remove(&(instance, execution_id));
        Ok(())
    }

    pub(super) fn first_event(
        &mut self,
        instance: u64,
        execution_id: u64,
    ) -> Result<Option<String>, DatabaseError> {
        if let Some(known) = self.set.first_events.get(&(instance, execution_id)) {
            return Ok(known.clone());
        }
        self.optional_reads.first_events = true;
        let parameters = parameters![number(instance), number(execution_id)];
        let rows = self.ask(Query::new(FIRST_EVENT, parameters))?;
        rows.first().map(|row| row.column("data")).transpose()
    }

    pub(super) fn nth_newest_execution(
        &mut self,
        instance: u64,
        nth: u32,
    ) -> Result<Option<u64>, DatabaseError> {
        let parameters = parameters![number(instance), i64::from(nth.saturating_sub(1))];
        let rows = self.ask(Query::new(NTH_NEWEST, parameters))?;
        rows.first().map(|row| row.number("execution_id")).transpose()
    }

    pub(super) fn executions_between(
        &mut self,
        instance: u64,
        after: u64,
        below: u64,
        at_most: usize,
    ) -> Result<Vec<ExecutionAge>, DatabaseError> {
        let parameters = parameters![number(instance), number(after), number(below), limit(at_most)];
        let rows = self.ask(Query::new(BETWEEN, parameters))?;
        rows.iter()
            .map(|row| {
                Ok(ExecutionAge {
                    execution_id: row.number("execution_id")?,
                    status: row.column("status")?,
                    completed_at: row.column::<Option<i64>>("completed_at")?.map(time),
                })
            })
            .collect()
    }
}
