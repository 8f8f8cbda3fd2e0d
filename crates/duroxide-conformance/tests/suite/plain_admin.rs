//! Management written for the plain contract: listing keeps its default body.

use std::time::Duration;

use async_trait::async_trait;
use duroxide_core::Event;
use duroxide_provider::{
    DeadLetter, DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, InstanceFilter,
    InstanceInfo, ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths, RawEvent,
    SystemMetrics,
};

use crate::plain_provider::Plain;

macro_rules! hand_on {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        #[async_trait]
        impl ProviderAdmin for Plain {
            $(async fn $name(&self $(, $argument: $type)*) -> Result<$result, ProviderError> {
                ProviderAdmin::$name(&*self.0 $(, $argument)*).await
            })*
        }
    };
}

hand_on! {
    fn list_instances() -> Vec<String>;
    fn list_instances_by_status(status: &str) -> Vec<String>;
    fn list_executions(instance: &str) -> Vec<u64>;
    fn read_history_with_execution_id(instance: &str, execution_id: u64) -> Vec<Event>;
    fn read_history(instance: &str) -> Vec<Event>;
    fn latest_execution_id(instance: &str) -> u64;
    fn get_instance_info(instance: &str) -> InstanceInfo;
    fn get_execution_info(instance: &str, execution_id: u64) -> ExecutionInfo;
    fn get_system_metrics() -> SystemMetrics;
    fn get_queue_depths() -> QueueDepths;
    fn list_children(instance: &str) -> Vec<String>;
    fn get_parent_id(instance: &str) -> Option<String>;
    fn delete_instances_atomic(ids: &[String], force: bool) -> DeleteInstanceResult;
    fn delete_instance_bulk(filter: InstanceFilter) -> DeleteInstanceResult;
    fn prune_executions(instance: &str, options: PruneOptions) -> PruneResult;
    fn prune_executions_bulk(filter: InstanceFilter, options: PruneOptions) -> PruneResult;
    fn list_dead_letters(limit: Option<u32>) -> Vec<DeadLetter>;
    fn retry_dead_letter(id: &str) -> ();
    fn discard_dead_letter(id: &str) -> ();
    fn read_raw_history(instance: &str, execution_id: u64) -> Vec<RawEvent>;
    fn list_stuck_instances(older_than: Duration, filter: &DispatcherCapabilityFilter) -> Vec<String>;
}
