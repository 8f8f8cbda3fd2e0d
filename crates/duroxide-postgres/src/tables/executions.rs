//! Executions and their events.

use std::collections::{BTreeSet, HashMap};

use duroxide_provider::{
    rules::{ExecutionAge, ExecutionRow},
    store::EventRow,
};
use tokio_postgres::Row;

use super::{PostgresTables, numbers};
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
/// Of each instance in `$1` all but the newest ones, as many as `$2` says; of the first instance those above `$3`.
const OLD: &str = "SELECT wanted.place, wanted.instance, old.execution_id, old.status, old.completed_at
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS wanted (instance, kept, place) CROSS JOIN LATERAL (
        SELECT execution.execution_id, execution.status, execution.completed_at FROM {s}.execution
        WHERE execution.instance = wanted.instance
            AND execution.execution_id > CASE WHEN wanted.place = 1 THEN $3::bigint ELSE 0 END
            AND execution.execution_id < (SELECT kept.execution_id FROM {s}.execution AS kept
                WHERE kept.instance = wanted.instance ORDER BY kept.execution_id DESC OFFSET wanted.kept - 1 LIMIT 1)
        ORDER BY execution.execution_id LIMIT $4) AS old
    ORDER BY wanted.place, old.execution_id LIMIT $4";

/// How many of them are read at the beginning of a transaction.
const OLD_READ_MAX: usize = 1_000;

/// The executions behind the newest ones, by instance and number of newest ones, as they were read at the beginning of the
/// transaction.
pub(super) type OldExecutions = HashMap<(u64, u32), Vec<ExecutionAge>>;

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

    pub(super) fn old_executions(
        &mut self,
        instances: &[u64],
        keep: u32,
        after: u64,
        at_most: usize,
    ) -> Result<Vec<ExecutionAge>, DatabaseError> {
        let known = instances.iter().map(|instance| self.known_old_executions(*instance, keep));
        if let Some(known) = known.collect::<Option<Vec<_>>>() {
            let first = instances.first().copied();
            let known = known.into_iter().flatten().cloned();
            let follows = known.filter(|old| Some(old.instance) != first || old.execution_id > after);
            return Ok(follows.take(at_most).collect());
        }
        let kept = vec![i64::from(keep); instances.len()];
        let parameters = parameters![numbers(instances), kept, number(after), limit(at_most)];
        read_old(&self.ask(Query::new(OLD, parameters))?)
    }

    /// Reads the old executions of instances that are locked, each with the number of newest ones to keep.
    pub(super) fn load_old_executions(&mut self, wanted: &BTreeSet<(u64, u32)>) -> Result<(), DatabaseError> {
        let kept: Vec<i64> = wanted.iter().map(|(_, keep)| i64::from(*keep)).collect();
        let of = numbers(wanted.iter().map(|(instance, _)| instance));
        let answers = self.send(&[Query::new(OLD, parameters![of, kept, 0_i64, limit(OLD_READ_MAX)])])?;
        let rows = answers.concat();
        let place = |row: &Row| row.column::<i64>("place").map(|place| usize::try_from(place).unwrap_or(0));
        // Of the last one there may be more.
        let cut = rows.last().filter(|_| rows.len() >= OLD_READ_MAX).map(place).transpose()?;
        let mut read = vec![Vec::new(); cut.map_or(wanted.len(), |cut| cut - 1)];
        for (row, old) in rows.iter().zip(read_old(&rows)?) {
            read.get_mut(place(row)? - 1).into_iter().for_each(|of: &mut Vec<_>| of.push(old.clone()));
        }
        self.set.old_executions.extend(wanted.iter().copied().zip(read));
        Ok(())
    }

    /// What was read is true as long as the transaction has not written the instance or its executions.
    fn known_old_executions(&self, instance: u64, keep: u32) -> Option<&Vec<ExecutionAge>> {
        let is_written = self.set.has_written_instance(instance)
            || self.set.executions.unsent_keys().any(|(of, _)| *of == instance);
        self.set.old_executions.get(&(instance, keep)).filter(|_| !is_written)
    }
}

fn read_old(rows: &[Row]) -> Result<Vec<ExecutionAge>, DatabaseError> {
    rows.iter()
        .map(|row| {
            Ok(ExecutionAge {
                instance: row.number("instance")?,
                execution_id: row.number("execution_id")?,
                status: row.column("status")?,
                completed_at: row.column::<Option<i64>>("completed_at")?.map(time),
            })
        })
        .collect()
}
