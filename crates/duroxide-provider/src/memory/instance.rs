use std::collections::{BTreeMap, BTreeSet};

use duroxide_core::{Event, EventKind, INITIAL_EXECUTION_ID, Timestamp};

use super::{
    activities::ActivityKey,
    history::{CONTINUED_AS_NEW, Execution},
    key_values::KeyValues,
    lock::Lock,
    mailbox::Mailbox,
    record::{Changes, InstanceRecord},
    route::Route,
};
use crate::{
    ExecutionMetadata, InstanceInfo, Losses,
    store::{
        Ended, EventRow, MessageKind, PreparedExecution, PreparedRound, Refusal, StartTarget, StateChange,
        StoredStart, pending_info,
    },
};

/// One instance, or the mailbox of one that was never started.
#[derive(Debug, Clone, Default)]
pub(super) struct Instance {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    /// The current execution.
    pub(super) execution_id: u64,
    pub(super) executions: BTreeMap<u64, Execution>,
    pub(super) lock: Option<Lock>,
    /// Whether a claim followed an ended lease, or an abandon was counted, since the last healthy commit.
    pub(super) suspect: bool,
    pub(super) losses: Losses,
    pub(super) mailbox: Mailbox,
    /// Queued activities by execution and activity id.
    pub(super) activities: BTreeMap<(u64, u64), ActivityKey>,
    pub(super) kv: KeyValues,
    pub(super) custom_status: Option<(Option<String>, u64)>,
    /// Executions that changed since the changes were last taken.
    pub(super) touched_executions: BTreeSet<u64>,
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

    /// Whether it was ever started. Everything else is a mailbox.
    pub(super) fn is_known(&self) -> bool {
        self.name.is_some() || !self.executions.is_empty()
    }

    pub(super) fn is_empty_mailbox(&self) -> bool {
        !self.is_known() && self.mailbox.is_empty() && self.activities.is_empty()
    }

    pub(super) fn is_locked(&self, at: Timestamp) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_live(at))
    }

    /// Whether it may be poison. A lock that is left on an instance that can be claimed has ended: its turn may have
    /// crashed its process.
    pub(super) fn is_suspect(&self) -> bool {
        self.suspect || self.lock.is_some()
    }

    pub(super) fn has_work(&self, now: Timestamp) -> bool {
        if self.is_known() { self.mailbox.has_visible(now) } else { self.mailbox.has_visible_start(now) }
    }

    /// Whether its messages wait for a start that nobody has sent.
    pub(super) fn is_orphaned(&self) -> bool {
        !self.is_known() && !self.mailbox.has_start()
    }

    /// Whether it is not known and its start is queued.
    pub(super) fn is_pending(&self) -> bool {
        !self.is_known() && self.mailbox.has_start()
    }

    pub(super) fn current(&self) -> Option<&Execution> {
        self.executions.get(&self.execution_id)
    }

    /// Whether it has not ended. One that waits for its successor has not.
    pub(super) fn is_running(&self) -> bool {
        self.is_known() && !self.current().is_some_and(Execution::is_final)
    }

    pub(super) fn route(&self, now: Timestamp) -> Route {
        let pinned = self.current().and_then(Execution::pinned);
        match self.next_start(now) {
            Some(target) => {
                Route { name: Some(target.name.clone()), version: target.version.clone(), pinned }
            }
            None => Route { name: self.name.clone(), version: self.version.clone(), pinned },
        }
    }

    /// The visible start that decides which handler is needed next, if one does.
    fn next_start(&self, now: Timestamp) -> Option<&StartTarget> {
        let continues = self.mailbox.start_target(MessageKind::ContinueAsNew, now);
        if !self.is_known() {
            return continues.or_else(|| self.mailbox.start_target(MessageKind::Start, now));
        }
        continues.filter(|_| self.current().is_some_and(|current| current.status() == CONTINUED_AS_NEW))
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
        InstanceInfo {
            instance_id: self.id.clone(),
            orchestration_name,
            orchestration_version: version.unwrap_or_default(),
            current_execution_id: self.execution_id,
            status: self.current().map(|current| current.status().to_owned()).unwrap_or_default(),
            output: self.current().and_then(Execution::output).cloned(),
            created_at: self.created_at.as_millis(),
            updated_at: self.updated_at.as_millis(),
            parent_instance_id: self.parent.clone(),
        }
    }

    /// How it was started; `None` for a mailbox without a start.
    pub(super) fn stored_start(&self) -> Option<StoredStart> {
        if !self.is_known() {
            return self.mailbox.first_start().map(|start| StoredStart::Queued(start.data.clone()));
        }
        let first = self.executions.get(&INITIAL_EXECUTION_ID).and_then(Execution::first_event);
        Some(first.cloned().map_or(StoredStart::Unknown, StoredStart::Recorded))
    }

    /// What listings show of it: nothing of a mailbox without a start.
    pub(super) fn listed_info(&self) -> Option<InstanceInfo> {
        if self.is_known() {
            return Some(self.info());
        }
        let start = self.mailbox.first_start()?;
        Some(pending_info(self.id.clone(), &start.data, self.created_at, self.updated_at))
    }

    pub(super) fn record(&self, number: u64, ready: Option<u64>) -> InstanceRecord {
        InstanceRecord {
            instance: self.id.clone(),
            number,
            name: self.name.clone(),
            version: self.version.clone(),
            parent: self.parent.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            execution_id: self.execution_id,
            lock: self.lock.as_ref().map(Lock::record),
            suspect: self.suspect,
            losses: self.losses,
            ready,
            custom_status: self.custom_status.clone(),
            kv: self.kv.left().clone(),
            kv_changes: self.kv.changes().clone(),
        }
    }

    /// Brings back an instance that was kept elsewhere, without what belongs to it.
    pub(super) fn restore(record: InstanceRecord) -> Self {
        Self {
            id: record.instance,
            name: record.name,
            version: record.version,
            parent: record.parent,
            created_at: record.created_at,
            updated_at: record.updated_at,
            execution_id: record.execution_id,
            lock: record.lock.map(Lock::restore),
            suspect: record.suspect,
            losses: record.losses,
            custom_status: record.custom_status,
            kv: KeyValues::restore(record.kv, record.kv_changes),
            ..Self::default()
        }
    }

    /// Adds what changed in its executions and its mailbox since this was last called.
    pub(super) fn take_changes(&mut self, changes: &mut Changes) {
        for id in std::mem::take(&mut self.touched_executions) {
            match self.executions.get_mut(&id) {
                Some(execution) => {
                    let events = execution.take_appended();
                    if !events.is_empty() {
                        changes.appended.push((self.id.clone(), id, events));
                    }
                    changes.executions.push(execution.record(&self.id, id));
                }
                None => changes.removed_executions.push((self.id.clone(), id)),
            }
        }
        self.mailbox.take_changes(&self.id, &mut changes.messages);
    }

    pub(super) fn forget_changes(&mut self) {
        for id in std::mem::take(&mut self.touched_executions) {
            if let Some(execution) = self.executions.get_mut(&id) {
                execution.forget_appended();
            }
        }
        self.mailbox.forget_changes();
    }

    /// Refuses events whose id is already stored, or that come twice.
    pub(super) fn check_new_events(&self, execution_id: u64, events: &[EventRow]) -> Result<(), Refusal> {
        let stored = self.executions.get(&execution_id);
        let mut seen = std::collections::BTreeSet::new();
        let duplicate = events.iter().find(|event| {
            !seen.insert(event.event_id) || stored.is_some_and(|stored| stored.has_event(event.event_id))
        });
        match duplicate {
            Some(event) => Err(Refusal::DuplicateEvent {
                instance: self.id.clone(),
                execution_id,
                event_id: event.event_id,
            }),
            None => Ok(()),
        }
    }

    /// Stores what a round did to one execution.
    pub(super) fn commit(&mut self, part: &PreparedExecution, now: Timestamp) {
        self.describe(&part.metadata, now);
        if self.is_known() || !part.events.is_empty() {
            self.append(part.execution_id, &part.events, &part.changes, now);
            self.settle(part.execution_id, &part.metadata, now);
        }
        self.updated_at = now;
    }

    /// What is known of its end, if this round, just stored, has made it.
    pub(super) fn ended_by(&self, round: &PreparedRound) -> Option<Ended> {
        let end = round.end().filter(|_| self.execution_id == round.execution.execution_id)?;
        self.current().filter(|execution| execution.is_final() && execution.last_event_id() == Some(end))?;
        let (custom_status, custom_status_version) = self.custom_status.clone().unwrap_or_default();
        Some(Ended { custom_status, custom_status_version })
    }

    /// Appends events to an execution, which begins if it is new.
    pub(super) fn append(
        &mut self,
        execution_id: u64,
        events: &[EventRow],
        changes: &[StateChange],
        now: Timestamp,
    ) {
        if execution_id > self.execution_id {
            self.kv.merge();
            self.execution_id = execution_id;
        }
        self.touched_executions.insert(execution_id);
        self.executions.entry(execution_id).or_insert_with(|| Execution::new(now)).append(events);
        changes.iter().for_each(|change| self.kv.apply(change));
        self.set_custom_status(changes);
    }

    /// The last status of a delta counts, and raises the version by one (semantics 12.1).
    fn set_custom_status(&mut self, changes: &[StateChange]) {
        let last = changes.iter().rev().find_map(|change| match change {
            StateChange::CustomStatus(status) => Some(status.clone()),
            _ => None,
        });
        if let Some(status) = last {
            let version = self.custom_status.as_ref().map_or(0, |(_, version)| *version);
            self.custom_status = Some((status, version + 1));
        }
    }

    fn settle(&mut self, execution_id: u64, metadata: &ExecutionMetadata, now: Timestamp) {
        let Some(execution) = self.executions.get_mut(&execution_id) else { return };
        self.touched_executions.insert(execution_id);
        execution.describe(metadata, now);
        if metadata.status.is_some() && execution.status() != super::history::RUNNING {
            self.kv.merge();
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
        if name.is_some() {
            self.name.clone_from(name);
        }
        if version.is_some() {
            self.version.clone_from(version);
        }
    }
}
