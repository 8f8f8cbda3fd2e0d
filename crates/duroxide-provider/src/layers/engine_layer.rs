//! Store engines around others.

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::{SystemStats, Timestamp};

use crate::{
    DeadLetter, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceQuery, InstanceSummary,
    OrchestrationClaim, QueueDepths, QueueSummary, QueuedWork, SummaryRequest, SystemMetrics, WorkClaim,
    store::{
        ActivityFetch, Answer, ApplyError, Batch, Claimed, DeadLetterNote, Done, EventRow, Fault,
        InstanceFetch, InstanceNeeds, Op, Readies, ReadyActivity, ReadyInstance, RunningVersion,
        SelectedInstance, StoreEngine, StoreFailure, StoreReader, StoreSnapshot, StoredDescriptor,
        StoredExecution, StoredNode, StoredStatus, TransactionSteps,
    },
};

/// Makes the trait, and of whatever implements it a store engine, from one list of the engine's methods.
macro_rules! engine_layer {
    (
        writes { $(fn $write:ident($($write_argument:ident: $write_type:ty),*) $(-> $written:ty)?;)* }
        reads { $(fn $read:ident($($read_argument:ident: $read_type:ty),*) -> $result:ty;)* }
    ) => {
        /// A store engine around another one. Every method hands its call on; a test overrides what it wants to
        /// count, change or fail.
        pub trait EngineLayer: 'static {
            /// The engine inside.
            type Engine: StoreEngine;

            /// Runs a call on the engine inside.
            fn with_engine<T>(&mut self, call: impl FnOnce(&mut Self::Engine) -> T) -> T;

            /// Comes before every read; a failure is the read's.
            fn before_read(&mut self) -> Result<(), StoreFailure> {
                Ok(())
            }

            $(
                #[doc = concat!("Hands on [`StoreEngine::", stringify!($write), "`].")]
                fn $write(&mut self, $($write_argument: $write_type),*) $(-> $written)? {
                    self.with_engine(|engine| engine.$write($($write_argument),*))
                }
            )*

            $(
                #[doc = concat!("Hands on [`StoreReader::", stringify!($read), "`].")]
                fn $read(&mut self, $($read_argument: $read_type),*) -> Result<$result, StoreFailure> {
                    self.with_engine(|engine| engine.$read($($read_argument),*))
                }
            )*
        }

        impl<L: EngineLayer> StoreEngine for L {
            $(fn $write(&mut self, $($write_argument: $write_type),*) $(-> $written)? {
                EngineLayer::$write(self, $($write_argument),*)
            })*
        }

        impl<L: EngineLayer> StoreReader for L {
            $(fn $read(&mut self, $($read_argument: $read_type),*) -> Result<$result, StoreFailure> {
                self.before_read()?;
                EngineLayer::$read(self, $($read_argument),*)
            })*
        }
    };
}

/// Makes the trait, and of whatever implements it a transaction in steps, from one list of the steps.
macro_rules! step_layer {
    ($(fn $step:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        /// A store engine around a transaction in steps. Every step is handed on; a test overrides what it wants to count,
        /// change or fail, and lets [`EngineLayer::transact`] be [`TransactionSteps::transact_in_steps`].
        pub trait StepLayer: EngineLayer {
            /// The steps inside.
            type Steps: TransactionSteps;

            /// Runs a step inside.
            fn with_steps<T>(&mut self, call: impl FnOnce(&mut Self::Steps) -> T) -> T;

            $(
                #[doc = concat!("Hands on [`TransactionSteps::", stringify!($step), "`].")]
                fn $step(&mut self, $($argument: $type),*) $(-> $result)? {
                    self.with_steps(|steps| steps.$step($($argument),*))
                }
            )*
        }

        impl<L: StepLayer> TransactionSteps for L {
            $(fn $step(&mut self, $($argument: $type),*) $(-> $result)? {
                StepLayer::$step(self, $($argument),*)
            })*
        }
    };
}

step_layer! {
    fn begin(now: Timestamp) -> Result<(), StoreFailure>;
    fn apply(op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError>;
    fn promote() -> Result<Vec<DeadLetterNote>, StoreFailure>;
    fn clamp_leases() -> Result<(), StoreFailure>;
    fn move_leases(by: Duration) -> Result<(), StoreFailure>;
    fn claim_instances(fetch: &InstanceFetch, nonce: u128)
        -> Result<Claimed<OrchestrationClaim>, StoreFailure>;
    fn claim_activities(fetch: &ActivityFetch, nonce: u128) -> Result<Claimed<WorkClaim>, StoreFailure>;
    fn commit() -> Result<(), StoreFailure>;
    fn rollback();
    fn nodes() -> Result<Vec<StoredNode>, StoreFailure>;
}

engine_layer! {
    writes {
        fn transact(batch: &Batch<'_>) -> Result<Done, Fault>;
        fn next_wake(now: Timestamp) -> Result<Option<Timestamp>, StoreFailure>;
        fn changed_elsewhere() -> Result<bool, StoreFailure>;
        fn may_be_ready() -> Result<Readies, StoreFailure>;
        fn reopen() -> Result<(), StoreFailure>;
        fn maintain() -> Result<(), StoreFailure>;
    }
    reads {
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
}
