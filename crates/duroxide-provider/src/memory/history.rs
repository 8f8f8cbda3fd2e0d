use std::collections::BTreeMap;

use duroxide_core::Timestamp;

use super::record::ExecutionRecord;
use crate::{
    ExecutionInfo, ExecutionMetadata, VersionTriple,
    store::{EventRow, ExecutionSnapshot},
};

/// Status of an execution that has not ended.
pub(super) const RUNNING: &str = "Running";
/// Status of an execution whose successor begins, or waits to begin.
pub(super) const CONTINUED_AS_NEW: &str = "ContinuedAsNew";

/// One execution with its history.
#[derive(Debug, Clone)]
pub(super) struct Execution {
    status: String,
    output: Option<String>,
    pinned: Option<VersionTriple>,
    turns: u64,
    started_at: Timestamp,
    completed_at: Option<Timestamp>,
    events: BTreeMap<u64, String>,
    event_bytes: u64,
    /// Appended since the changes were last taken.
    appended: Vec<u64>,
}

impl Execution {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            status: RUNNING.to_owned(),
            output: None,
            pinned: None,
            turns: 0,
            started_at: now,
            completed_at: None,
            events: BTreeMap::new(),
            event_bytes: 0,
            appended: Vec::new(),
        }
    }

    pub(super) fn append(&mut self, events: &[EventRow]) {
        for event in events {
            self.event_bytes += event.data.len() as u64;
            self.events.insert(event.event_id, event.data.clone());
            self.appended.push(event.event_id);
        }
    }

    /// Stores what a round says of this execution. What it does not mention stays.
    pub(super) fn describe(&mut self, metadata: &ExecutionMetadata, now: Timestamp) {
        if let Some(status) = &metadata.status {
            self.status.clone_from(status);
            self.output.clone_from(&metadata.output);
            self.completed_at = (status != RUNNING).then_some(now);
        }
        if let Some(version) = &metadata.pinned_duroxide_version {
            self.pinned = Some(version.into());
        }
    }

    /// The events appended since this was last called.
    pub(super) fn take_appended(&mut self) -> Vec<EventRow> {
        let ids = std::mem::take(&mut self.appended);
        let row = |id: u64| Some(EventRow { event_id: id, data: self.events.get(&id)?.clone() });
        ids.into_iter().filter_map(row).collect()
    }

    pub(super) fn forget_appended(&mut self) {
        self.appended.clear();
    }

    pub(super) fn record(&self, instance: &str, execution_id: u64) -> ExecutionRecord {
        ExecutionRecord {
            instance: instance.to_owned(),
            execution_id,
            status: self.status.clone(),
            output: self.output.clone(),
            pinned: self.pinned,
            turns: self.turns,
            started_at: self.started_at,
            completed_at: self.completed_at,
        }
    }

    pub(super) fn restore(record: ExecutionRecord, events: &[EventRow]) -> Self {
        let mut execution = Self {
            status: record.status,
            output: record.output,
            pinned: record.pinned,
            turns: record.turns,
            completed_at: record.completed_at,
            ..Self::new(record.started_at)
        };
        execution.append(events);
        execution.forget_appended();
        execution
    }

    pub(super) fn count_turn(&mut self) {
        self.turns += 1;
    }

    pub(super) fn status(&self) -> &str {
        &self.status
    }

    pub(super) fn output(&self) -> Option<&String> {
        self.output.as_ref()
    }

    /// Whether it is over, and not only waits for its successor.
    pub(super) fn is_final(&self) -> bool {
        self.status != RUNNING && self.status != CONTINUED_AS_NEW
    }

    pub(super) fn completed_before(&self, millis: u64) -> bool {
        self.completed_at.is_some_and(|at| at.as_millis() < millis)
    }

    pub(super) fn pinned(&self) -> Option<VersionTriple> {
        self.pinned
    }

    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    pub(super) fn has_event(&self, event_id: u64) -> bool {
        self.events.contains_key(&event_id)
    }

    pub(super) fn event_count(&self) -> u64 {
        self.events.len() as u64
    }

    pub(super) fn event_bytes(&self) -> u64 {
        self.event_bytes
    }

    pub(super) fn last_event_id(&self) -> Option<u64> {
        self.events.last_key_value().map(|(id, _)| *id)
    }

    pub(super) fn first_event(&self) -> Option<&String> {
        self.events.first_key_value().map(|(_, data)| data)
    }

    pub(super) fn last_event(&self) -> Option<&String> {
        self.events.last_key_value().map(|(_, data)| data)
    }

    pub(super) fn events(&self) -> Vec<EventRow> {
        self.events.iter().map(|(id, data)| EventRow { event_id: *id, data: data.clone() }).collect()
    }

    pub(super) fn info(&self, execution_id: u64) -> ExecutionInfo {
        ExecutionInfo {
            execution_id,
            status: self.status.clone(),
            output: self.output.clone(),
            started_at: self.started_at.as_millis(),
            completed_at: self.completed_at.map(Timestamp::as_millis),
            event_count: self.events.len(),
        }
    }

    pub(super) fn snapshot(&self, execution_id: u64) -> ExecutionSnapshot {
        ExecutionSnapshot {
            execution_id,
            status: self.status.clone(),
            output: self.output.clone(),
            pinned: self.pinned,
            turns: self.turns,
            events: self.events(),
        }
    }
}
