//! The list of validations, from which the public names, the table and the tests are generated.
//!
//! The topics are private modules whose functions become public only through this list. A function that is not listed
//! is dead code, which the compiler reports; a name without a function does not compile. So the list cannot drift.

use std::{panic::AssertUnwindSafe, pin::Pin, time::Duration};

use futures_util::FutureExt;

use crate::factory::ProviderFactory;

mod list;

/// The time limit of a validation, without the leases it waits for.
const TIME_LIMIT: Duration = Duration::from_secs(180);

type Run = for<'a> fn(&'a dyn ProviderFactory) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A check of one rule that a provider must keep.
#[derive(Debug, Clone, Copy)]
pub struct Validation {
    /// The topic it belongs to.
    pub topic: &'static str,
    /// The name of its function.
    pub name: &'static str,
    run: Run,
}

impl Validation {
    /// Runs the check.
    ///
    /// # Panics
    /// If the provider breaks the rule, or does not answer in time.
    pub async fn run(&self, factory: &dyn ProviderFactory) {
        let limit = TIME_LIMIT + factory.lock_timeout() * 10;
        if tokio::time::timeout(limit, (self.run)(factory)).await.is_err() {
            panic!("{}::{} did not finish within {limit:?}", self.topic, self.name);
        }
    }
}

macro_rules! export_topic {
    (root $topic:ident { $($name:ident)* }) => {
        pub use crate::topic::$topic::{$($name),*};
    };
    (module $topic:ident { $($name:ident)* }) => {
        #[doc = concat!("Validations of the topic `", stringify!($topic), "`.")]
        pub mod $topic {
            pub use crate::topic::$topic::{$($name),*};
        }
    };
}

macro_rules! export_validations {
    (() $($place:ident $topic:ident { $($name:ident $(($($argument:expr),*))?,)* })*) => {
        $(export_topic! { $place $topic { $($name)* } })*
    };
}

macro_rules! tabulate_validations {
    (() $($place:ident $topic:ident { $($name:ident $(($($argument:expr),*))?,)* })*) => {
        /// All validations, topic by topic.
        pub const VALIDATIONS: &[Validation] = &[
            $($(Validation {
                topic: stringify!($topic),
                name: stringify!($name),
                run: |factory| Box::pin(crate::topic::$topic::$name(factory $($(, $argument)*)?)),
            },)*)*
        ];
    };
}

pub(crate) mod exports {
    crate::for_each_validation!(export_validations);
}

crate::for_each_validation!(tabulate_validations);

/// Runs every validation, and then panics with the names of those that failed.
///
/// # Panics
/// If the provider breaks a rule.
pub async fn run_all(factory: &dyn ProviderFactory) {
    run_each(factory, VALIDATIONS.iter()).await;
}

/// Runs every validation of one topic, and then panics with the names of those that failed.
///
/// # Panics
/// If the provider breaks a rule, or the topic is unknown.
pub async fn run_topic(factory: &dyn ProviderFactory, topic: &str) {
    assert!(VALIDATIONS.iter().any(|validation| validation.topic == topic), "unknown topic {topic}");
    run_each(factory, VALIDATIONS.iter().filter(|validation| validation.topic == topic)).await;
}

async fn run_each(factory: &dyn ProviderFactory, validations: impl Iterator<Item = &Validation> + Send) {
    let mut failed = Vec::new();
    for validation in validations {
        if AssertUnwindSafe(validation.run(factory)).catch_unwind().await.is_err() {
            failed.push(format!("{}::{}", validation.topic, validation.name));
        }
    }
    assert!(failed.is_empty(), "{} validations failed: {}", failed.len(), failed.join(", "));
}

/// Runs one validation to its end on a runtime of its own. [`conformance_tests!`](crate::conformance_tests) calls it.
///
/// # Panics
/// If the provider breaks the rule, or there is no such validation.
pub fn check(topic: &str, name: &str, factory: &dyn ProviderFactory) {
    let validation = VALIDATIONS
        .iter()
        .find(|validation| validation.topic == topic && validation.name == name)
        .unwrap_or_else(|| panic!("there is no validation {topic}::{name}"));
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a tokio runtime can be started")
        .block_on(validation.run(factory));
}

/// Makes one test of every validation, in a module per topic.
///
/// The argument is an expression that makes a [`ProviderFactory`](crate::provider_validations::ProviderFactory); it
/// is evaluated once per test.
#[macro_export]
macro_rules! conformance_tests {
    ($factory:expr) => {
        $crate::for_each_validation!($crate::conformance_tests_of_list, $factory);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests_of_list {
    (($factory:expr) $($place:ident $topic:ident { $($name:ident $(($($argument:expr),*))?,)* })*) => {
        $(mod $topic {
            #[allow(unused_imports, reason = "the factory may be named by a full path")]
            use super::*;
            $(#[test]
            fn $name() {
                $crate::provider_validations::check(stringify!($topic), stringify!($name), &$factory);
            })*
        })*
    };
}
