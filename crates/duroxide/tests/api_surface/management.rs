//! A12: the value types of `ProviderAdmin`.

use duroxide::{
    ActivityState, DeleteInstanceResult, ExecutionInfo, Explanation, Finding, InstanceFilter, InstanceInfo,
    InstancePage, InstanceQuery, InstanceSummary, InstanceTree, PruneOptions, PruneResult, QueueDepths,
    QueueSummary, QueuedWork, SummaryRequest, SystemMetrics,
    providers::{
        DeadLetter, DeadLetterQueue, InstanceCount, InstanceNeeds, LaneSummary, MissingCapability,
        QueuedActivityInfo, QueuedMessageInfo, RawEvent, RouteSummary, SessionLease, WorkLock,
    },
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

#[test]
fn summaries_are_built_in_full() {
    bounds::value::<InstanceSummary>();
    bounds::value::<QueueSummary>();
    let request = SummaryRequest { from_ms: 0, bucket_ms: 1, buckets: SummaryRequest::BUCKETS_MAX };
    assert_eq!((request.bucket_of(2), request.bucket_count(), request.end_ms()), (Some(2), 1_000, 1_000));
    let count =
        InstanceCount { name: "n".into(), version: "1.0.0".into(), status: "Running".into(), count: 1 };
    let _ = InstanceSummary {
        counts: vec![count],
        started: vec![1_u64],
        completed: vec![0],
        failed: vec![0],
        oldest_running: Some(("i".to_owned(), 1_u64)),
    };
    let route = RouteSummary {
        name: None::<String>,
        version: None::<String>,
        pinned: None::<String>,
        ready: 0,
        locked: 0,
        oldest_ready_ms: None::<u64>,
    };
    let lane = LaneSummary {
        name: "a".into(),
        tag: None::<String>,
        ready: 0,
        running: 0,
        delayed: 0,
        oldest_ready_ms: None::<u64>,
    };
    let _ = QueueSummary {
        now_ms: 0,
        orchestrations: vec![route],
        activities: vec![lane],
        next_timer_ms: None::<u64>,
        waiting_timers: 0,
    };
}

#[test]
fn queued_work_can_be_made_by_a_provider() {
    bounds::value::<QueuedWork>();
    let mut work = QueuedWork::default();
    (work.now_ms, work.attempts, work.ready_since_ms) = (1, 0_u32, None::<u64>);
    work.needs = InstanceNeeds { name: None::<String>, version: None::<String>, pinned: None };
    work.lock = Some(WorkLock { node: None::<String>, until_ms: 7 });
    let message =
        QueuedMessageInfo { data: "{}".into(), enqueued_at_ms: 1, visible_at_ms: None::<u64>, attempts: 0 };
    assert!(work.push_message(message) && QueuedWork::LIMIT > 1 && QueuedWork::BYTES_LIMIT > 2);
    (work.messages_total, work.activities_total) = (1, 1);
    work.sessions = vec![SessionLease { session_id: "s".into(), owner: "w".into(), until_ms: 7 }];
    work.activities = vec![QueuedActivityInfo {
        execution_id: 1,
        activity_id: 2,
        name: "a".into(),
        tag: None::<String>,
        session_id: None::<String>,
        attempts: 0,
        hidden_until_ms: None::<u64>,
        lock: None::<WorkLock>,
        stop_requested: false,
    }];
    work.dead_letters = Vec::<DeadLetter>::new();
}

/// Every finding, and every state of an activity.
#[test]
fn findings_are_matched_by_their_fields() {
    bounds::value::<Explanation>();
    let _: fn(&Explanation) -> Vec<String> = Explanation::lines;
    let _: fn(&Finding) -> u64 = |finding| match finding {
        Finding::Completed { at_ms }
        | Finding::Failed { error: _, at_ms }
        | Finding::Poisoned { what: _, attempts: _, at_ms }
        | Finding::Cancelled { reason: _, at_ms } => *at_ms,
        Finding::StartQueued { since_ms }
        | Finding::CancelRequested { since_ms }
        | Finding::Ready { since_ms, attempts: _ }
        | Finding::Event { name: _, since_ms, last_raised: _ }
        | Finding::Queue { name: _, since_ms, last_enqueued: _ }
        | Finding::Timer { due_ms: _, since_ms }
        | Finding::Activity { name: _, activity_id: _, attempt: _, max_attempts: _, since_ms, state: _ }
        | Finding::Child { instance: _, name: _, since_ms, explanation: _ }
        | Finding::AwaitsCancellation { since_ms } => *since_ms,
        Finding::TurnRunning { node: _, lease_ends_ms, attempt: _ } => *lease_ends_ms,
        Finding::Hidden { until_ms, lacking_nodes: _ } => *until_ms,
        Finding::FailedBefore { name: _, error: _, at_ms } => *at_ms,
        Finding::NoNode { missing: _ }
        | Finding::DeadLetter { id: _, reason: _ }
        | Finding::Unreadable { error: _ }
        | Finding::Nothing => 0,
        _ => 0,
    };
    let states = [
        ActivityState::Running { node: None::<String>, lease_ends_ms: 0 },
        ActivityState::Waiting,
        ActivityState::SessionHeld { session: "s".into(), owner: "w".into(), lease_ends_ms: 0 },
        ActivityState::Hidden { until_ms: 0, lacking_nodes: Vec::<String>::new() },
        ActivityState::NoNode { missing: MissingCapability::Tag { tag: None } },
        ActivityState::StopRequested,
        ActivityState::NotQueued,
        ActivityState::Unknown,
    ];
    assert_eq!(states.len(), 8);
}
