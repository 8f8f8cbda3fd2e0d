//! Reads. Mailboxes are invisible to all but the queue depths and the snapshot; pending instances also to listings and
//! clients' status reads.

use std::collections::BTreeMap;

use duroxide_core::SystemStats;

use super::{MemoryEngine, history::Execution, instance::Instance, instances::InstanceKey};
use crate::{
    DeadLetter, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceQuery, QueueDepths,
    ScheduledActivityIdentifier, SystemMetrics,
    store::{
        EventRow, InstanceNeeds, ReadyActivity, ReadyInstance, RunningVersion, SelectedInstance,
        StoreFailure, StoreReader, StoreSnapshot, StoredDescriptor, StoredExecution, StoredNode,
        StoredStatus,
    },
};

impl MemoryEngine {
    fn execution(&self, instance: &str, execution_id: u64) -> Option<&Execution> {
        self.instances.known(instance)?.executions.get(&execution_id)
    }

    /// Rows that no live lock holds.
    fn unlocked_messages(&self, instance: &Instance) -> usize {
        let locked = if instance.is_locked(self.now) { instance.mailbox.locked_len() } else { 0 };
        instance.mailbox.len() - locked
    }

    /// Known and pending instances that the query selects, newest first.
    fn selected<'a>(
        &'a self,
        query: &'a InstanceQuery,
        below: Option<InstanceKey>,
    ) -> impl Iterator<Item = (InstanceKey, InstanceInfo)> + 'a {
        let rows = self.instances.below(below).rev();
        let listed = rows.filter_map(|(key, row)| Some((key, row.listed_info()?)));
        listed.filter(|(_, info)| query.matches(info))
    }
}

impl StoreReader for MemoryEngine {
    fn history(&mut self, instance: &str, execution_id: Option<u64>) -> Result<Vec<EventRow>, StoreFailure> {
        let known = self.instances.known(instance);
        let execution = known.and_then(|row| row.executions.get(&execution_id.unwrap_or(row.execution_id)));
        Ok(execution.map(Execution::events).unwrap_or_default())
    }

    fn load(&mut self, instance: &str, execution_id: u64) -> Result<StoredExecution, StoreFailure> {
        let Some(row) = self.instances.known(instance) else { return Ok(StoredExecution::default()) };
        let events = row.executions.get(&execution_id).map(Execution::events).unwrap_or_default();
        Ok(StoredExecution { events, kv: row.kv.left().clone() })
    }

    fn status(&mut self, instance: &str) -> Result<Option<StoredStatus>, StoreFailure> {
        let Some(row) = self.instances.known(instance) else { return Ok(None) };
        let terminal = row.current().filter(|execution| execution.is_final());
        let (custom_status, custom_status_version) = row.custom_status.clone().unwrap_or_default();
        Ok(Some(StoredStatus {
            execution_id: row.execution_id,
            terminal_event: terminal.and_then(Execution::last_event).cloned(),
            custom_status,
            custom_status_version,
        }))
    }

    fn status_or_pending(&mut self, instance: &str) -> Result<Option<StoredStatus>, StoreFailure> {
        let row = self.instances.find(instance).and_then(|key| self.instances.get(key));
        if row.is_some_and(Instance::is_pending) {
            return Ok(Some(StoredStatus::PENDING));
        }
        self.status(instance)
    }

    fn descriptor(&mut self, instance: &str) -> Result<Option<StoredDescriptor>, StoreFailure> {
        let current = self.instances.known(instance).and_then(Instance::current);
        let first_event = current.and_then(Execution::first_event).cloned();
        Ok(first_event.map(|first_event| StoredDescriptor { first_event }))
    }

    fn last_event_id(&mut self, instance: &str, execution_id: u64) -> Result<Option<u64>, StoreFailure> {
        Ok(self.execution(instance, execution_id).and_then(Execution::last_event_id))
    }

    fn custom_status(&mut self, instance: &str) -> Result<Option<(Option<String>, u64)>, StoreFailure> {
        Ok(self.instances.known(instance).and_then(|row| row.custom_status.clone()))
    }

    fn kv_value(&mut self, instance: &str, key: &str) -> Result<Option<String>, StoreFailure> {
        Ok(self.instances.known(instance).and_then(|row| row.kv.value(key)).map(str::to_owned))
    }

    fn kv_values(&mut self, instance: &str) -> Result<BTreeMap<String, String>, StoreFailure> {
        Ok(self.instances.known(instance).map(|row| row.kv.values()).unwrap_or_default())
    }

    fn stats(&mut self, instance: &str) -> Result<Option<SystemStats>, StoreFailure> {
        Ok(self.instances.known(instance).map(|row| {
            let values = row.kv.values();
            SystemStats {
                history_event_count: row.current().map_or(0, Execution::event_count),
                history_size_bytes: row.current().map_or(0, Execution::event_bytes),
                queue_pending_count: 0,
                kv_user_key_count: values.len() as u64,
                kv_total_value_bytes: values.values().map(|value| value.len() as u64).sum(),
            }
        }))
    }

    fn instances(&mut self, status: Option<&str>) -> Result<Vec<String>, StoreFailure> {
        let query = InstanceQuery { status: status.map(str::to_owned), ..InstanceQuery::default() };
        let known = self.selected(&query, None).filter(|(_, info)| info.status != InstanceQuery::PENDING);
        Ok(known.map(|(_, info)| info.instance_id).collect())
    }

    fn select_instances(
        &mut self,
        query: &InstanceQuery,
        below: Option<u64>,
        max: usize,
    ) -> Result<Vec<SelectedInstance>, StoreFailure> {
        let selected = self.selected(query, below.map(InstanceKey)).take(max);
        Ok(selected.map(|(key, info)| SelectedInstance { row: key.0, info }).collect())
    }

    fn bulk_selection(
        &mut self,
        filter: &InstanceFilter,
        running_too: bool,
    ) -> Result<Vec<String>, StoreFailure> {
        Ok(self.selected_ids(filter, running_too))
    }

    fn mailbox_holds(&mut self, instance: &str, at_least: u64) -> Result<bool, StoreFailure> {
        let row = self.instances.find(instance).and_then(|key| self.instances.get(key));
        Ok(row.map_or(0, |row| row.mailbox.sent_by_clients()) >= at_least)
    }

    fn executions(&mut self, instance: &str) -> Result<Vec<u64>, StoreFailure> {
        let known = self.instances.known(instance);
        Ok(known.map(|row| row.executions.keys().copied().collect()).unwrap_or_default())
    }

    fn current_execution(&mut self, instance: &str) -> Result<Option<u64>, StoreFailure> {
        Ok(self.instances.known(instance).map(|row| row.execution_id))
    }

    fn instance_info(&mut self, instance: &str) -> Result<Option<InstanceInfo>, StoreFailure> {
        Ok(self.instances.known(instance).map(Instance::info))
    }

    fn execution_info(
        &mut self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Option<ExecutionInfo>, StoreFailure> {
        Ok(self.execution(instance, execution_id).map(|execution| execution.info(execution_id)))
    }

    fn system_metrics(&mut self) -> Result<SystemMetrics, StoreFailure> {
        let mut metrics = SystemMetrics::default();
        for (_, row) in self.instances.iter().filter(|(_, row)| row.is_known()) {
            metrics.total_instances += 1;
            metrics.total_executions += row.executions.len() as u64;
            metrics.total_events += row.executions.values().map(Execution::event_count).sum::<u64>();
            match row.current().map(Execution::status) {
                Some("Completed") => metrics.completed_instances += 1,
                Some("Failed") => metrics.failed_instances += 1,
                Some("Running") => metrics.running_instances += 1,
                _ => {}
            }
        }
        Ok(metrics)
    }

    fn pending_instances(&mut self) -> Result<u64, StoreFailure> {
        Ok(self.instances.iter().filter(|(_, row)| row.is_pending()).count() as u64)
    }

    fn queue_depths(&mut self) -> Result<QueueDepths, StoreFailure> {
        let messages = self.instances.iter().map(|(_, row)| self.unlocked_messages(row)).sum();
        let activities = self.activities.iter().filter(|activity| !activity.is_locked(self.now)).count();
        Ok(QueueDepths { orchestrator_queue: messages, worker_queue: activities, timer_queue: 0 })
    }

    fn children(&mut self, instance: &str) -> Result<Vec<String>, StoreFailure> {
        let children = self.instances.children(instance).filter_map(|key| self.instances.get(key));
        Ok(children.map(|row| row.id.clone()).collect())
    }

    fn running_versions(&mut self) -> Result<Vec<RunningVersion>, StoreFailure> {
        let current = self.instances.iter().filter_map(|(_, row)| row.current());
        let running = current.filter(|execution| execution.status() == super::history::RUNNING);
        let version = |execution: &Execution| match execution.pinned() {
            Some(pinned) => Some(RunningVersion::Pinned(pinned)),
            None => {
                execution.first_event().map(|first| RunningVersion::Unpinned { first_event: first.clone() })
            }
        };
        Ok(running.filter_map(version).collect())
    }

    fn ready_instances(
        &mut self,
        wanted: &dyn Fn(&InstanceNeeds) -> bool,
        max: usize,
    ) -> Result<Vec<ReadyInstance>, StoreFailure> {
        let ready = self.instances.ready_where(wanted).map(|(needs, instance)| ReadyInstance {
            instance: instance.id.clone(),
            needs,
            since: instance.mailbox.oldest().unwrap_or_default(),
            cancel_requested: instance.mailbox.holds_cancellation(),
        });
        Ok(ready.take(max).collect())
    }

    fn ready_activities(
        &mut self,
        wanted: &dyn Fn(&str, Option<&str>) -> bool,
        max: usize,
    ) -> Result<Vec<ReadyActivity>, StoreFailure> {
        let ready = self.activities.ready_where(wanted).map(|activity| ReadyActivity {
            id: ScheduledActivityIdentifier {
                instance: activity.row.instance.clone(),
                execution_id: activity.row.execution_id,
                activity_id: activity.row.activity_id,
            },
            name: activity.row.name.clone(),
            tag: activity.row.tag.clone(),
        });
        Ok(ready.take(max).collect())
    }

    fn nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure> {
        Ok(self.nodes.stored())
    }

    fn dead_letters(&mut self, limit: Option<u32>) -> Result<Vec<DeadLetter>, StoreFailure> {
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        Ok(self.dead_letters.iter().take(limit).cloned().collect())
    }

    fn snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure> {
        Ok(self.to_snapshot())
    }
}
