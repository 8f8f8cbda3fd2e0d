//! Executions and their events.

use std::{collections::BTreeMap, ops::RangeInclusive};

use super::table::{Index, Table};
use crate::{rules::ExecutionRow, store::EventRow};

/// By instance and execution.
pub(super) type Executions = Table<(u64, u64), ExecutionRow>;
/// By instance, execution and event.
pub(super) type Events = Table<(u64, u64, u64), String, HistorySizes>;

/// Events and bytes of each execution.
#[derive(Debug, Clone, Default)]
pub(super) struct HistorySizes(BTreeMap<(u64, u64), (u64, u64)>);

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
    pub(super) fn of(&self, instance: u64) -> impl DoubleEndedIterator<Item = (u64, &ExecutionRow)> {
        let all = (instance, 0)..=(instance, u64::MAX);
        self.range(all).map(|((_, execution_id), execution)| (*execution_id, execution))
    }
}

impl Events {
    pub(super) fn of(
        &self,
        instance: u64,
        execution_id: u64,
    ) -> impl DoubleEndedIterator<Item = (u64, &String)> {
        self.range(all(instance, execution_id)).map(|((.., event_id), data)| (*event_id, data))
    }

    pub(super) fn rows(&self, instance: u64, execution_id: u64) -> Vec<EventRow> {
        let events = self.of(instance, execution_id);
        events.map(|(event_id, data)| EventRow { event_id, data: data.clone() }).collect()
    }

    pub(super) fn first(&self, instance: u64, execution_id: u64) -> Option<&String> {
        self.of(instance, execution_id).next().map(|(_, data)| data)
    }

    /// How many events an execution has, and their bytes.
    pub(super) fn size(&self, instance: u64, execution_id: u64) -> (u64, u64) {
        self.index().0.get(&(instance, execution_id)).copied().unwrap_or_default()
    }
}

fn all(instance: u64, execution_id: u64) -> RangeInclusive<(u64, u64, u64)> {
    (instance, execution_id, 0)..=(instance, execution_id, u64::MAX)
}
