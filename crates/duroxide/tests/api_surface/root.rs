//! A1: the root.

use std::{marker::PhantomData, sync::Arc};

use duroxide::*;

use crate::bounds;

/// Compiles if two paths name one type.
macro_rules! same {
    ($one:ty, $other:ty) => {
        let _: PhantomData<$one> = PhantomData::<$other>;
    };
}

/// Everything that is re-exported at the root is the type of its home module.
#[test]
fn the_root_names_resolve() {
    same!(duroxide::OrchestrationDescriptor, duroxide::runtime::OrchestrationDescriptor);
    same!(dyn duroxide::OrchestrationHandler, dyn duroxide::runtime::OrchestrationHandler);
    same!(dyn duroxide::ProviderAdmin, dyn duroxide::providers::ProviderAdmin);
    same!(duroxide::ScheduledActivityIdentifier, duroxide::providers::ScheduledActivityIdentifier);
    same!(duroxide::SessionFetchConfig, duroxide::providers::SessionFetchConfig);
    same!(duroxide::TagFilter, duroxide::providers::TagFilter);
    same!(duroxide::DispatcherCapabilityFilter, duroxide::providers::DispatcherCapabilityFilter);
    same!(duroxide::SemverRange, duroxide::providers::SemverRange);
    same!(duroxide::ExecutionInfo, duroxide::providers::ExecutionInfo);
    same!(duroxide::ExecutionInfo, duroxide::providers::management::ExecutionInfo);
    same!(duroxide::InstanceInfo, duroxide::providers::InstanceInfo);
    same!(duroxide::InstanceInfo, duroxide::providers::management::InstanceInfo);
    same!(duroxide::QueueDepths, duroxide::providers::QueueDepths);
    same!(duroxide::QueueDepths, duroxide::providers::management::QueueDepths);
    same!(duroxide::SystemMetrics, duroxide::providers::SystemMetrics);
    same!(duroxide::SystemMetrics, duroxide::providers::management::SystemMetrics);
    same!(duroxide::DeleteInstanceResult, duroxide::providers::DeleteInstanceResult);
    same!(duroxide::DeleteInstanceResult, duroxide::providers::management::DeleteInstanceResult);
    same!(duroxide::InstanceFilter, duroxide::providers::InstanceFilter);
    same!(duroxide::InstanceFilter, duroxide::providers::management::InstanceFilter);
    same!(duroxide::InstanceTree, duroxide::providers::InstanceTree);
    same!(duroxide::InstanceTree, duroxide::providers::management::InstanceTree);
    same!(duroxide::PruneOptions, duroxide::providers::PruneOptions);
    same!(duroxide::PruneOptions, duroxide::providers::management::PruneOptions);
    same!(duroxide::PruneResult, duroxide::providers::PruneResult);
    same!(duroxide::PruneResult, duroxide::providers::management::PruneResult);
}

#[test]
fn constants_and_functions_have_their_values() {
    let first: (u64, u64) = (INITIAL_EXECUTION_ID, INITIAL_EVENT_ID);
    assert_eq!(first, (1, 1));
    let prefix: &str = SUB_ORCH_AUTO_PREFIX;
    assert_eq!(prefix, "sub::");
    let is_auto: fn(&str) -> bool = is_auto_generated_sub_orch_id;
    assert!(is_auto("sub::5") && !is_auto("child"));
    let build: fn(&str, &str) -> String = build_child_instance_id;
    assert_eq!((build("p", "sub::5"), build("p", "child")), ("p::sub::5".to_owned(), "child".to_owned()));
    let version: fn() -> semver::Version = current_build_version;
    assert_eq!(version().to_string(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn aliases_are_the_documented_types() {
    let _: fn(ProviderRef) -> Arc<dyn duroxide::providers::Provider> = |store| store;
    let _: fn(OrchestrationHandlerRef) -> Arc<dyn duroxide::runtime::OrchestrationHandler> =
        |handler| handler;
}

#[test]
fn small_enums_and_stats() {
    bounds::value::<LogLevel>();
    let _ = |level: LogLevel| match level {
        LogLevel::Info | LogLevel::Warn | LogLevel::Error => (),
    };
    bounds::value::<ScheduleKind>();
    let _ = |kind: ScheduleKind| match kind {
        ScheduleKind::Activity { name } => name,
        ScheduleKind::Timer => String::new(),
        ScheduleKind::ExternalWait { event_name } | ScheduleKind::QueueDequeue { event_name } => event_name,
        ScheduleKind::SubOrchestration { token } => u64::to_string(&token),
    };
    bounds::value::<SystemStats>();
    bounds::partial_eq::<SystemStats>();
    bounds::serde::<SystemStats>();
    let zero: u64 = 0;
    let _ = SystemStats {
        history_event_count: zero,
        history_size_bytes: zero,
        queue_pending_count: zero,
        kv_user_key_count: zero,
        kv_total_value_bytes: zero,
    };
}

/// `use duroxide::*` above must not hide anything of the standard prelude.
#[test]
fn a_glob_import_hides_nothing_of_the_prelude() {
    fn plain() -> Result<Option<String>, Box<dyn std::error::Error>> {
        let list: Vec<u8> = Vec::from([1]);
        let text: String = ToString::to_string(&list.len());
        drop(list);
        Ok(Some(text))
    }
    assert!(plain().is_ok());
    assert!(Iterator::eq(IntoIterator::into_iter([1]), [1]));
    let _: (fn(u8) -> Option<u8>, Result<u8, u8>) = (Some, Err(1));
}
