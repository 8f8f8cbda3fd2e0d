//! Serves a synchronous store engine as a provider.
//!
//! A [`StoreEngine`](duroxide_provider::store::StoreEngine) knows tables and transactions, and nothing of threads,
//! clocks or waiting. This crate adds those, once for every engine:
//!
//! * **Group commit.** One thread owns the engine. Whatever waits is applied in one transaction, then everyone is
//!   answered. No timer delays a batch; a lone caller commits at once.
//! * **Waiting fetches.** A fetch that finds nothing waits in the store. Every transaction serves the waiting
//!   fetches before its commit, so the transaction that makes work also hands it over.
//! * **Watchers.** A client that waits for an instance is told after each commit that concerns it.
//!
//! # Code map
//!
//! Callers prepare an operation and submit it (`submit`, [`StoreProvider`]). The `machine` holds what waits and
//! decides what to do next; it is a plain value. The [`StoreDriver`] carries that out on the engine. In production
//! a thread runs the driver; a simulator runs it by hand, in virtual time ([`StoreBuilder::stepped`]).
//!
//! A provider made of this wraps a [`StoreProvider`] and implements the traits with
//! [`impl_provider_by_delegation!`].

// No wildcard arm hides a new event kind, work item or operation: see docs/adding-an-event-kind.md.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod builder;
mod clock;
mod driver;
mod fetch;
mod job;
mod log;
mod machine;
mod memory;
mod nodes;
mod options;
mod provider;
mod readers;
mod submit;
mod thread;

pub use builder::StoreBuilder;
pub use clock::{SystemClock, random_nonce};
pub use driver::{Idle, StoreDriver};
pub use memory::MemoryProvider;
pub use nodes::{NodeLock, NodeLocks, NodeNote};
pub use options::StoreOptions;
pub use provider::StoreProvider;

/// ```
/// use duroxide_provider::Provider;
/// use duroxide_store::{MemoryProvider, impl_provider_by_delegation};
///
/// struct MyProvider {
///     store: MemoryProvider,
/// }
///
/// impl_provider_by_delegation!(MyProvider, store);
///
/// let provider = MyProvider { store: MemoryProvider::new() };
/// assert_eq!(provider.name(), "memory");
/// assert!(provider.as_management_capability().is_some());
/// ```
pub use duroxide_provider::impl_provider_by_delegation;
