//! A12: the value types of `ProviderAdmin`.

use duroxide::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstancePage, InstanceQuery,
    InstanceTree, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
    providers::{DeadLetter, DeadLetterQueue, RawEvent},
};

use crate::bounds;

#[test]
fn infos_are_built_in_full() {
    bounds::value::<InstanceInfo>();
    let _ = InstanceInfo {
        instance_id: "i".into(),
        orchestration_name: "n".into(),
        orchestration_version: "1.0.0".into(),
        current_execution_id: 1,
        status: "Running".into(),
        output: None::<String>,
        created_at: 0,
        updated_at: 0,
        parent_instance_id: None::<String>,
    };
    bounds::value::<ExecutionInfo>();
    let _ = ExecutionInfo {
        execution_id: 1,
        status: "Running".into(),
        output: None::<String>,
        started_at: 0,
        completed_at: None::<u64>,
        event_count: 0_usize,
    };
    bounds::value::<InstanceTree>();
    let tree = InstanceTree { root_id: "r".into(), all_ids: vec!["r".into()] };
    assert!(tree.is_root_only());
    assert_eq!(tree.size(), 1_usize);
}

#[test]
fn counts_and_options_have_defaults() {
    bounds::value::<SystemMetrics>();
    let SystemMetrics {
        total_instances,
        total_executions,
        running_instances,
        completed_instances,
        failed_instances,
        total_events,
    } = SystemMetrics::default();
    let _: [u64; 6] = [
        total_instances,
        total_executions,
        running_instances,
        completed_instances,
        failed_instances,
        total_events,
    ];
    bounds::value::<QueueDepths>();
    let QueueDepths { orchestrator_queue, worker_queue, timer_queue } = QueueDepths::default();
    let _: [usize; 3] = [orchestrator_queue, worker_queue, timer_queue];
    bounds::value::<InstanceFilter>();
    bounds::default::<InstanceFilter>();
    let _ = InstanceFilter {
        instance_ids: Some(vec![String::new()]),
        completed_before: Some(1_u64),
        limit: Some(1_u32),
    };
    bounds::value::<PruneOptions>();
    bounds::default::<PruneOptions>();
    let _ = PruneOptions { keep_last: Some(1_u32), completed_before: Some(1_u64) };
    bounds::value::<DeleteInstanceResult>();
    let DeleteInstanceResult {
        instances_deleted,
        executions_deleted,
        events_deleted,
        queue_messages_deleted,
    } = DeleteInstanceResult::default();
    let _: [u64; 4] = [instances_deleted, executions_deleted, events_deleted, queue_messages_deleted];
    bounds::value::<PruneResult>();
    let PruneResult { instances_processed, executions_deleted, events_deleted } = PruneResult::default();
    let _: [u64; 3] = [instances_processed, executions_deleted, events_deleted];
}

/// A17.3.
#[test]
fn instances_are_listed_by_queries() {
    bounds::value::<InstanceQuery>();
    bounds::eq::<InstanceQuery>();
    bounds::default::<InstanceQuery>();
    let query = InstanceQuery::default()
        .status("Failed")
        .orchestration_name("Order")
        .orchestration_version("1.0.0")
        .id_prefix("order-")
        .parent("batch")
        .roots_only()
        .created_from(1_u64)
        .created_before(2)
        .updated_from(3)
        .updated_before(4)
        .limit(10_u32)
        .after("cursor");
    assert_eq!((query.page_size(), query.cursor.as_deref()), (10_usize, Some("cursor")));
    bounds::value::<InstancePage>();
    bounds::default::<InstancePage>();
    let _ = InstancePage { instances: Vec::<InstanceInfo>::new(), next: None::<String> };
}

/// A17.3.
#[test]
fn dead_letters_and_raw_events() {
    bounds::value::<DeadLetter>();
    bounds::eq::<DeadLetter>();
    bounds::eq::<DeadLetterQueue>();
    let _ = DeadLetter {
        id: "1".into(),
        queue: DeadLetterQueue::Worker,
        instance_id: Some("i".into()),
        payload: "p".into(),
        reason: "r".into(),
        attempt_count: 4_u32,
        dead_lettered_at_ms: 0_u64,
    };
    bounds::value::<RawEvent>();
    let _ = RawEvent { event_id: 1, event_type: "t".into(), data: "d".into() };
}
