//! The one list of the reads of [`StoreReader`](super::StoreReader).
//!
//! The trait has docs; macros build engines in front of others from the list. Reads of many are not in it: their default bodies
//! call the single reads of the engine in front, which may override them. A test compares list and trait.

/// The types in the list.
#[doc(hidden)]
pub mod signatures {
    pub use std::collections::BTreeMap;

    pub use duroxide_core::{SystemStats, Timestamp};

    pub use crate::{
        DeadLetter, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceQuery, InstanceSummary, QueueDepths,
        QueueSummary, QueuedWork, SummaryRequest, SystemMetrics,
        store::{
            EventRow, InstanceNeeds, ReadyActivity, ReadyInstance, RunningVersion, SelectedInstance,
            StoreFailure, StoreReader, StoreSnapshot, StoredDescriptor, StoredExecution, StoredNode,
            StoredStatus,
        },
    };
}

/// Calls a macro with every read; all of them take `&mut self` first and return `Result<_, StoreFailure>`.
#[doc(hidden)]
#[macro_export]
macro_rules! store_reads {
    ($($callback:ident)::+, $context:tt) => {
        $($callback)::+! {
            $context
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
            fn pending_instances() -> u64;
            fn queue_depths() -> QueueDepths;
            fn children(instance: &str) -> Vec<String>;
            fn running_versions() -> Vec<RunningVersion>;
            fn dead_letters(limit: Option<u32>) -> Vec<DeadLetter>;
            fn nodes() -> Vec<StoredNode>;
            fn ready_instances(wanted: &dyn Fn(&InstanceNeeds) -> bool, max: usize) -> Vec<ReadyInstance>;
            fn ready_activities(wanted: &dyn Fn(&str, Option<&str>) -> bool, max: usize) -> Vec<ReadyActivity>;
            fn queued_work(instance: &str, now: Timestamp) -> Option<QueuedWork>;
            fn instance_summary(request: &SummaryRequest) -> InstanceSummary;
            fn queue_summary(now: Timestamp) -> QueueSummary;
            fn snapshot() -> StoreSnapshot;
        }
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::provider::methods::declared;

    macro_rules! listed {
        (() $(fn $read:ident $_a:tt -> $_b:ty;)*) => {
            BTreeMap::from([$((stringify!($read), false),)*])
        };
    }

    /// A read with a default body that is not in the list would silently be served by that body.
    #[test]
    fn the_list_has_every_read_except_those_of_many() {
        let mut expected = store_reads!(listed, ());
        expected
            .extend(["reads_many_at_once", "load_all", "statuses", "descriptors"].map(|read| (read, true)));
        assert_eq!(declared(include_str!("../reader.rs"), "pub trait StoreReader "), expected);
    }
}
