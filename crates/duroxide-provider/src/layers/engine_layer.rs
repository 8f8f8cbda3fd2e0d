//! Store engines around others.

use std::time::Duration;

use crate::{
    OrchestrationClaim, WorkClaim,
    store::{
        ActivityFetch, Answer, ApplyError, Batch, Claimed, DeadLetterNote, Done, Fault, InstanceFetch, Op,
        Readies, StoreEngine, TellOfWrite, TransactionSteps, reader_methods::signatures::*,
    },
};

/// Makes the trait, and implements `StoreEngine` for its implementors, from the lists of the engine's own methods and of its
/// reads.
macro_rules! engine_layer {
    (
        ($(fn $write:ident($($write_argument:ident: $write_type:ty),*) -> $written:ty;)*)
        $(fn $read:ident($($read_argument:ident: $read_type:ty),*) -> $result:ty;)*
    ) => {
        /// A store engine around another one. Every method forwards its call; a test overrides the methods that it
        /// counts, changes or lets fail.
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
                fn $write(&mut self, $($write_argument: $write_type),*) -> $written {
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
            $(fn $write(&mut self, $($write_argument: $write_type),*) -> $written {
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

/// Makes the trait, and implements `TransactionSteps` for its implementors, from one list of the steps.
macro_rules! step_layer {
    ($(fn $step:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        /// A store engine around a transaction in steps. Every step is forwarded; a test overrides the steps that it
        /// counts, changes or lets fail, and lets [`EngineLayer::transact`] be [`TransactionSteps::transact_in_steps`].
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
    fn shorten_leases() -> Result<(), StoreFailure>;
    fn move_leases(by: Duration) -> Result<(), StoreFailure>;
    fn claim_instances(fetch: &InstanceFetch, nonce: u128)
        -> Result<Claimed<OrchestrationClaim>, StoreFailure>;
    fn claim_activities(fetch: &ActivityFetch, nonce: u128) -> Result<Claimed<WorkClaim>, StoreFailure>;
    fn commit() -> Result<(), StoreFailure>;
    fn rollback();
    fn nodes() -> Result<Vec<StoredNode>, StoreFailure>;
}

crate::store_reads! {
    engine_layer,
    (
        fn transact(batch: &Batch<'_>) -> Result<Done, Fault>;
        fn next_wake(now: Timestamp) -> Result<Option<Timestamp>, StoreFailure>;
        fn changed_elsewhere() -> Result<bool, StoreFailure>;
        fn tell_of_writes(tell: &TellOfWrite) -> bool;
        fn may_be_ready() -> Result<Readies, StoreFailure>;
        fn reopen() -> Result<(), StoreFailure>;
        fn maintain() -> Result<(), StoreFailure>;
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::provider::methods::declared;

    /// A method that is not handed on would silently be served by its default body.
    #[test]
    fn a_layer_hands_every_method_of_an_engine_on() {
        let (_, list) = include_str!("engine_layer.rs").rsplit_once("engine_layer,\n    (\n").unwrap();
        let (list, _) = list.split_once("\n    )\n").unwrap();
        let name = |line: &'static str| line.trim_start().strip_prefix("fn ")?.split('(').next();
        let listed: BTreeSet<&str> = list.lines().filter_map(name).collect();
        let declared = declared(include_str!("../store/engine.rs"), "pub trait StoreEngine:");
        assert_eq!(listed, declared.into_keys().collect());
    }
}
