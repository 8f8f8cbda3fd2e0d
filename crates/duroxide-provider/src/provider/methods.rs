//! The one list of the methods of [`Provider`](crate::Provider) and [`ProviderAdmin`](crate::ProviderAdmin).
//!
//! The traits have docs and default bodies; macros build forwarding code from the list. A test compares the two.

/// The types in the list, and the imports that an impl of the traits needs.
#[doc(hidden)]
pub mod signatures {
    pub use std::{
        collections::{BTreeMap, HashMap},
        sync::Arc,
        time::Duration,
    };

    pub use async_trait::async_trait;
    pub use duroxide_core::{Clock, Event, OrchestrationDescriptor, SystemStats, WorkItem};

    pub use crate::{
        DeadLetter, DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, ExecutionMetadata,
        InstanceFilter, InstanceInfo, InstancePage, InstanceQuery, InstanceSummary, InstanceTree,
        InstanceWatch, JoinedNode, LoadedExecution, NodeAnnouncement, NodeMembership, OrchestrationClaim,
        OrchestrationFetch, OrchestrationItem, Provider, ProviderAdmin, ProviderError, ProviderLayer,
        PruneOptions, PruneResult, QueueDepths, QueueSummary, QueuedWork, RawEvent, RenewedWorkItem, Round,
        ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StatusSnapshot, StrandedWork,
        SummaryRequest, SystemMetrics, TagFilter, WorkClaim, WorkFetch,
    };
}

/// The operation that a call of this method counts as. Two methods with the same effect for the caller are one
/// operation.
pub fn operation_of(method: &'static str) -> &'static str {
    match method {
        "commit_round_ref" => "commit_round",
        "enqueue_within" => "enqueue_for_orchestrator",
        "renew_work_item" => "renew_work_item_lock",
        _ => method,
    }
}

/// Calls a macro with every method of [`Provider`](crate::Provider): `questions` are answered at once, `required` and
/// `defaulted` methods are async, take `&self` first and return `Result<_, ProviderError>`.
#[doc(hidden)]
#[macro_export]
macro_rules! provider_methods {
    ($($callback:ident)::+, $context:tt) => {
        $($callback)::+! {
            $context
            questions {
                fn name() -> &str;
                fn version() -> &str;
                fn as_management_capability() -> Option<&dyn ProviderAdmin>;
                fn commits_rounds() -> bool;
                fn serves_batches() -> bool;
                fn set_max_attempts(max_attempts: u32) -> ();
                fn watch(instance: &str) -> Option<Box<dyn InstanceWatch>>;
                fn clock() -> Option<Arc<dyn Clock>>;
            }
            required {
                fn fetch_orchestration_item(
                    lock_timeout: Duration,
                    poll_timeout: Duration,
                    filter: Option<&DispatcherCapabilityFilter>
                ) -> Option<(OrchestrationItem, String, u32)>;
                fn ack_orchestration_item(
                    lock_token: &str,
                    execution_id: u64,
                    history_delta: Vec<Event>,
                    worker_items: Vec<WorkItem>,
                    orchestrator_items: Vec<WorkItem>,
                    metadata: ExecutionMetadata,
                    cancelled_activities: Vec<ScheduledActivityIdentifier>
                ) -> ();
                fn abandon_orchestration_item(
                    lock_token: &str,
                    delay: Option<Duration>,
                    ignore_attempt: bool
                ) -> ();
                fn renew_orchestration_item_lock(token: &str, extend_for: Duration) -> ();
                fn read(instance: &str) -> Vec<Event>;
                fn read_with_execution(instance: &str, execution_id: u64) -> Vec<Event>;
                fn append_with_execution(instance: &str, execution_id: u64, new_events: Vec<Event>) -> ();
                fn enqueue_for_worker(item: WorkItem) -> ();
                fn enqueue_for_orchestrator(item: WorkItem, delay: Option<Duration>) -> ();
                fn fetch_work_item(
                    lock_timeout: Duration,
                    poll_timeout: Duration,
                    session: Option<&SessionFetchConfig>,
                    tag_filter: &TagFilter
                ) -> Option<(WorkItem, String, u32)>;
                fn ack_work_item(token: &str, completion: Option<WorkItem>) -> ();
                fn renew_work_item_lock(token: &str, extend_for: Duration) -> ();
                fn abandon_work_item(token: &str, delay: Option<Duration>, ignore_attempt: bool) -> ();
                fn renew_session_lock(
                    owner_ids: &[&str],
                    extend_for: Duration,
                    idle_timeout: Duration
                ) -> usize;
                fn cleanup_orphaned_sessions(idle_timeout: Duration) -> usize;
                fn get_custom_status(
                    instance: &str,
                    last_seen_version: u64
                ) -> Option<(Option<String>, u64)>;
                fn get_kv_value(instance: &str, key: &str) -> Option<String>;
                fn get_kv_all_values(instance: &str) -> HashMap<String, String>;
                fn get_instance_stats(instance: &str) -> Option<SystemStats>;
            }
            defaulted {
                fn commit_round(lock_token: &str, round: Round) -> ();
                fn commit_round_ref(lock_token: &str, round: &Round) -> ();
                fn fetch_orchestration_items(request: &OrchestrationFetch<'_>) -> Vec<OrchestrationClaim>;
                fn load_execution(instance: &str, execution_id: u64) -> LoadedExecution;
                fn fetch_work_items(request: &WorkFetch<'_>) -> Vec<WorkClaim>;
                fn renew_work_item(token: &str, extend_for: Duration) -> RenewedWorkItem;
                fn read_status(instance: &str) -> Option<StatusSnapshot>;
                fn read_status_or_pending(instance: &str) -> Option<StatusSnapshot>;
                fn read_descriptor(instance: &str) -> Option<OrchestrationDescriptor>;
                fn last_event_id(instance: &str, execution_id: u64) -> Option<u64>;
                fn mailbox_holds(instance: &str, at_least: u64) -> Option<bool>;
                fn enqueue_within(item: WorkItem, mailbox_max: u64) -> bool;
                fn start_if_new(start: WorkItem) -> StartOutcome;
                fn dead_letter_work_item(token: &str, reason: &str) -> ();
                fn join_node(announcement: &NodeAnnouncement) -> Option<Box<dyn NodeMembership>>;
            }
        }
    };
}

/// Calls a macro with every method of [`ProviderAdmin`](crate::ProviderAdmin); all of them are async, take `&self`
/// first and return `Result<_, ProviderError>`.
#[doc(hidden)]
#[macro_export]
macro_rules! provider_admin_methods {
    ($($callback:ident)::+, $context:tt) => {
        $($callback)::+! {
            $context
            required {
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
            }
            defaulted {
                fn query_instances(query: &InstanceQuery) -> InstancePage;
                fn count_pending_instances() -> Option<u64>;
                fn get_instance_tree(instance: &str) -> InstanceTree;
                fn delete_instance(instance: &str, force: bool) -> DeleteInstanceResult;
                fn get_running_duroxide_version_spread() -> BTreeMap<String, u64>;
                fn list_dead_letters(limit: Option<u32>) -> Vec<DeadLetter>;
                fn retry_dead_letter(id: &str) -> ();
                fn discard_dead_letter(id: &str) -> ();
                fn read_raw_history(instance: &str, execution_id: u64) -> Vec<RawEvent>;
                fn list_stuck_instances(
                    older_than: Duration,
                    filter: &DispatcherCapabilityFilter
                ) -> Vec<String>;
                fn list_stranded_work(limit: u32) -> Vec<StrandedWork>;
                fn list_nodes() -> Vec<JoinedNode>;
                fn read_queued_work(instance: &str) -> Option<QueuedWork>;
                fn summarize_instances(request: &SummaryRequest) -> InstanceSummary;
                fn summarize_queues() -> QueueSummary;
            }
        }
    };
}

/// The methods of a trait in a source file, each with whether it has a body.
#[cfg(test)]
pub(crate) fn declared(
    source: &'static str,
    of_trait: &str,
) -> std::collections::BTreeMap<&'static str, bool> {
    let (_, rest) = source.split_once(of_trait).unwrap();
    let (body, _) = rest.split_once("\n}\n").unwrap();
    // Bodies are indented deeper than their methods, so such a line starts or ends a declaration.
    let mut lines = body.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     "));
    let mut methods = std::collections::BTreeMap::new();
    while let Some(line) = lines.next() {
        let line = line.trim_start().trim_start_matches("async ");
        let Some(signature) = line.strip_prefix("fn ") else { continue };
        let end = if line.ends_with('(') { lines.next().unwrap() } else { line };
        methods.insert(signature.split('(').next().unwrap(), end.ends_with('{'));
    }
    methods
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::declared;

    macro_rules! listed {
        (() $(questions { $(fn $question:ident $_q:tt -> $_r:ty;)* })?
            required { $(fn $required:ident $_a:tt -> $_b:ty;)* }
            defaulted { $(fn $defaulted:ident $_c:tt -> $_d:ty;)* }) => {
            BTreeMap::from([
                $($((stringify!($question), true),)*)?
                $((stringify!($required), false),)*
                $((stringify!($defaulted), true),)*
            ])
        };
    }

    /// A method that is not in the list would silently be served by its default body in every provider in front of
    /// another one.
    #[test]
    fn the_list_has_every_method_of_the_traits() {
        let provider = declared(include_str!("../provider.rs"), "pub trait Provider:");
        assert_eq!(provider_methods!(listed, ()), provider);
        let admin = declared(include_str!("../admin.rs"), "pub trait ProviderAdmin:");
        assert_eq!(provider_admin_methods!(listed, ()), admin);
    }
}
