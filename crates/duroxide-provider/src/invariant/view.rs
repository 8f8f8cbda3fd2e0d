//! A snapshot with its events decoded and its messages found by key.

use std::collections::{BTreeMap, BTreeSet};

use duroxide_core::{Event, ExecutionEnd};

use crate::store::{ExecutionSnapshot, InstanceSnapshot, StoreSnapshot};

/// A snapshot, decoded.
pub(super) struct View<'a> {
    instances: BTreeMap<&'a str, InstanceView<'a>>,
    /// Payloads of dead letters by instance.
    dead_letters: BTreeMap<&'a str, Vec<&'a str>>,
}

/// An instance or mailbox, decoded.
pub(super) struct InstanceView<'a> {
    pub(super) row: &'a InstanceSnapshot,
    pub(super) executions: Vec<ExecutionView<'a>>,
    pub(super) message_keys: BTreeSet<&'a str>,
}

/// An execution, decoded up to the first event that cannot be.
pub(super) struct ExecutionView<'a> {
    pub(super) row: &'a ExecutionSnapshot,
    pub(super) events: Vec<Event>,
    pub(super) readable: bool,
}

impl<'a> View<'a> {
    pub(super) fn new(snapshot: &'a StoreSnapshot) -> Self {
        let mut dead_letters: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for letter in &snapshot.dead_letters {
            let instance = letter.instance_id.as_deref().unwrap_or_default();
            dead_letters.entry(instance).or_default().push(&letter.payload);
        }
        let instances = snapshot.instances.iter().map(|row| (row.instance.as_str(), InstanceView::new(row)));
        Self { instances: instances.collect(), dead_letters }
    }

    pub(super) fn dead_letters(&self, id: &str) -> impl Iterator<Item = &'a str> {
        self.dead_letters.get(id).into_iter().flatten().copied()
    }

    pub(super) fn instances(&self) -> impl Iterator<Item = &InstanceView<'a>> {
        self.instances.values()
    }

    pub(super) fn instance(&self, id: &str) -> Option<&InstanceView<'a>> {
        self.instances.get(id)
    }
}

impl<'a> InstanceView<'a> {
    fn new(row: &'a InstanceSnapshot) -> Self {
        Self {
            row,
            executions: row.executions.iter().map(ExecutionView::new).collect(),
            message_keys: row.messages.iter().filter_map(|message| message.key.as_deref()).collect(),
        }
    }

    pub(super) fn id(&self) -> &'a str {
        &self.row.instance
    }

    pub(super) fn execution(&self, execution_id: u64) -> Option<&ExecutionView<'a>> {
        self.executions.iter().find(|execution| execution.row.execution_id == execution_id)
    }

    pub(super) fn current(&self) -> Option<&ExecutionView<'a>> {
        self.execution(self.row.execution_id)
    }

    /// Whether the instance is over, and not only its execution.
    pub(super) fn is_over(&self) -> bool {
        self.current().is_some_and(|current| {
            matches!(current.end(), Some(ExecutionEnd::Completed { .. } | ExecutionEnd::Failed { .. }))
        })
    }

    /// Whether every execution since the first exists and can be read.
    pub(super) fn is_complete(&self) -> bool {
        let numbered = (1..).zip(&self.executions);
        numbered.into_iter().all(|(n, execution)| execution.row.execution_id == n && execution.readable)
    }
}

impl<'a> ExecutionView<'a> {
    fn new(row: &'a ExecutionSnapshot) -> Self {
        let decoded = row.events.iter().map_while(|event| serde_json::from_str(&event.data).ok());
        let events: Vec<Event> = decoded.collect();
        let readable = events.len() == row.events.len();
        Self { row, events, readable }
    }

    pub(super) fn end(&self) -> Option<ExecutionEnd> {
        self.events.last()?.kind.clone().into_end()
    }

    /// Schedule events that have neither a completion nor a breadcrumb.
    pub(super) fn open_schedules(&self) -> impl Iterator<Item = &Event> {
        let settled: BTreeSet<u64> = self.events.iter().filter_map(|event| event.source_event_id).collect();
        self.events.iter().filter(move |event| !settled.contains(&event.event_id))
    }
}
