//! A4, A7, A17.4: statuses, options and limits.

use std::time::Duration;

use duroxide::{
    ErrorDetails, OrchestrationDescriptor, OrchestrationStatus, RuntimeOptions, SemverRange, TagFilter,
    providers::WorkItem,
    runtime::{self, ObservabilityConfig, RuntimeLimits, UnregisteredBackoffConfig, kind_of, limits},
};

use crate::bounds;

#[test]
fn statuses_and_descriptors_are_matched_and_built_in_full() {
    bounds::value::<OrchestrationStatus>();
    bounds::eq::<OrchestrationStatus>();
    let _: fn(runtime::OrchestrationStatus) -> OrchestrationStatus = |status| status;
    let _ = |status: OrchestrationStatus| -> Option<ErrorDetails> {
        match status {
            OrchestrationStatus::NotFound => None,
            OrchestrationStatus::Running { custom_status: None | Some(_), custom_status_version: _ } => None,
            OrchestrationStatus::Completed { output: _, custom_status: _, custom_status_version: _ } => None,
            OrchestrationStatus::Failed { details, custom_status: _, custom_status_version: _ } => {
                Some(details)
            }
        }
    };
    bounds::value::<OrchestrationDescriptor>();
    bounds::eq::<OrchestrationDescriptor>();
    let _ = OrchestrationDescriptor {
        name: "n".into(),
        version: "1.0.0".into(),
        parent_instance: None,
        parent_id: Some(1_u64),
    };
    let _: fn(&WorkItem) -> &'static str = kind_of;
    let message = WorkItem::QueueMessage { instance: "i".into(), name: "q".into(), data: "d".into() };
    assert_eq!(kind_of(&message), "ExternalRaisedPersistent");
}

#[test]
fn options_have_the_documented_defaults() {
    bounds::value::<RuntimeOptions>();
    let secs = Duration::from_secs;
    let options = RuntimeOptions { max_attempts: 10, ..Default::default() };
    assert_eq!(options.dispatcher_min_poll_interval, Duration::from_millis(100));
    assert_eq!(options.dispatcher_long_poll_timeout, secs(30));
    assert_eq!((options.orchestration_concurrency, options.worker_concurrency), (2_usize, 2_usize));
    assert_eq!(
        (options.orchestrator_lock_timeout, options.orchestrator_lock_renewal_buffer),
        (secs(5), secs(2))
    );
    assert_eq!((options.worker_lock_timeout, options.worker_lock_renewal_buffer), (secs(30), secs(5)));
    let _: ObservabilityConfig = options.observability;
    let UnregisteredBackoffConfig { base_delay, max_delay } = options.unregistered_backoff;
    assert_eq!((base_delay, max_delay), (secs(1), secs(60)));
    assert_eq!(RuntimeOptions::default().max_attempts, 10_u32);
    assert_eq!(options.activity_cancellation_grace_period, secs(10));
    assert_eq!(options.supported_replay_versions, None::<SemverRange>);
    assert_eq!((options.session_lock_timeout, options.session_lock_renewal_buffer), (secs(30), secs(5)));
    assert_eq!((options.session_idle_timeout, options.session_cleanup_interval), (secs(300), secs(300)));
    assert_eq!(options.max_sessions_per_runtime, 10_usize);
    assert_eq!(options.worker_node_id, None::<String>);
    assert_eq!(options.worker_tag_filter, TagFilter::DefaultOnly);
    assert_eq!(options.turn_timeout, Some(secs(60)));
    assert_eq!(options.activity_execution_timeout, None);
    assert_eq!(options.execution_cache_size, 10_000_usize);
    assert!(!options.handler_capability_filter);
    assert_eq!(options.extra_replay_versions, Vec::<SemverRange>::new());
    assert_eq!(options.sweep_unsupported_after, None);
    assert!(!options.cancel_only_fallback);
}

#[test]
fn limits_have_the_documented_values() {
    bounds::value::<RuntimeLimits>();
    let limits = RuntimeLimits { ..Default::default() };
    assert_eq!(limits.max_payload_bytes, Some(16_usize << 20));
    assert_eq!(limits.max_history_events, Some(1_000_000_u64));
    assert_eq!(limits.max_mailbox_messages, Some(100_000_u64));
    assert_eq!(limits.max_actions_per_turn, Some(100_000_usize));
    let constants: [usize; 6] = [
        limits::MAX_CARRY_FORWARD_EVENTS,
        limits::MAX_CUSTOM_STATUS_BYTES,
        limits::MAX_WORKER_TAGS,
        limits::MAX_TAG_NAME_BYTES,
        limits::MAX_KV_KEYS,
        limits::MAX_KV_VALUE_BYTES,
    ];
    assert_eq!(constants, [100, 262_144, 5, 256, 150, 65_536]);
}

/// S0.8, S0.9, S0.10, S0.11, S0.12.
#[test]
fn the_unregistered_backoff_doubles_up_to_its_maximum() {
    bounds::value::<UnregisteredBackoffConfig>();
    let _: fn(&UnregisteredBackoffConfig, u32) -> Duration = UnregisteredBackoffConfig::delay;
    let backoff = UnregisteredBackoffConfig::default();
    let seconds: Vec<u64> = (0..10).map(|attempt| backoff.delay(attempt).as_secs()).collect();
    assert_eq!(seconds, [1, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
}
