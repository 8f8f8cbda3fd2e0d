//! Instances, their executions and key-values.

use std::collections::BTreeMap;

use duroxide_core::{Event, EventKind, INITIAL_EXECUTION_ID, KvEntry, Timestamp};

use super::{leases::Lock, mailbox::Message};
use crate::{
    ExecutionMetadata, InstanceInfo, Losses, VersionTriple,
    store::{
        Ended, EventRow, InstanceNeeds, MessageKind, PreparedExecution, PreparedRound, Refusal, StateChange,
        StoredStart, pending_info,
    },
};

/// An instance, or the mailbox of one that was never started.
#[derive(Debug, Clone, Default)]
pub(super) struct Instance {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) parent: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// The current execution.
    pub(super) execution_id: u64,
    pub(super) executions: BTreeMap<u64, Execution>,
    pub(super) lock: Option<Lock>,
    pub(super) may_be_poison: bool,
    pub(super) losses: Losses,
    /// By due time, then by number.
    pub(super) messages: Vec<Message>,
    /// The values that earlier executions left, and the changes of the current one; `None` marks a removed key.
    pub(super) kv: BTreeMap<String, KvEntry>,
    pub(super) kv_changes: BTreeMap<String, Option<KvEntry>>,
    pub(super) custom_status: Option<(Option<String>, u64)>,
    /// Its ready number, and the needs of a claim.
    pub(super) ready: Option<(u64, InstanceNeeds)>,
    /// The needs that its last claim accepted.
    pub(super) claimed_as: InstanceNeeds,
    /// Whether the next claim makes dead letters of its messages.
    pub(super) is_stray: bool,
    /// When to decide about it again.
    pub(super) look_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub(super) struct Execution {
    pub(super) status: String,
    pub(super) output: Option<String>,
    pub(super) pinned: Option<VersionTriple>,
    pub(super) turns: u64,
    pub(super) started_at: Timestamp,
    pub(super) completed_at: Option<Timestamp>,
    pub(super) events: BTreeMap<u64, String>,
}

impl Execution {
    fn begun(now: Timestamp) -> Self {
        Self {
            status: "Running".to_owned(),
            output: None,
            pinned: None,
            turns: 0,
            started_at: now,
            completed_at: None,
            events: BTreeMap::new(),
        }
    }

    /// Whether it is over, and does not only wait for its successor.
    pub(super) fn is_final(&self) -> bool {
        !matches!(self.status.as_str(), "Running" | "ContinuedAsNew")
    }

    pub(super) fn first_event(&self) -> Option<&String> {
        self.events.first_key_value().map(|(_, data)| data)
    }

    pub(super) fn last_event_id(&self) -> Option<u64> {
        self.events.last_key_value().map(|(id, _)| *id)
    }

    pub(super) fn rows(&self) -> Vec<EventRow> {
        self.events.iter().map(|(id, data)| EventRow { event_id: *id, data: data.clone() }).collect()
    }

    pub(super) fn completed_before(&self, millis: u64) -> bool {
        self.completed_at.is_some_and(|at| at < Timestamp::from_millis(millis))
    }
}

impl Instance {
    pub(super) fn mailbox(id: &str, now: Timestamp) -> Self {
        Self {
            id: id.to_owned(),
            execution_id: INITIAL_EXECUTION_ID,
            created_at: now,
            updated_at: now,
            ..Self::default()
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.name.is_some() || !self.executions.is_empty()
    }

    /// Whether its messages wait for a start that was not sent.
    pub(super) fn is_orphaned(&self) -> bool {
        !self.is_known() && !self.has_start()
    }

    pub(super) fn is_locked(&self, at: Timestamp) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_live(at))
    }

    pub(super) fn current(&self) -> Option<&Execution> {
        self.executions.get(&self.execution_id)
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_known() && !self.current().is_some_and(Execution::is_final)
    }

    /// The needs that a claim must accept.
    pub(super) fn route(&self, now: Timestamp) -> InstanceNeeds {
        let pinned = self.current().and_then(|current| current.pinned);
        let continues = self.target_of(MessageKind::ContinueAsNew, now);
        let start = if !self.is_known() {
            continues.or_else(|| self.target_of(MessageKind::Start, now))
        } else {
            continues.filter(|_| self.current().is_some_and(|current| current.status == "ContinuedAsNew"))
        };
        match start.cloned() {
            Some(start) => InstanceNeeds { name: Some(start.name), version: start.version, pinned },
            None => InstanceNeeds { name: self.name.clone(), version: self.version.clone(), pinned },
        }
    }

    /// Name and version. An instance that was never named has them in its first event.
    pub(super) fn identity(&self) -> (String, Option<String>) {
        if let Some(name) = &self.name {
            return (name.clone(), self.version.clone());
        }
        let first = self.current().and_then(Execution::first_event);
        match first.and_then(|data| serde_json::from_str::<Event>(data).ok()).map(|event| event.kind) {
            Some(EventKind::OrchestrationStarted { name, version, .. }) => (name, Some(version)),
            _ => (String::new(), None),
        }
    }

    pub(super) fn info(&self) -> InstanceInfo {
        let (orchestration_name, version) = self.identity();
        let current = self.current();
        InstanceInfo {
            instance_id: self.id.clone(),
            orchestration_name,
            orchestration_version: version.unwrap_or_default(),
            current_execution_id: self.execution_id,
            status: current.map(|current| current.status.clone()).unwrap_or_default(),
            output: current.and_then(|current| current.output.clone()),
            created_at: self.created_at.as_millis(),
            updated_at: self.updated_at.as_millis(),
            parent_instance_id: self.parent.clone(),
        }
    }

    /// Its entry in listings; `None` for a mailbox without a start.
    pub(super) fn listed_info(&self) -> Option<InstanceInfo> {
        if self.is_known() {
            return Some(self.info());
        }
        let start = self.first_start()?;
        Some(pending_info(self.id.clone(), &start.data, self.created_at, self.updated_at))
    }

    /// How it was started; `None` for a mailbox without a start.
    pub(super) fn stored_start(&self) -> Option<StoredStart> {
        if !self.is_known() {
            return self.first_start().map(|start| StoredStart::Queued(start.data.clone()));
        }
        let first = self.executions.get(&INITIAL_EXECUTION_ID).and_then(Execution::first_event);
        Some(first.cloned().map_or(StoredStart::Unknown, StoredStart::Recorded))
    }

    /// Refuses events whose id is stored, or that come twice.
    pub(super) fn check_new(&self, execution_id: u64, events: &[EventRow]) -> Result<(), Refusal> {
        let mut ids: Vec<u64> = match self.executions.get(&execution_id) {
            Some(execution) => execution.events.keys().copied().collect(),
            None => Vec::new(),
        };
        for event in events {
            if ids.contains(&event.event_id) {
                let (instance, event_id) = (self.id.clone(), event.event_id);
                return Err(Refusal::DuplicateEvent { instance, execution_id, event_id });
            }
            ids.push(event.event_id);
        }
        Ok(())
    }

    /// Stores the part of a round for one execution.
    pub(super) fn commit(&mut self, part: &PreparedExecution, now: Timestamp) {
        self.describe(&part.metadata, now);
        self.updated_at = now;
        if !self.is_known() && part.events.is_empty() {
            return;
        }
        self.append(part.execution_id, &part.events, &part.changes, now);
        let execution = self.executions.get_mut(&part.execution_id).unwrap();
        if let Some(version) = &part.metadata.pinned_duroxide_version {
            execution.pinned = Some(version.into());
        }
        if let Some(status) = &part.metadata.status {
            execution.status.clone_from(status);
            execution.output.clone_from(&part.metadata.output);
            execution.completed_at = (status != "Running").then_some(now);
            if status != "Running" {
                self.merge();
            }
        }
    }

    /// Takes name and version; both are needed to make an instance of a mailbox, and only then the parent counts.
    fn describe(&mut self, metadata: &ExecutionMetadata, now: Timestamp) {
        let (name, version) = (&metadata.orchestration_name, &metadata.orchestration_version);
        if self.name.is_none() {
            if name.is_none() || version.is_none() {
                return;
            }
            self.parent.clone_from(&metadata.parent_instance_id);
            self.created_at = now;
        }
        self.name = name.clone().or(self.name.take());
        self.version = version.clone().or(self.version.take());
    }

    /// Appends events to an execution, which begins if it is new, and applies their changes of state.
    pub(super) fn append(
        &mut self,
        execution_id: u64,
        events: &[EventRow],
        changes: &[StateChange],
        now: Timestamp,
    ) {
        if execution_id > self.execution_id {
            self.merge();
            self.execution_id = execution_id;
        }
        let execution = self.executions.entry(execution_id).or_insert_with(|| Execution::begun(now));
        execution.events.extend(events.iter().map(|event| (event.event_id, event.data.clone())));
        let mut custom_status = None;
        for change in changes {
            match change {
                StateChange::CustomStatus(status) => custom_status = Some(status.clone()),
                StateChange::KvSet { key, value, last_updated_at_ms } => {
                    let entry = KvEntry { value: value.clone(), last_updated_at_ms: *last_updated_at_ms };
                    self.kv_changes.insert(key.clone(), Some(entry));
                }
                StateChange::KvClear { key } => {
                    self.kv_changes.remove(key);
                    if self.kv.contains_key(key) {
                        self.kv_changes.insert(key.clone(), None);
                    }
                }
                StateChange::KvClearAll => {
                    self.kv_changes = self.kv.keys().map(|key| (key.clone(), None)).collect();
                }
            }
        }
        // The last one of a delta counts, and counts once.
        if let Some(status) = custom_status {
            let version = self.custom_status.as_ref().map_or(0, |(_, version)| *version);
            self.custom_status = Some((status, version + 1));
        }
    }

    /// An execution ended: merges its changes into the values that executions leave.
    fn merge(&mut self) {
        for (key, change) in std::mem::take(&mut self.kv_changes) {
            match change {
                Some(entry) => self.kv.insert(key, entry),
                None => self.kv.remove(&key),
            };
        }
    }

    pub(super) fn values(&self) -> BTreeMap<String, String> {
        let mut values = self.kv.clone();
        for (key, change) in &self.kv_changes {
            match change {
                Some(entry) => values.insert(key.clone(), entry.clone()),
                None => values.remove(key),
            };
        }
        values.into_iter().map(|(key, entry)| (key, entry.value)).collect()
    }

    /// The end, if this round, just stored, has ended the instance.
    pub(super) fn ended_by(&self, round: &PreparedRound) -> Option<Ended> {
        let part = &round.execution;
        if round.next.is_some() || part.metadata.status.is_none() || self.execution_id != part.execution_id {
            return None;
        }
        let end = part.events.iter().map(|event| event.event_id).max()?;
        self.current().filter(|execution| execution.is_final() && execution.last_event_id() == Some(end))?;
        let (custom_status, custom_status_version) = self.custom_status.clone().unwrap_or_default();
        Some(Ended { custom_status, custom_status_version })
    }
}
