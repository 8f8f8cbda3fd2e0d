//! Reads, answered by the memory engine.

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

use super::PeekLockEngine;
use crate::PeekLockStore;

/// Answers each read from memory, after reading the store again if a reload was requested or a write failed.
macro_rules! read_from_memory {
    ($(fn $read:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl<S: PeekLockStore> StoreReader for PeekLockEngine<S> {
            $(fn $read(&mut self, $($argument: $type),*) -> Result<$result, StoreFailure> {
                self.refresh()?;
                self.memory.$read($($argument),*)
            })*
        }
    };
}

read_from_memory! {
    fn history(instance: &str, execution_id: Option<u64>) -> Vec<EventRow>;
    fn load(instance: &str, execution_id: u64) -> StoredExecution;
    fn status(instance: &str) -> Option<StoredStatus>;
    fn status_or_pending(instance: &str) -> Option<StoredStatus>;
    fn descriptor(instance: &str) -> Option<StoredDescriptor>;
    fn last_event_id(instance: &str, execution_id: u64) -> Option<u64>;
    fn custom_status(instance: &str) -> Option<(Option<String>, u64)>;
    fn kv_value(instance: &str, key: &str) -> Option<String>;
    fn kv_values(instance: &str) -> BTreeMap<String, String>;
    fn stats(instance: &str) -> Option<SystemStats>;
    fn instances(status: Option<&str>) -> Vec<String>;
    fn select_instances(query: &InstanceQuery, below: Option<u64>, max: usize) -> Vec<SelectedInstance>;
    fn bulk_selection(filter: &InstanceFilter, running_too: bool) -> Vec<String>;
    fn mailbox_holds(instance: &str, at_least: u64) -> bool;
    fn executions(instance: &str) -> Vec<u64>;
    fn current_execution(instance: &str) -> Option<u64>;
    fn instance_info(instance: &str) -> Option<InstanceInfo>;
    fn execution_info(instance: &str, execution_id: u64) -> Option<ExecutionInfo>;
    fn system_metrics() -> SystemMetrics;
    fn queue_depths() -> QueueDepths;
    fn children(instance: &str) -> Vec<String>;
    fn running_versions() -> Vec<RunningVersion>;
    fn dead_letters(limit: Option<u32>) -> Vec<DeadLetter>;
    fn nodes() -> Vec<StoredNode>;
    fn ready_instances(wanted: &dyn Fn(&InstanceNeeds) -> bool, max: usize) -> Vec<ReadyInstance>;
    fn ready_activities(wanted: &dyn Fn(&str, Option<&str>) -> bool, max: usize) -> Vec<ReadyActivity>;
    fn pending_instances() -> u64;
    fn queued_work(instance: &str, now: Timestamp) -> Option<QueuedWork>;
    fn instance_summary(request: &SummaryRequest) -> InstanceSummary;
    fn queue_summary(now: Timestamp) -> QueueSummary;
    fn snapshot() -> StoreSnapshot;
}
