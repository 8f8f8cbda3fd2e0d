//! Serves a synchronous store engine as a provider.
//!
//! A [`StoreEngine`](duroxide_provider::store::StoreEngine) knows tables and transactions, but no threads, clocks or
//! waiting. This crate adds those, once for every engine:
//!
//! * **Group commit.** One thread owns the engine. It applies all waiting operations in one transaction, then answers all
//!   callers. No timer delays a batch; a lone caller commits at once.
//! * **Waiting fetches.** A fetch that finds nothing waits in the store. Every transaction serves the waiting fetches
//!   before its commit, so the transaction that makes work also claims it.
//! * **Watchers.** A client that waits for an instance is notified after each commit that concerns the instance.
//!
//! # Code map
//!
//! * The callers' side: `provider` ([`StoreProvider`]) prepares operations on the caller's thread, and decodes answers.
//! * In between: `submit` sends requests to the store thread: operations (`job`) and fetches (`fetch`).
//! * The store thread: the `machine` holds the waiting requests and decides the next step, as a plain value. The `driver`
//!   ([`StoreDriver`]) carries the step out on the engine. In production a `thread` runs the driver; a simulator runs it by
//!   hand, in virtual time ([`StoreBuilder::stepped`]).
//! * Besides: `readers` with threads of their own, and `nodes`, which hold locks that end with their process.
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
