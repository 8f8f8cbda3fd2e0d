//! Executions and their events.

use std::{collections::BTreeMap, ops::RangeInclusive};

use super::{
    MemoryTables,
    table::{Index, Table},
};
use crate::{
    rules::{ExecutionAge, ExecutionRow, HistoryTable, Rows},
    store::EventRow,
};

/// By instance and execution.
pub(in crate::memory) type Executions = Table<(u64, u64), ExecutionRow>;
/// By instance, execution and event.
pub(in crate::memory) type Events = Table<(u64, u64, u64), String, HistorySizes>;

/// Events and bytes of each execution.
#[derive(Debug, Clone, Default)]
pub(in crate::memory) struct HistorySizes(BTreeMap<(u64, u64), (u64, u64)>);

impl Index<(u64, u64, u64), String> for HistorySizes {
    fn file(&mut self, key: &(u64, u64, u64), before: Option<&String>, after: Option<&String>) {
        let (events, bytes) = self.0.entry((key.0, key.1)).or_default();
        if let Some(data) = after {
            (*events, *bytes) = (*events + 1, *bytes + data.len() as u64);
        }
        if let Some(data) = before {
            (*events, *bytes) = (*events - 1, *bytes - data.len() as u64);
        }
        if *events == 0 {
            self.0.remove(&(key.0, key.1));
        }
    }
}

impl Executions {
    pub(in crate::memory) fn of(
        &self,
        instance: u64,
    ) -> impl DoubleEndedIterator<Item = (u64, &ExecutionRow)> {
        let all = (instance, 0)..=(instance, u64::MAX);
        self.range(all).map(|((_, execution_id), execution)| (*execution_id, execution))
    }
}

impl Events {
    pub(in crate::memory) fn of(
        &self,
        instance: u64,
        execution_id: u64,
    ) -> impl DoubleEndedIterator<Item = (u64, &String)> {
        self.range(all(instance, execution_id)).map(|((.., event_id), data)| (*event_id, data))
    }

    pub(in crate::memory) fn rows(&self, instance: u64, execution_id: u64) -> Vec<EventRow> {
        let events = self.of(instance, execution_id);
        events.map(|(event_id, data)| EventRow { event_id, data: data.clone() }).collect()
    }

    pub(in crate::memory) fn first(&self, instance: u64, execution_id: u64) -> Option<&String> {
        self.of(instance, execution_id).next().map(|(_, data)| data)
    }

    /// How many events an execution has, and their bytes.
    pub(in crate::memory) fn size(&self, instance: u64, execution_id: u64) -> (u64, u64) {
        self.index().0.get(&(instance, execution_id)).copied().unwrap_or_default()
    }
}

fn all(instance: u64, execution_id: u64) -> RangeInclusive<(u64, u64, u64)> {
    (instance, execution_id, 0)..=(instance, execution_id, u64::MAX)
}

impl HistoryTable for MemoryTables {
    fn execution(&mut self, instance: u64, execution_id: u64) -> Rows<Option<ExecutionRow>> {
        Ok(self.executions.get(&(instance, execution_id)).cloned())
    }

    fn write_execution(&mut self, instance: u64, execution_id: u64, execution: &ExecutionRow) -> Rows<()> {
        self.executions.put((instance, execution_id), execution.clone());
        Ok(())
    }

    fn has_event(&mut self, instance: u64, execution_id: u64, event_id: u64) -> Rows<bool> {
        Ok(self.events.contains(&(instance, execution_id, event_id)))
    }

    fn append_events(&mut self, instance: u64, execution_id: u64, events: &[EventRow]) -> Rows<()> {
        for event in events {
            self.events.put((instance, execution_id, event.event_id), event.data.clone());
        }
        Ok(())
    }

    fn first_event(&mut self, instance: u64, execution_id: u64) -> Rows<Option<String>> {
        Ok(self.events.first(instance, execution_id).cloned())
    }

    fn old_executions(
        &mut self,
        instances: &[u64],
        keep: u32,
        after: u64,
        limit: usize,
    ) -> Rows<Vec<ExecutionAge>> {
        let first = instances.first();
        let of_instance = |instance: &u64| {
            let count = self.executions.of(*instance).count().saturating_sub(keep as usize);
            self.executions.range((*instance, 0)..=(*instance, u64::MAX)).take(count)
        };
        let old = instances.iter().flat_map(of_instance);
        let follows = old.filter(|((of, id), _)| Some(of) != first || after < *id);
        let age = |((instance, execution_id), execution): (&(u64, u64), &ExecutionRow)| ExecutionAge {
            instance: *instance,
            execution_id: *execution_id,
            status: execution.status.clone(),
            completed_at: execution.completed_at,
        };
        Ok(follows.take(limit).map(age).collect())
    }

    fn delete_execution(&mut self, instance: u64, execution_id: u64) -> Rows<()> {
        self.executions.remove(&(instance, execution_id));
        Ok(())
    }
}
