//! The reads of a store engine.

use std::collections::BTreeMap;

use duroxide_core::{SystemStats, Timestamp};
use duroxide_provider::{
    DeadLetter, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceQuery, InstanceSummary, QueueDepths,
    QueueSummary, QueuedWork, SummaryRequest, SystemMetrics,
    store::{
        EventRow, InstanceNeeds, ReadyActivity, ReadyInstance, RunningVersion, SelectedInstance,
        StoreFailure, StoreReader, StoreSnapshot, StoredDescriptor, StoredExecution, StoredNode,
        StoredStatus,
    },
};

use crate::PostgresEngine;

/// Forwards reads to the methods with the statements.
macro_rules! delegate {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $read:ident($($given:expr),*);)*) => {
        impl StoreReader for PostgresEngine {
            $(fn $name(&mut self, $($argument: $type),*) -> Result<$result, StoreFailure> {
                self.$read($($given),*)
            })*

            fn reads_many_at_once(&self) -> bool {
                true
            }

            fn kv_value(&mut self, instance: &str, key: &str) -> Result<Option<String>, StoreFailure> {
                Ok(self.read_values(instance)?.remove(key))
            }
        }
    };
}

delegate! {
    fn history(instance: &str, execution_id: Option<u64>) -> Vec<EventRow> = read_history(instance, execution_id);
    fn load(instance: &str, execution_id: u64) -> StoredExecution = read_execution(instance, execution_id);
    fn load_all(executions: &[(String, u64)]) -> Vec<StoredExecution> = read_executions_of(executions);
    fn status(instance: &str) -> Option<StoredStatus> = read_status(instance, false);
    fn statuses(instances: &[String]) -> Vec<Option<StoredStatus>> = read_statuses(instances);
    fn status_or_pending(instance: &str) -> Option<StoredStatus> = read_status(instance, true);
    fn descriptor(instance: &str) -> Option<StoredDescriptor> = read_descriptor(instance);
    fn descriptors(instances: &[String]) -> Vec<Option<StoredDescriptor>> = read_descriptors(instances);
    fn last_event_id(instance: &str, execution_id: u64) -> Option<u64> = read_last_event_id(instance, execution_id);
    fn custom_status(instance: &str) -> Option<(Option<String>, u64)> = read_custom_status(instance);
    fn kv_values(instance: &str) -> BTreeMap<String, String> = read_values(instance);
    fn stats(instance: &str) -> Option<SystemStats> = read_stats(instance);
    fn instances(status: Option<&str>) -> Vec<String> = read_ids(status);
    fn select_instances(query: &InstanceQuery, below: Option<u64>, max: usize) -> Vec<SelectedInstance>
        = read_selection(query, below, max);
    fn bulk_selection(filter: &InstanceFilter, running_too: bool) -> Vec<String>
        = read_bulk_selection(filter, running_too);
    fn mailbox_holds(instance: &str, at_least: u64) -> bool = read_mailbox_holds(instance, at_least);
    fn executions(instance: &str) -> Vec<u64> = read_executions(instance);
    fn current_execution(instance: &str) -> Option<u64> = read_current_execution(instance);
    fn instance_info(instance: &str) -> Option<InstanceInfo> = read_info(instance);
    fn execution_info(instance: &str, execution_id: u64) -> Option<ExecutionInfo>
        = read_execution_info(instance, execution_id);
    fn system_metrics() -> SystemMetrics = read_system_metrics();
    fn pending_instances() -> u64 = read_pending();
    fn queue_depths() -> QueueDepths = read_queue_depths();
    fn children(instance: &str) -> Vec<String> = read_children(instance);
    fn running_versions() -> Vec<RunningVersion> = read_running_versions();
    fn dead_letters(limit: Option<u32>) -> Vec<DeadLetter> = read_dead_letters(limit);
    fn nodes() -> Vec<StoredNode> = read_nodes();
    fn ready_instances(wanted: &dyn Fn(&InstanceNeeds) -> bool, max: usize) -> Vec<ReadyInstance>
        = read_ready_instances(wanted, max);
    fn ready_activities(wanted: &dyn Fn(&str, Option<&str>) -> bool, max: usize) -> Vec<ReadyActivity>
        = read_ready_activities(wanted, max);
    fn queued_work(instance: &str, _now: Timestamp) -> Option<QueuedWork> = read_queued_work(instance);
    fn instance_summary(request: &SummaryRequest) -> InstanceSummary = read_instance_summary(request);
    fn queue_summary(_now: Timestamp) -> QueueSummary = read_queue_summary();
    fn snapshot() -> StoreSnapshot = read_snapshot();
}
