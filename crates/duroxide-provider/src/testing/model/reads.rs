//! Reads. Mailboxes are invisible to all but the queue depths and the snapshot; pending instances also to listings and
//! clients' status reads.

use std::collections::BTreeMap;

use duroxide_core::{SystemStats, Timestamp};

use super::{
    ModelEngine,
    instance::{Execution, Instance},
    leases::Lock,
    mailbox::Message,
};
use crate::{
    DeadLetter, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceQuery, InstanceSummary, QueueDepths,
    QueueSummary, QueuedWork, ScheduledActivityIdentifier, SummaryRequest, SystemMetrics,
    store::{
        CANCELLATION, EventRow, ExecutionSnapshot, InstanceNeeds, InstanceSnapshot, ReadyActivity,
        ReadyInstance, RunningVersion, SelectedInstance, StoreFailure, StoreReader, StoreSnapshot,
        StoredDescriptor, StoredExecution, StoredNode, StoredStatus,
    },
};

impl ModelEngine {
    fn known_ones(&self) -> impl DoubleEndedIterator<Item = &Instance> {
        self.instances.values().filter(|instance| instance.is_known())
    }

    fn instance_snapshot(&self, key: u64, row: &Instance) -> InstanceSnapshot {
        let execution = |(execution_id, row): (&u64, &Execution)| ExecutionSnapshot {
            execution_id: *execution_id,
            status: row.status.clone(),
            output: row.output.clone(),
            pinned: row.pinned,
            turns: row.turns,
            events: row.rows(),
        };
        let activities = self.activities.values().filter(|activity| activity.instance == key);
        InstanceSnapshot {
            instance: row.id.clone(),
            name: row.name.clone(),
            version: row.version.clone(),
            parent: row.parent.clone(),
            execution_id: row.execution_id,
            lock: row.lock.as_ref().map(Lock::snapshot),
            custom_status: row.custom_status.clone(),
            executions: row.executions.iter().map(execution).collect(),
            messages: row.messages.iter().map(|message| message.snapshot(self.now)).collect(),
            activities: activities.map(|activity| activity.snapshot(self.now)).collect(),
            kv: row.kv.clone(),
            kv_changes: row.kv_changes.clone(),
        }
    }
}

impl StoreReader for ModelEngine {
    fn history(&mut self, instance: &str, execution_id: Option<u64>) -> Result<Vec<EventRow>, StoreFailure> {
        let execution_id = execution_id.or_else(|| Some(self.known(instance)?.execution_id));
        Ok(execution_id.map(|id| self.load(instance, id)).transpose()?.unwrap_or_default().events)
    }

    fn load(&mut self, instance: &str, execution_id: u64) -> Result<StoredExecution, StoreFailure> {
        let Some(row) = self.known(instance) else { return Ok(StoredExecution::default()) };
        let events = row.executions.get(&execution_id).map(Execution::rows).unwrap_or_default();
        Ok(StoredExecution { events, kv: row.kv.clone() })
    }

    fn status(&mut self, instance: &str) -> Result<Option<StoredStatus>, StoreFailure> {
        let Some(row) = self.known(instance) else { return Ok(None) };
        let ended = row.current().filter(|execution| execution.is_final());
        let last_event = ended.and_then(|execution| execution.events.values().next_back());
        let (custom_status, custom_status_version) = row.custom_status.clone().unwrap_or_default();
        Ok(Some(StoredStatus {
            execution_id: row.execution_id,
            terminal_event: last_event.cloned(),
            custom_status,
            custom_status_version,
        }))
    }

    fn status_or_pending(&mut self, instance: &str) -> Result<Option<StoredStatus>, StoreFailure> {
        let row = self.find(instance).map(|key| &self.instances[&key]);
        if row.is_some_and(|row| !row.is_known() && row.has_start()) {
            return Ok(Some(StoredStatus::PENDING));
        }
        self.status(instance)
    }

    fn descriptor(&mut self, instance: &str) -> Result<Option<StoredDescriptor>, StoreFailure> {
        let first_event = self.known(instance).and_then(Instance::current).and_then(Execution::first_event);
        Ok(first_event.map(|first_event| StoredDescriptor { first_event: first_event.clone() }))
    }

    fn last_event_id(&mut self, instance: &str, execution_id: u64) -> Result<Option<u64>, StoreFailure> {
        Ok(self.known(instance).and_then(|row| row.executions.get(&execution_id)?.last_event_id()))
    }

    fn custom_status(&mut self, instance: &str) -> Result<Option<(Option<String>, u64)>, StoreFailure> {
        Ok(self.known(instance).and_then(|row| row.custom_status.clone()))
    }

    fn kv_value(&mut self, instance: &str, key: &str) -> Result<Option<String>, StoreFailure> {
        Ok(self.kv_values(instance)?.remove(key))
    }

    fn kv_values(&mut self, instance: &str) -> Result<BTreeMap<String, String>, StoreFailure> {
        Ok(self.known(instance).map(Instance::values).unwrap_or_default())
    }

    fn stats(&mut self, instance: &str) -> Result<Option<SystemStats>, StoreFailure> {
        Ok(self.known(instance).map(|row| {
            let (events, values) = (row.current().map(|row| &row.events), row.values());
            SystemStats {
                history_event_count: events.map_or(0, |events| events.len() as u64),
                history_size_bytes: events
                    .map_or(0, |rows| rows.values().map(|data| data.len() as u64).sum()),
                queue_pending_count: 0,
                kv_user_key_count: values.len() as u64,
                kv_total_value_bytes: values.values().map(|value| value.len() as u64).sum(),
            }
        }))
    }

    fn instances(&mut self, status: Option<&str>) -> Result<Vec<String>, StoreFailure> {
        let wanted = |row: &&Instance| status.is_none_or(|status| row.info().status == status);
        Ok(self.known_ones().rev().filter(wanted).map(|row| row.id.clone()).collect())
    }

    fn select_instances(
        &mut self,
        query: &InstanceQuery,
        below: Option<u64>,
        max: usize,
    ) -> Result<Vec<SelectedInstance>, StoreFailure> {
        let rows = self.instances.iter().rev().filter(|(key, _)| below.is_none_or(|below| **key < below));
        let listed = rows.filter_map(|(key, row)| Some((*key, row.listed_info()?)));
        let selected = listed.filter(|(_, info)| query.matches(info)).take(max);
        Ok(selected.map(|(row, info)| SelectedInstance { row, info }).collect())
    }

    fn bulk_selection(
        &mut self,
        filter: &InstanceFilter,
        running_too: bool,
    ) -> Result<Vec<String>, StoreFailure> {
        let keys = self.select(filter, running_too);
        Ok(keys.iter().map(|key| self.instances[key].id.clone()).collect())
    }

    fn mailbox_holds(&mut self, instance: &str, at_least: u64) -> Result<bool, StoreFailure> {
        let sent = self.find(instance).map_or(0, |key| self.instances[&key].sent_by_clients());
        Ok(sent as u64 >= at_least)
    }

    fn executions(&mut self, instance: &str) -> Result<Vec<u64>, StoreFailure> {
        Ok(self.known(instance).map(|row| row.executions.keys().copied().collect()).unwrap_or_default())
    }

    fn current_execution(&mut self, instance: &str) -> Result<Option<u64>, StoreFailure> {
        Ok(self.known(instance).map(|row| row.execution_id))
    }

    fn instance_info(&mut self, instance: &str) -> Result<Option<InstanceInfo>, StoreFailure> {
        Ok(self.known(instance).map(Instance::info))
    }

    fn execution_info(
        &mut self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Option<ExecutionInfo>, StoreFailure> {
        let execution = self.known(instance).and_then(|row| row.executions.get(&execution_id));
        Ok(execution.map(|row| ExecutionInfo {
            execution_id,
            status: row.status.clone(),
            output: row.output.clone(),
            started_at: row.started_at.as_millis(),
            completed_at: row.completed_at.map(|at| at.as_millis()),
            event_count: row.events.len(),
        }))
    }

    fn system_metrics(&mut self) -> Result<SystemMetrics, StoreFailure> {
        let mut metrics = SystemMetrics::default();
        for row in self.known_ones() {
            metrics.total_instances += 1;
            metrics.total_executions += row.executions.len() as u64;
            metrics.total_events += row.executions.values().map(|row| row.events.len() as u64).sum::<u64>();
            match row.info().status.as_str() {
                "Completed" => metrics.completed_instances += 1,
                "Failed" => metrics.failed_instances += 1,
                "Running" => metrics.running_instances += 1,
                _ => {}
            }
        }
        Ok(metrics)
    }

    fn pending_instances(&mut self) -> Result<u64, StoreFailure> {
        Ok(self.instances.values().filter(|row| !row.is_known() && row.has_start()).count() as u64)
    }

    fn queue_depths(&mut self) -> Result<QueueDepths, StoreFailure> {
        let unlocked = |row: &Instance| {
            let is_live = row.is_locked(self.now);
            row.messages.iter().filter(|message| !(is_live && message.locked)).count()
        };
        Ok(QueueDepths {
            orchestrator_queue: self.instances.values().map(unlocked).sum(),
            worker_queue: self.activities.values().filter(|row| !row.is_locked(self.now)).count(),
            timer_queue: 0,
        })
    }

    fn children(&mut self, instance: &str) -> Result<Vec<String>, StoreFailure> {
        let children = self.instances.values().filter(|row| row.parent.as_deref() == Some(instance));
        Ok(children.map(|row| row.id.clone()).collect())
    }

    fn running_versions(&mut self) -> Result<Vec<RunningVersion>, StoreFailure> {
        let current = self.instances.values().filter_map(Instance::current);
        let running = current.filter(|execution| execution.status == "Running");
        let version = |execution: &Execution| match execution.pinned {
            Some(pinned) => Some(RunningVersion::Pinned(pinned)),
            None => {
                execution.first_event().map(|first| RunningVersion::Unpinned { first_event: first.clone() })
            }
        };
        Ok(running.filter_map(version).collect())
    }

    fn dead_letters(&mut self, limit: Option<u32>) -> Result<Vec<DeadLetter>, StoreFailure> {
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        Ok(self.dead_letters.values().map(|letter| letter.shown.clone()).take(limit).collect())
    }

    fn nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure> {
        Ok(self.stored_nodes())
    }

    fn ready_instances(
        &mut self,
        wanted: &dyn Fn(&InstanceNeeds) -> bool,
        max: usize,
    ) -> Result<Vec<ReadyInstance>, StoreFailure> {
        let ready = self.instances.values().filter_map(|row| Some((row.ready.clone()?, row)));
        let mut ready: Vec<_> = ready.filter(|((_, needs), _)| wanted(needs)).collect();
        ready.sort_by_key(|((place, _), _)| *place);
        let shown = ready.into_iter().take(max).map(|((_, needs), row)| ReadyInstance {
            instance: row.id.clone(),
            needs,
            since: row.messages.iter().map(Message::age).min().unwrap_or_default(),
            cancel_requested: row.messages.iter().any(|message| message.data.starts_with(CANCELLATION)),
        });
        Ok(shown.collect())
    }

    fn ready_activities(
        &mut self,
        wanted: &dyn Fn(&str, Option<&str>) -> bool,
        max: usize,
    ) -> Result<Vec<ReadyActivity>, StoreFailure> {
        let ready = self.activities.values().filter(|activity| activity.waits_until.is_none());
        let rows = ready.map(|activity| activity.row.clone());
        let wanted = rows.filter(|row| wanted(&row.name, row.tag.as_deref())).take(max);
        let shown = wanted.map(|row| ReadyActivity {
            id: ScheduledActivityIdentifier {
                instance: row.instance,
                execution_id: row.execution_id,
                activity_id: row.activity_id,
            },
            name: row.name,
            tag: row.tag,
        });
        Ok(shown.collect())
    }

    fn queued_work(&mut self, instance: &str, now: Timestamp) -> Result<Option<QueuedWork>, StoreFailure> {
        Ok(self.show_work(instance, now))
    }

    fn instance_summary(&mut self, request: &SummaryRequest) -> Result<InstanceSummary, StoreFailure> {
        Ok(self.summarize(request))
    }

    fn queue_summary(&mut self, now: Timestamp) -> Result<QueueSummary, StoreFailure> {
        Ok(self.summarize_queues(now))
    }

    fn snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure> {
        let mut rows: Vec<_> =
            self.instances.iter().map(|(key, row)| self.instance_snapshot(*key, row)).collect();
        rows.sort_by(|one, other| one.instance.cmp(&other.instance));
        Ok(StoreSnapshot { taken_at: self.now, instances: rows, dead_letters: self.dead_letters(None)? })
    }
}
