//! [`ProviderFactory`]: creates the providers under test, and damages their stores.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use duroxide_provider::Provider;

/// Creates the providers under test, and damages their stores where a validation needs a damage that the public contract
/// cannot cause.
#[async_trait]
pub trait ProviderFactory: Send + Sync {
    /// A provider on an empty store of its own.
    async fn create_provider(&self) -> Arc<dyn Provider>;

    /// The lease of locks whose end a validation waits for. Shorter makes the suite faster; it must be long enough
    /// for a few calls to the provider.
    fn lock_timeout(&self) -> Duration {
        Duration::from_secs(5)
    }

    /// The time limit of a call that must not wait.
    fn short_poll_threshold(&self) -> Duration {
        Duration::from_millis(100)
    }

    /// Makes the stored history of an instance undecodable, in the store of the provider created last.
    async fn corrupt_instance_history(&self, instance: &str) {
        let _ = instance;
        panic!("corrupt_instance_history is not implemented for this provider factory");
    }

    /// The highest attempt count among the queued messages of an instance, in the store of the provider created
    /// last.
    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let _ = instance;
        panic!("get_max_attempt_count is not implemented for this provider factory");
    }

    /// Puts a row that cannot be decoded into the orchestrator queue of an instance and one into the worker queue,
    /// in the store of the provider created last. `false` if the factory cannot; then the validations that need
    /// such rows check nothing.
    async fn insert_undecodable_rows(&self, instance: &str) -> bool {
        let _ = instance;
        false
    }

    /// The time after which the created providers move messages for an unknown instance to the dead letters. `None` if a
    /// validation should not wait that long.
    fn orphan_message_ttl(&self) -> Option<Duration> {
        None
    }
}
