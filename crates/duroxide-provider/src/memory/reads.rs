//! Reads. Mailboxes are invisible to all but the queue depths and the snapshot; pending instances also to listings and
//! clients' status reads.

mod inspection;

use std::{collections::BTreeMap, ops::Bound};

use duroxide_core::{SystemStats, Timestamp};

use super::{MemoryEngine, MemoryTables};
use crate::{
    DeadLetter, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceQuery, InstanceSummary, QueueDepths,
    QueueSummary, QueuedWork, ScheduledActivityIdentifier, SummaryRequest, SystemMetrics, VersionTriple,
    rules::{InstanceRow, InstanceTable as _, LaneId, RUNNING, RouteId, identity_in_event},
    store::{
        EventRow, InstanceNeeds, ReadyActivity, ReadyInstance, RunningVersion, SelectedInstance,
        StoreFailure, StoreReader, StoreSnapshot, StoredDescriptor, StoredExecution, StoredNode,
        StoredStatus, pending_info,
    },
};

impl MemoryTables {
    fn known(&self, id: &str) -> Option<&InstanceRow> {
        self.instances.named(id).filter(|row| row.known)
    }

    fn is_pending(&self, row: &InstanceRow) -> bool {
        !row.known && self.messages.first_start(row.number).is_some()
    }

    fn known_rows(&self) -> impl Iterator<Item = &InstanceRow> {
        self.instances.iter().map(|(_, row)| row).filter(|row| row.known)
    }

    fn pinned_of(&self, row: &InstanceRow) -> Option<VersionTriple> {
        self.executions.get(&(row.number, row.execution_id)).and_then(|execution| execution.pinned)
    }

    fn first_event_of(&self, row: &InstanceRow) -> Option<&String> {
        self.events.first(row.number, row.execution_id)
    }

    fn info(&self, row: &InstanceRow) -> InstanceInfo {
        let (name, version) = match &row.name {
            Some(name) => (name.clone(), row.version.clone()),
            None => identity_in_event(self.first_event_of(row).map(AsRef::as_ref)),
        };
        InstanceInfo {
            instance_id: row.id.clone(),
            orchestration_name: name,
            orchestration_version: version.unwrap_or_default(),
            current_execution_id: row.execution_id,
            status: row.status.clone().unwrap_or_default(),
            output: self.current_execution(row).and_then(|execution| execution.output.clone()),
            created_at: row.created_at.as_millis(),
            updated_at: row.updated_at.as_millis(),
            parent_instance_id: row.parent.clone(),
        }
    }

    /// The entry of an instance in listings; `None` for a mailbox without a start.
    fn listed_info(&self, row: &InstanceRow) -> Option<InstanceInfo> {
        if row.known {
            return Some(self.info(row));
        }
        let start = self.messages.first_start(row.number)?;
        Some(pending_info(row.id.clone(), start.data(), row.created_at, row.updated_at))
    }

    /// Known and pending instances that the query selects, newest first.
    fn selected(&self, query: &InstanceQuery, below: Option<u64>) -> impl Iterator<Item = SelectedInstance> {
        let end = below.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.instances.range((Bound::Unbounded, end)).rev();
        let listed = rows.filter_map(|(number, row)| {
            Some(SelectedInstance { row: *number, info: self.listed_info(row)? })
        });
        listed.filter(|selected| query.matches(&selected.info))
    }
}

impl StoreReader for MemoryEngine {
    fn history(&mut self, instance: &str, execution_id: Option<u64>) -> Result<Vec<EventRow>, StoreFailure> {
        let Some(row) = self.tables().known(instance) else { return Ok(Vec::new()) };
        Ok(self.tables().events.rows(row.number, execution_id.unwrap_or(row.execution_id)))
    }

    fn load(&mut self, instance: &str, execution_id: u64) -> Result<StoredExecution, StoreFailure> {
        let tables = self.tables();
        let Some(row) = tables.known(instance) else { return Ok(StoredExecution::default()) };
        let events = tables.events.rows(row.number, execution_id);
        Ok(StoredExecution { events, kv: tables.kv.to_map(row.number) })
    }

    fn status(&mut self, instance: &str) -> Result<Option<StoredStatus>, StoreFailure> {
        let tables = self.tables();
        let Some(row) = tables.known(instance) else { return Ok(None) };
        let last_event = || tables.events.of(row.number, row.execution_id).next_back();
        let (custom_status, custom_status_version) =
            tables.custom_statuses.get(&row.number).cloned().unwrap_or_default();
        Ok(Some(StoredStatus {
            execution_id: row.execution_id,
            terminal_event: if row.is_running() { None } else { last_event().map(|(_, data)| data.clone()) },
            custom_status,
            custom_status_version,
        }))
    }

    fn status_or_pending(&mut self, instance: &str) -> Result<Option<StoredStatus>, StoreFailure> {
        let tables = self.tables();
        if tables.instances.named(instance).is_some_and(|row| tables.is_pending(row)) {
            return Ok(Some(StoredStatus::PENDING));
        }
        self.status(instance)
    }

    fn descriptor(&mut self, instance: &str) -> Result<Option<StoredDescriptor>, StoreFailure> {
        let known = self.tables().known(instance);
        let first_event = known.and_then(|row| self.tables().first_event_of(row)).cloned();
        Ok(first_event.map(|first_event| StoredDescriptor { first_event }))
    }

    fn last_event_id(&mut self, instance: &str, execution_id: u64) -> Result<Option<u64>, StoreFailure> {
        let Some(row) = self.tables().known(instance) else { return Ok(None) };
        Ok(self.tables().events.of(row.number, execution_id).next_back().map(|(event_id, _)| event_id))
    }

    fn custom_status(&mut self, instance: &str) -> Result<Option<(Option<String>, u64)>, StoreFailure> {
        let known = self.tables().known(instance);
        Ok(known.and_then(|row| self.tables().custom_statuses.get(&row.number)).cloned())
    }

    fn kv_value(&mut self, instance: &str, key: &str) -> Result<Option<String>, StoreFailure> {
        let known = self.tables().known(instance);
        Ok(known.and_then(|row| self.tables().kv_value(row.number, key)).map(str::to_owned))
    }

    fn kv_values(&mut self, instance: &str) -> Result<BTreeMap<String, String>, StoreFailure> {
        let known = self.tables().known(instance);
        Ok(known.map(|row| self.tables().kv_values(row.number)).unwrap_or_default())
    }

    fn stats(&mut self, instance: &str) -> Result<Option<SystemStats>, StoreFailure> {
        Ok(self.tables().known(instance).map(|row| {
            let (events, bytes) = self.tables().events.size(row.number, row.execution_id);
            let values = self.tables().kv_values(row.number);
            SystemStats {
                history_event_count: events,
                history_size_bytes: bytes,
                queue_pending_count: 0,
                kv_user_key_count: values.len() as u64,
                kv_total_value_bytes: values.values().map(|value| value.len() as u64).sum(),
            }
        }))
    }

    fn instances(&mut self, status: Option<&str>) -> Result<Vec<String>, StoreFailure> {
        let newest = self.tables().known_rows().collect::<Vec<_>>().into_iter().rev();
        let wanted = newest.filter(|row| status.is_none_or(|status| row.status.as_deref() == Some(status)));
        Ok(wanted.map(|row| row.id.clone()).collect())
    }

    fn select_instances(
        &mut self,
        query: &InstanceQuery,
        below: Option<u64>,
        max: usize,
    ) -> Result<Vec<SelectedInstance>, StoreFailure> {
        Ok(self.tables().selected(query, below).take(max).collect())
    }

    fn bulk_selection(
        &mut self,
        filter: &InstanceFilter,
        running_too: bool,
    ) -> Result<Vec<String>, StoreFailure> {
        let selected = self.rules.tables_mut().bulk_selection(filter, running_too)?;
        Ok(selected.into_iter().map(|(_, id)| id).collect())
    }

    fn mailbox_holds(&mut self, instance: &str, at_least: u64) -> Result<bool, StoreFailure> {
        let tables = self.tables();
        let number = tables.instances.find(instance);
        Ok(number.map_or(0, |number| tables.messages.sent_by_clients(number)) >= at_least)
    }

    fn executions(&mut self, instance: &str) -> Result<Vec<u64>, StoreFailure> {
        let Some(row) = self.tables().known(instance) else { return Ok(Vec::new()) };
        Ok(self.tables().executions.of(row.number).map(|(execution_id, _)| execution_id).collect())
    }

    fn current_execution(&mut self, instance: &str) -> Result<Option<u64>, StoreFailure> {
        Ok(self.tables().known(instance).map(|row| row.execution_id))
    }

    fn instance_info(&mut self, instance: &str) -> Result<Option<InstanceInfo>, StoreFailure> {
        Ok(self.tables().known(instance).map(|row| self.tables().info(row)))
    }

    fn execution_info(
        &mut self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Option<ExecutionInfo>, StoreFailure> {
        let tables = self.tables();
        let Some(row) = tables.known(instance) else { return Ok(None) };
        Ok(tables.executions.get(&(row.number, execution_id)).map(|execution| ExecutionInfo {
            execution_id,
            status: execution.status.clone(),
            output: execution.output.clone(),
            started_at: execution.started_at.as_millis(),
            completed_at: execution.completed_at.map(|at| at.as_millis()),
            event_count: usize::try_from(tables.events.size(row.number, execution_id).0).unwrap_or_default(),
        }))
    }

    fn system_metrics(&mut self) -> Result<SystemMetrics, StoreFailure> {
        let tables = self.tables();
        let mut metrics = SystemMetrics::default();
        for row in tables.known_rows() {
            metrics.total_instances += 1;
            for (execution_id, _) in tables.executions.of(row.number) {
                metrics.total_executions += 1;
                metrics.total_events += tables.events.size(row.number, execution_id).0;
            }
            match row.status.as_deref() {
                Some("Completed") => metrics.completed_instances += 1,
                Some("Failed") => metrics.failed_instances += 1,
                Some(RUNNING) => metrics.running_instances += 1,
                _ => {}
            }
        }
        Ok(metrics)
    }

    fn pending_instances(&mut self) -> Result<u64, StoreFailure> {
        let tables = self.tables();
        Ok(tables.instances.iter().filter(|(_, row)| tables.is_pending(row)).count() as u64)
    }

    fn queue_depths(&mut self) -> Result<QueueDepths, StoreFailure> {
        let (tables, now) = (self.tables(), self.rules.now());
        let mut messages = 0;
        for (number, row) in tables.instances.iter() {
            let live = row.lock.as_ref().filter(|lock| lock.lease.is_live(now));
            let is_free = |message: &&_| {
                live.is_none_or(|lock| !lock.extent.holds(super::tables::mailboxes::Message::row(message)))
            };
            messages += tables.messages.of(*number).filter(is_free).count();
        }
        let activities = tables.activities.iter().filter(|(_, activity)| !activity.is_locked(now)).count();
        Ok(QueueDepths { orchestrator_queue: messages, worker_queue: activities, timer_queue: 0 })
    }

    fn children(&mut self, instance: &str) -> Result<Vec<String>, StoreFailure> {
        let instances = &self.tables().instances;
        let children = instances.children(instance).filter_map(|number| instances.get(&number));
        Ok(children.map(|row| row.id.clone()).collect())
    }

    fn running_versions(&mut self) -> Result<Vec<RunningVersion>, StoreFailure> {
        let tables = self.tables();
        let running = tables.known_rows().filter(|row| row.status.as_deref() == Some(RUNNING));
        let version = |row: &InstanceRow| match tables.pinned_of(row) {
            Some(pinned) => Some(RunningVersion::Pinned(pinned)),
            None => tables
                .first_event_of(row)
                .map(|first| RunningVersion::Unpinned { first_event: first.clone() }),
        };
        Ok(running.filter_map(version).collect())
    }

    fn dead_letters(&mut self, limit: Option<u32>) -> Result<Vec<DeadLetter>, StoreFailure> {
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        Ok(self.tables().dead_letters.shown().take(limit).collect())
    }

    fn nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure> {
        Ok(self.tables().nodes.stored())
    }

    fn ready_instances(
        &mut self,
        wanted: &dyn Fn(&InstanceNeeds) -> bool,
        max: usize,
    ) -> Result<Vec<ReadyInstance>, StoreFailure> {
        let tables = self.tables();
        let needs = |RouteId(id): RouteId| {
            let route = tables.routes.value(id).cloned().unwrap_or_default();
            InstanceNeeds { name: route.name, version: route.version, pinned: route.pinned }
        };
        let routes =
            tables.instances.ready_routes().map(|id| (id, needs(id))).filter(|(_, needs)| wanted(needs));
        let on_route = |(id, needs): (RouteId, InstanceNeeds)| {
            let ready = tables.instances.ready_on(id).take(max);
            ready.map(move |(ready, number)| (ready, number, needs.clone()))
        };
        let mut ready: Vec<_> = routes.flat_map(on_route).collect();
        ready.sort_unstable_by_key(|(ready, ..)| *ready);
        let shown = ready.into_iter().take(max).filter_map(|(_, number, needs)| {
            let oldest = tables.messages.waiting_since(number, Timestamp::MAX).next();
            Some(ReadyInstance {
                instance: tables.instances.get(&number)?.id.clone(),
                needs,
                since: oldest.map(|message| message.row().waits_since()).unwrap_or_default(),
                cancel_requested: tables.messages.holds_cancellation(number),
            })
        });
        Ok(shown.collect())
    }

    fn ready_activities(
        &mut self,
        wanted: &dyn Fn(&str, Option<&str>) -> bool,
        max: usize,
    ) -> Result<Vec<ReadyActivity>, StoreFailure> {
        let tables = self.tables();
        let is_wanted = |LaneId(id): LaneId| {
            tables.lanes.value(id).is_some_and(|lane| wanted(&lane.name, lane.tag.as_deref()))
        };
        let lanes = tables.activities.ready_lanes().filter(|lane| is_wanted(*lane));
        let mut ready: Vec<u64> = lanes.flat_map(|lane| tables.activities.ready_in(lane).take(max)).collect();
        for (session, lane) in tables.activities.ready_session_lanes().filter(|(_, lane)| is_wanted(*lane)) {
            ready.extend(tables.activities.ready_in_session(&session, lane).take(max));
        }
        ready.sort_unstable();
        let shown = ready.iter().take(max).filter_map(|number| tables.activity_items.get(number));
        let shown = shown.map(|activity| ReadyActivity {
            id: ScheduledActivityIdentifier {
                instance: activity.instance.clone(),
                execution_id: activity.execution_id,
                activity_id: activity.activity_id,
            },
            name: activity.name.clone(),
            tag: activity.tag.clone(),
        });
        Ok(shown.collect())
    }

    fn queued_work(&mut self, instance: &str, now: Timestamp) -> Result<Option<QueuedWork>, StoreFailure> {
        Ok(self.tables().queued_work(instance, now))
    }

    fn instance_summary(&mut self, request: &SummaryRequest) -> Result<InstanceSummary, StoreFailure> {
        Ok(self.tables().instance_summary(request))
    }

    fn queue_summary(&mut self, now: Timestamp) -> Result<QueueSummary, StoreFailure> {
        Ok(self.tables().queue_summary(now))
    }

    fn snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure> {
        Ok(self.tables().snapshot(self.rules.now()))
    }
}
