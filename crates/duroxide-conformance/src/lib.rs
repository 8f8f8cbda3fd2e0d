//! The conformance suite of duroxide: executable checks of the rules of a provider.
//!
//! A third party checks its provider in a few lines:
//!
//! ```
//! # use std::sync::Arc;
//! # use duroxide_provider::Provider;
//! use duroxide_conformance::{conformance_tests, provider_validations::ProviderFactory};
//! # use duroxide_store::MemoryProvider as MyProvider;
//!
//! struct MyFactory;
//!
//! #[async_trait::async_trait]
//! impl ProviderFactory for MyFactory {
//!     async fn create_provider(&self) -> Arc<dyn Provider> {
//!         Arc::new(MyProvider::new())
//!     }
//! }
//!
//! conformance_tests!(MyFactory);
//! # fn main() {}
//! ```
//!
//! [`conformance_tests!`] makes one test of every validation, in a module per topic. [`provider_validations`] has the
//! validations as functions, the list of all validations, and `run_all` and `run_topic` for programs that are not test
//! targets.
//!
//! The suite uses only the public traits `Provider` and `ProviderAdmin`. The ids in the documentation of the
//! validations (`S3.T4`, `16.11`, `I08`) name the requirement, rule or guarantee that a validation shows.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a validation is a test: it panics when the provider breaks a rule"
)]

mod factory;
mod fetch_times;
mod fixture;
mod message;
mod node;
pub mod provider_stress_tests;
pub mod provider_validations;
mod round;
mod suite;
mod topic;
